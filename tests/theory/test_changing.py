"""Evidence in changing networks: against powers of W, and against what a simulation measures."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.agent import Agent
from consilience.beliefs import Categorical
from consilience.engines.arm import Arm, agent_key
from consilience.engines.simulate import Simulation
from consilience.learners import exact
from consilience.network import (
    IDLE,
    Asynchronous,
    Churn,
    Fixed,
    Gossip,
    Lossy,
    Replay,
    RotatingStar,
    Turn,
    complete,
    erdos_renyi,
    from_matrix,
    star,
)
from consilience.theory import (
    finite_information,
    mean_log_ratio,
    mixing_window,
    mixing_windows,
    realised,
    realised_at,
    stationary,
)

N = 6
GRAPH = erdos_renyi(N, 0.7, 1)
TABLES = np.array([[[0.5, 0.5], [0.5 + 0.06 * j, 0.5 - 0.06 * j]] for j in range(N)])
INFORMATION = finite_information(TABLES, truth=0)[:, 1]


def test_a_fixed_network_has_its_powers_and_its_centrality():
    network = star(5, 0.4)
    after = realised(Fixed(network), 400)
    public = mean_log_ratio(network, INFORMATION, [400])[0]
    np.testing.assert_allclose(after.mean_log_ratio(INFORMATION), network.W @ public)
    np.testing.assert_allclose(after.centrality, stationary(network), atol=5e-3)
    assert after.contraction == pytest.approx(0, abs=1e-9)
    assert after.rate(INFORMATION) == pytest.approx(stationary(network) @ INFORMATION, rel=0.02)


@pytest.mark.parametrize(
    "schedule",
    [
        RotatingStar(5, 1),
        Gossip(GRAPH, matching=True),
        Lossy(Fixed(GRAPH), 0.5),
        Churn(Fixed(GRAPH), up=5, down=5),
        Asynchronous(GRAPH, [1, 1, 2, 3, 1, 1.5], delay=1.2, tick=0.5),
    ],
    ids=["rotating star", "matching", "loss", "churn", "asynchronous"],
)
def test_the_predicted_rate_is_the_measured_one(schedule):
    rounds, seeds = 200, range(400)
    logs = jnp.log(jnp.array(TABLES))
    arm = Arm(
        exact(Categorical.uniform(2), lambda seen: logs[seen[0], :, seen[1]]),
        draw=lambda data, key, j: (j, jax.random.bernoulli(agent_key(key, j)).astype(int)),
        hears=schedule,
        measure=lambda data, now, n, key: {"ratio": now.state.log_weights[0] - now.state.log_weights[1]},
    )
    simulation = Simulation(arm, seeds)
    _, measured = simulation.play(1, [rounds], [True], simulation.start())
    ratio = np.asarray(measured["ratio"])[0]
    predicted = realised(schedule, rounds).mean_log_ratio(INFORMATION)
    error = 5 * ratio.std(0) / len(seeds) ** 0.5
    assert (np.abs(ratio.mean(0) - predicted) < error + 1e-9).all()


def test_histories_and_windows():
    lossy = Lossy(Fixed(GRAPH), 0.5)
    for after, turns in zip(realised_at(lossy, [3, 40]), (3, 40), strict=True):
        alone = realised(lossy, turns)
        np.testing.assert_array_equal(after.counts, alone.counts)
        assert after.contraction == alone.contraction
    windows = mixing_windows(lossy, 40, level=0.5)
    product, length = np.eye(N), windows[0]
    for number in range(1, length + 1):
        product = lossy.turn(number).matrix(N) @ product
    apart = max(np.abs(one - other).sum() / 2 for one in product for other in product)
    assert apart <= 0.5
    assert sum(windows) <= 40


def test_agents_that_never_meet_do_not_mix():
    alone = realised(Lossy(Fixed(GRAPH), 0.0), 1)
    assert alone.contraction > 0.1
    assert realised(Fixed(GRAPH), 60).contraction < 1e-6


def any_turns(seed: int, agents: int, turns: int, oldest: int) -> Replay:
    """Turns in which anybody learns, or not, and anybody hears anybody, whenever it last learned, by any age."""
    rng = np.random.default_rng(seed)
    played = []
    for number in range(1, turns + 1):
        heard = (rng.random((agents, agents)) < rng.choice([0.1, 0.7])) * rng.random((agents, agents))
        heard[heard.sum(1) == 0] = 0
        receivers, senders = (part.astype(np.int32) for part in np.nonzero(heard))
        weights = (heard / np.maximum(heard.sum(1, keepdims=True), 1e-300))[receivers, senders]
        ages = rng.integers(0, oldest + 1, len(senders)).astype(np.int32)
        learners = np.flatnonzero(rng.random(agents) < 0.6).astype(np.int32)
        played.append(Turn(learners, receivers, senders, weights, ages, float(number)))
    return Replay(agents, played)


def followed(schedule, turns: range, held: list, said: list) -> tuple[list, list]:
    """One number for every agent, and lists of what each said, turn by turn and message by message."""
    for number in turns:
        turn = schedule.turn(number)
        for agent in turn.learners:
            said[agent] = [*said[agent], held[agent]]
        pooled = dict.fromkeys(turn.receivers.tolist(), 0.0)
        for receiver, sender, weight, age in zip(*turn[1:5], strict=True):
            pooled[int(receiver)] += weight * said[sender][max(-1 - age, -len(said[sender]))]
        held = [pooled.get(agent, held[agent]) for agent in range(schedule.agents)]
    return held, said


EVERY = {
    "fixed": lambda seed: Fixed(GRAPH),
    "rotating star": lambda seed: RotatingStar(N - 1, 1),
    "gossip": lambda seed: Gossip(GRAPH, matching=True, seed=seed),
    "loss": lambda seed: Lossy(Fixed(GRAPH), 0.5, seed),
    "churn": lambda seed: Churn(Fixed(GRAPH), 4, 3, seed),
    "clocks": lambda seed: Asynchronous(GRAPH, [1, 2, 3, 1, 1.5, 5]),
    "late clocks": lambda seed: Asynchronous(GRAPH, [1, 2, 3, 1, 1.5, 2], delay=1.2, staleness=4, tick=0.5),
    "lossy clocks": lambda seed: Lossy(Asynchronous(GRAPH, [1, 2, 3, 1, 1.5, 5]), 0.3, seed),
    "churning clocks": lambda seed: Churn(Asynchronous(GRAPH, [1, 2, 3, 1, 1.5, 2], delay=1.2, tick=0.5), 4, 3, seed),
    "any": lambda seed: any_turns(seed, N, 40, oldest=0),
    "any age": lambda seed: any_turns(seed, N, 40, oldest=2),
}
each = pytest.mark.parametrize("build", EVERY.values(), ids=EVERY)


@each
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), turns=st.integers(1, 15))
def test_contraction_is_that_of_the_map_from_initial_beliefs(build, seed, turns):
    schedule = build(seed)
    columns = [followed(schedule, range(1, turns + 1), list(unit), [[float(x)] for x in unit])[0] for unit in np.eye(N)]
    P = np.array(columns).T
    apart = max(np.abs(one - other).sum() / 2 for one in P for other in P)
    np.testing.assert_allclose(P.sum(1), 1)
    assert realised(schedule, turns).contraction == pytest.approx(apart, abs=1e-12)


@each
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), level=st.sampled_from([0.9, 0.6, 0.3]))
def test_differences_shrink_by_the_level_in_every_window(build, seed, level):
    """Whatever everybody began with, what is held after k windows is within level^k of each other."""
    schedule, turns = build(seed), 40
    held = list(np.random.default_rng(seed).choice([0.0, 1.0], N))
    said, first, spread = [[x] for x in held], 1, 1.0
    for length in mixing_windows(schedule, turns, level):
        held, said = followed(schedule, range(first, first + length), held, said)
        first, spread = first + length, spread * level
        assert max(held) - min(held) <= spread + 1e-12


@pytest.mark.parametrize("name", ["clocks", "late clocks", "any", "any age"])
def test_the_engine_forgets_initial_beliefs_as_the_map_says(name):
    """Agents that begin differently and learn nothing: what they hold in the engine is what is followed."""
    schedule = EVERY[name](3)
    agent = Agent(
        lambda key: jax.random.normal(key, (2,)),
        lambda key, state, batch: (state, {}),
        lambda state: state,
        lambda state, inbox: inbox.pooled,
    )
    arm = Arm(agent, lambda data, key, j: j, schedule, lambda data, now, n, key: {"q": now.state[0]})
    simulation = Simulation(arm)
    began = np.asarray(simulation.agents(simulation.start()).state)[0]
    after, _ = simulation.play(1, [12], [False], simulation.start())
    ended = np.asarray(simulation.agents(after).state)[0]
    for k in range(2):
        held = began[:, k].tolist()
        np.testing.assert_allclose(ended[:, k], followed(schedule, range(1, 13), held, [[x] for x in held])[0])
    spread = np.ptp(ended, axis=0) / np.ptp(began, axis=0)
    assert (spread <= realised(schedule, 12).contraction + 1e-12).all()


def test_who_does_not_act_is_heard_with_what_it_said():
    """By hand: the slow agent acts in turns 3 and 6 only, and the product of the W_t would be 0.0064."""
    clocks = Asynchronous(from_matrix([[0.1, 0.9], [0.9, 0.1]]), [1, 3])
    assert realised(clocks, 6).contraction == pytest.approx(0.7192)


def test_a_network_that_stops_mixing_has_no_window():
    mixes = Fixed(complete(4)).turn(1)
    assert mixing_window(Replay(4, [mixes, mixes, IDLE]), 3) is None
    assert mixing_window(Replay(4, [mixes, IDLE, mixes]), 3) == 2
    assert mixing_window(Replay(4, [IDLE]), 1) is None


@pytest.mark.parametrize("shape", [(), (1,), (N,), (3, 2), (N, N)])
def test_information_about_many_things_at_once(shape):
    after = realised(Lossy(Fixed(GRAPH), 0.5), 9)
    values = np.random.default_rng(0).normal(size=(N, *shape))
    at_once = after.mean_log_ratio(values)
    assert at_once.shape == values.shape
    for place in np.ndindex(*shape):
        np.testing.assert_allclose(at_once[(slice(None), *place)], after.counts @ values[(slice(None), *place)])
