"""Sites and tracking in the engine: what plain agents with mailboxes come to, on any devices, agents cut or whole."""

import jax
import jax.numpy as jnp
import numpy as np
import plain_agents
import pytest

from consilience.consensus import sites, tracking
from consilience.engines.arm import Arm
from consilience.engines.simulate import Simulation
from consilience.learners import Minibatches
from consilience.learners.natural import NaturalOptions, natural_learner
from consilience.learners.packing import packing_of
from consilience.models import mlp
from consilience.network import Fixed, Flows, Lossy, Tables, path, ring, star

N, STEPS, ROUNDS = 7, 4, 5
MODEL = mlp((4,), 3, (6,))
GIVEN = MODEL.init(jax.random.key(1))
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(50, 4)), RNG.integers(0, 3, 50)
CHOSEN = jnp.asarray(RNG.integers(50, size=(N, STEPS, 8)))
LEARNER = natural_learner(MODEL, packing_of(GIVEN), NaturalOptions(pull=0.0, learning_rate=0.02))
# Each its own noise: the engine's learners have keys of their own, plain agents all have one.
LEARNER = LEARNER._replace(fit=lambda key, own, batch, fit=LEARNER.fit: fit(plain_agents.KEY, own, batch))
CASES = {
    "sites on a star": (sites(LEARNER), Tables(star(N - 1), ROUNDS)),
    "sites on a path": (sites(LEARNER, 0.5), Tables(path(N), ROUNDS)),
    "sites with loss": (sites(LEARNER), Tables(Lossy(Fixed(ring(N)), 0.4), ROUNDS)),
    "tracking on a star": (tracking(LEARNER, N), Flows(star(N - 1), ROUNDS)),
    "tracking with loss": (tracking(LEARNER, N), Flows(Lossy(Fixed(ring(N)), 0.4), ROUNDS)),
}


def batch(number):
    return Minibatches(jnp.asarray(X), jnp.asarray(Y), CHOSEN[number], 50.0)


def in_the_engine(agent, hears, devices):
    arm = Arm(
        agent._replace(init=lambda key: agent.init(GIVEN)),
        lambda data, key, number: batch(number),
        hears,
        lambda data, now, number, key: {"mean": now.state.q.mean.sum()},
        steps=STEPS,
    )
    simulation = Simulation(arm, [0], jax.devices()[:devices])
    progress, _ = simulation.play(1, [2], [False], simulation.start())
    progress, _ = simulation.play(3, [ROUNDS], [False], progress)
    return simulation, simulation.agents(progress).state


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.soak if case.endswith("star") else ()) for case in CASES]
)
def test_the_engine_does_what_plain_agents_do(case):
    agent, hears = CASES[case]
    turns = [hears.turn(number) for number in range(1, ROUNDS + 1)]
    plain = plain_agents.play(plain_agents.compiled(agent), [GIVEN] * N, turns, lambda number, i: batch(i))
    for devices in (1, 3):
        simulation, states = in_the_engine(agent, hears, devices)
        if devices == 3 and "loss" not in case:
            assert simulation.placement.left  # seven agents on three devices: some are cut
        for i, state in enumerate(plain):
            for one, other in zip(jax.tree.leaves(states), jax.tree.leaves(state), strict=True):
                np.testing.assert_allclose(one[0, i], other, rtol=1e-6, atol=1e-9)
