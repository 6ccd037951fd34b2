"""Agents that make unequal numbers of steps: the devices they are laid out on, and cut over, change no number."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consilience.engines.arm import Arm, agent_key
from consilience.engines.simulate import Simulation
from consilience.errors import InputError
from consilience.learners import Minibatches, variational
from consilience.models import mlp
from consilience.network import Churn, Fixed, RotatingStar, erdos_renyi

STEPS = (3, 0, 11, 2, 1, 6, 4)
NETWORK = erdos_renyi(len(STEPS), 0.6, 3)
# No hidden layer and inputs that are never zero: where a weight has no data, Adam makes full steps of rounding errors.
MODEL = mlp((4,), 3, ())
AGENT = variational(MODEL, MODEL.init(jax.random.key(1)))
close = partial(jax.tree.map, partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9))


def arm_of(hears=NETWORK, steps=STEPS, work=STEPS) -> Arm:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(50, 4)), rng.integers(0, 3, 50)

    def draw(data, key, number):
        chosen = jax.random.randint(agent_key(key, number), (max(steps), 8), 0, 50)
        return Minibatches(*data, chosen, 50.0, of_round=jnp.array(steps)[number])

    def measure(data, progress, number, key):
        return {"mean": progress.public.mean.sum(), "steps": progress.state.steps}

    return Arm(AGENT, draw, hears, measure, data=lambda *_: data, steps=max(steps), work=work)


def played(arm, devices, rounds=3):
    simulation = Simulation(arm, [0, 5], jax.devices()[:devices])
    progress, metrics = simulation.play(1, [1, rounds], [True, True], simulation.start())
    return simulation.agents(progress), metrics


@cache
def on(devices):
    """The fixed network, said as it is: what several tests look at."""
    return played(arm_of(), devices)


@pytest.mark.parametrize(
    "hears",
    [
        NETWORK,
        pytest.param(Churn(Fixed(NETWORK), up=3, down=2), marks=pytest.mark.soak),
        pytest.param(RotatingStar(6, 2), marks=pytest.mark.soak),
    ],
    ids=["fixed", "churn", "rotating star"],
)
def test_the_devices_change_no_number(hears):
    one, *others = (on(devices) if hears is NETWORK else played(arm_of(hears), devices) for devices in (1, 2, 3, 4))
    for other in others:
        close(one, other)


@pytest.mark.parametrize(
    ("work", "devices", "cut"),
    [
        (STEPS, 2, True),
        (None, 2, True),
        ((1, 1, 1, 1, 1, 1, 9), 3, False),
        ((2, 1, 2, 0, 2, 1, 2), 3, True),  # wrong, and cut: who is played in which pieces is another matter
        ((0, 0, 0, 0, 0, 0, 1), 4, False),
    ],
)
def test_what_is_said_of_the_work_changes_no_number(work, devices, cut):
    """A wrong guess costs time and nothing else."""
    arm = arm_of(work=work)
    assert bool(Simulation(arm, [0], jax.devices()[:devices]).placement.left) == cut
    close(on(1), on(devices) if work is STEPS else played(arm, devices))


@pytest.mark.parametrize("devices", [1, 2])
def test_everybody_makes_its_own_steps_in_every_round(devices):
    _, metrics = on(devices)
    np.testing.assert_array_equal(metrics["steps"], np.array([1, 3])[:, None, None] * np.tile(STEPS, (1, 2, 1)))


@pytest.mark.parametrize("devices", [1, 3])
def test_who_makes_no_steps_still_hears_and_is_heard(devices):
    """Without data of its own, what an agent says in a round is what it pooled in the one before."""
    simulation = Simulation(arm_of(), [0], jax.devices()[:devices])
    progress, _ = simulation.play(1, [1], [False], simulation.start())
    pooled = simulation.agents(progress).state.prior
    progress, _ = simulation.play(2, [2], [False], progress)
    after = simulation.agents(progress)
    for said, q in zip(after.public, pooled, strict=True):
        np.testing.assert_allclose(said[:, 1], q[:, 1], rtol=1e-12)
        assert (np.abs(said[:, 0] - q[:, 0]) > 1e-6).any()
    row = NETWORK.W.toarray()[1]
    for q, said in zip(after.state.prior, after.public, strict=True):
        np.testing.assert_allclose(q[0, 1], row @ said[0], rtol=1e-12)


def test_nobody_makes_a_step():
    """Beliefs are pooled, and stay as they all began."""
    arm = arm_of(steps=(0, 0, 0, 1, 0, 0, 0))._replace(work=None)
    none = arm._replace(draw=lambda data, key, number: arm.draw(data, key, number)._replace(of_round=jnp.array(0)))
    simulation = Simulation(none, [0], jax.devices()[:2])
    assert simulation.placement.left
    begun = simulation.agents(simulation.start())
    after, _ = simulation.play(1, [2], [False], simulation.start())
    close(begun.state.fit.mean, simulation.agents(after).state.fit.mean)


def test_work_that_cannot_be():
    with pytest.raises(InputError, match="work must have one number for each of 7 agents"):
        Simulation(arm_of(work=(1, 2)))
