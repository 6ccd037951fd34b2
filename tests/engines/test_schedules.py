"""Networks that change: the engine against closed forms, against itself on other devices, and against replays."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consilience.beliefs import Gaussian
from consilience.engines.arm import Arm, agent_key, data_key, round_key
from consilience.engines.simulate import Simulation
from consilience.learners import Minibatches, Observations, conjugate, evidence, variational
from consilience.models import mlp
from consilience.network import (
    IDLE,
    Asynchronous,
    Churn,
    Fixed,
    Gossip,
    Lossy,
    Replay,
    RotatingStar,
    erdos_renyi,
)

D, NOISE, N = 3, 0.8, 7
PRIOR = Gaussian.from_moments(jnp.zeros(D), 0.5 * jnp.eye(D))
GRAPH = erdos_renyi(N, 0.6, 3)
CLOCKS = np.array([1, 1, 1.5, 2, 1, 3, 1.25])
SCHEDULES = {
    "rotating star": RotatingStar(6, 2),
    "gossip": Gossip(GRAPH),
    "matching": Gossip(GRAPH, matching=True),
    "loss": Lossy(Fixed(GRAPH), 0.4),
    "churn": Churn(Fixed(GRAPH), up=3, down=2),
    "asynchronous": Asynchronous(GRAPH, CLOCKS, delay=1.5, staleness=4, tick=0.5),
}
SOAK = pytest.mark.soak  # every program of several devices is compiled; test_reference draws such, too
each = pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)


def draw(data, key, number):
    inputs, noise = jax.random.split(agent_key(key, number))
    features = jax.random.normal(inputs, (5, D)) * (1 + number)
    return Observations(features, features.sum(-1) + NOISE * jax.random.normal(noise, (5,)))


def light(schedule) -> Arm:
    return Arm(conjugate(PRIOR, NOISE), draw, schedule, lambda data, now, n, key: {"mean": now.public.mean[0]})


def heavy(schedule, steps: int = 4) -> Arm:
    model = mlp((4,), 3, (6,))
    rng = np.random.default_rng(0)
    data = rng.normal(size=(50, 4)), rng.integers(0, 3, 50)

    def draw(data, key, number):
        return Minibatches(*data, jax.random.randint(agent_key(key, number), (steps, 8), 0, 50), 50.0)

    agent = variational(model, model.init(jax.random.key(1)))
    return Arm(
        agent,
        draw,
        schedule,
        lambda data, now, n, key: {"mean": now.public.mean.sum()},
        data=lambda *_: data,
        steps=steps,
    )


def played(arm, pieces=((12,),), devices=None, seeds=(7,)):
    simulation = Simulation(arm, seeds, devices)
    progress, first = simulation.start(), 1
    for stops in pieces:
        progress, _ = simulation.play(first, stops, [True] * len(stops), progress)
        first = stops[-1] + 1
    return simulation.agents(progress)


close = partial(jax.tree.map, partial(np.testing.assert_allclose, rtol=1e-6, atol=1e-9))


@each
def test_gaussian_beliefs_follow_the_turns(schedule):
    """Natural parameters, turn by turn: who learns adds its evidence, who pools takes its row of what was said."""
    rounds, seed = 12, 7
    progress = played(light(schedule), [[rounds]])
    q = [np.broadcast_to(leaf, (N, *leaf.shape)).copy() for leaf in PRIOR]
    said = {agent: [] for agent in range(N)}
    for number in range(1, rounds + 1):
        turn = schedule.turn(number)
        for agent in turn.learners:
            new = evidence(draw((), data_key(round_key(seed, number)), jnp.array(agent)), NOISE)
            for total, leaf in zip(q, new, strict=True):
                total[agent] += leaf
            said[int(agent)].append([total[agent].copy() for total in q])
        now = [total.copy() for total in q]
        for agent in np.unique(turn.receivers):
            row = turn.receivers == agent
            heard = zip(turn.senders[row], turn.weights[row], turn.ages[row], strict=True)
            beliefs = [(weight, said[int(sender)][-1 - age]) for sender, weight, age in heard if said[int(sender)]]
            for k, total in enumerate(now):
                total[agent] = sum(weight * belief[k] for weight, belief in beliefs)
        q = now
    for ours, closed in zip(progress.state, q, strict=True):
        np.testing.assert_allclose(ours[0], closed, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        pytest.param(kind, name, marks=() if (kind, name) in ((light, "loss"), (heavy, "asynchronous")) else SOAK)
        for kind in (light, heavy)
        for name in SCHEDULES
    ],
)
def test_the_devices_and_the_pieces_change_no_number(kind, name):
    schedule = SCHEDULES[name]
    whole = played(kind(schedule), [[9]], jax.devices()[:1])
    close(whole, played(kind(schedule), [[2], [9]], jax.devices()[:3]))


@pytest.mark.parametrize("schedule", [SCHEDULES["loss"], SCHEDULES["asynchronous"]], ids=["loss", "asynchronous"])
@pytest.mark.parametrize("kind", [light, heavy])
def test_a_replay_of_what_happened_gives_the_same_beliefs(schedule, kind):
    recorded = Replay(N, [schedule.turn(number) for number in range(1, 10)])
    close(played(kind(schedule), [[9]])[:2], played(kind(recorded), [[9]])[:2])


@pytest.mark.parametrize("kind", [light, heavy])
def test_equal_clocks_without_delay_are_synchronous(kind):
    close(played(kind(GRAPH), [[6]]), played(kind(Asynchronous(GRAPH, np.ones(N))), [[6]]))


@pytest.mark.parametrize("kind", [light, heavy])
def test_who_takes_no_part_is_not_touched(kind):
    """After the first two turns of the star, agents 5 and 6 are as they began, bit for bit."""
    arm = kind(SCHEDULES["rotating star"])
    simulation = Simulation(arm, [7])
    before = simulation.agents(simulation.start())
    after, _ = simulation.play(1, [2], [False], simulation.start())
    for one, other in zip(jax.tree.leaves(before), jax.tree.leaves(simulation.agents(after)), strict=True):
        np.testing.assert_array_equal(one[:, 5:], other[:, 5:])
        assert one.ndim < 3 or (one[:, 1] != other[:, 1]).any()


@pytest.mark.parametrize("kind", [light, heavy])
def test_turns_in_which_nobody_acts(kind):
    """One turn at a time, on two devices, with clocks that rest between, and a schedule in which nothing happens."""
    slow = Asynchronous(GRAPH, np.full(N, 3.0), delay=1.0)
    simulation = Simulation(kind(slow), [7], jax.devices()[:2])
    progress = simulation.start()
    for number in range(1, 8):
        progress, _ = simulation.play(number, [number], [False], progress)
    assert simulation._play._cache_size() == 1  # other turns are other data, not another program
    close(simulation.agents(progress), played(kind(slow), [[7]], jax.devices()[:1]))
    idle = Replay(N, [IDLE] * 3)
    close(played(kind(idle), [[3]], jax.devices()[:2])[:2], played(kind(idle), [[1]], jax.devices()[:1])[:2])
