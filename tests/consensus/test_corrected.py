"""Corrected agents come to rest where all data together leads; others where what each would do alone cancels."""

import jax
import jax.numpy as jnp
import numpy as np
import plain_agents
import pytest

from consilience.consensus import sites
from consilience.learners import Minibatches
from consilience.learners.natural import NaturalOptions, natural_learner
from consilience.learners.packing import packing_of
from consilience.models import Model
from consilience.network import Fixed, Lossy, Tables, ring, star

D, SIZES, STEPS = 3, (4, 7, 12, 20), 6
MODEL = Model(lambda key: {"w": jnp.zeros(D)}, lambda own, x: x @ own["w"][:, None])
RNG = np.random.default_rng(0)
X = [jnp.asarray(RNG.normal(size=(rows, D)) * [1.0, 2.0, 0.5] + RNG.normal(size=D)) for rows in SIZES]
Y = [x @ jnp.array([1.0, -2.0, 0.5]) + jnp.asarray(RNG.normal(size=len(x))) for x in X]
BEST = jnp.linalg.solve(sum(x.T @ x for x in X), sum(x.T @ y for x, y in zip(X, Y, strict=True)))


def gaussian(outputs, targets):
    return -0.5 * (outputs[:, 0] - targets) ** 2


def off(schedule, correction, rounds=600, passes=1):
    """How far from the best of all data the agent is that is farthest from it; no prior and no noise to speak of."""
    options = NaturalOptions(
        correction=correction,
        learning_rate=0.02,
        decay=1.0,
        momentum=0.5,
        pull=0.0,
        temperature=1e-9,
        curvature=2.0,
        curvature_decay=1 - 1e-12,
    )
    given = MODEL.init(plain_agents.KEY)
    agent = sites(natural_learner(MODEL, packing_of(given), options, gaussian, summed=True))
    chosen = [jnp.tile(jnp.arange(rows), (STEPS, 1)) for rows in SIZES]
    data = [Minibatches(x, y, rows, float(len(x))) for x, y, rows in zip(X, Y, chosen, strict=True)]
    tables = Tables(schedule, rounds, passes)
    turns = [tables.turn(number) for number in range(1, rounds + 1)]
    states = plain_agents.play(plain_agents.compiled(agent), [given] * len(SIZES), turns, lambda number, i: data[i])
    return max(float(np.abs(state.q.mean - BEST).max()) for state in states)


@pytest.mark.parametrize(
    ("schedule", "passes"),
    [(star(3), 2), (ring(4), 1), (Lossy(Fixed(ring(4)), 0.3), 2)],
    ids=["star, newest at hand", "ring, news a round late", "ring, news that is lost"],
)
def test_agents_rest_where_all_data_together_leads(schedule, passes):
    assert off(schedule, 0.5, passes=passes) < 1e-4


def test_without_a_correction_they_do_not():
    assert off(star(3), 0.0, passes=2) > 1e-2


def test_a_round_of_data_alone_has_nothing_to_be_corrected_by():
    """One agent: the cavity is the first prior, which is nothing here."""
    options = NaturalOptions(learning_rate=0.02, momentum=0.5, pull=0.0, temperature=1e-9, curvature_decay=1 - 1e-12)
    given = MODEL.init(plain_agents.KEY)
    data = Minibatches(X[3], Y[3], jnp.tile(jnp.arange(SIZES[3]), (STEPS, 1)), float(SIZES[3]))
    found = []
    for correction in (0.0, 0.7):
        made = options.model_copy(update={"correction": correction})
        agent = sites(natural_learner(MODEL, packing_of(given), made, gaussian, summed=True))
        turns = [Tables(ring(1), 5).turn(number) for number in range(1, 6)]
        (state,) = plain_agents.play(plain_agents.compiled(agent), [given], turns, lambda number, i: data)
        found.append(state.q.mean)
    np.testing.assert_allclose(*found, rtol=1e-4)
    assert jax.numpy.isfinite(found[0]).all()
