"""The learners against Bayes' rule worked out by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.beliefs import Categorical, Gaussian
from consilience.errors import InputError
from consilience.learners import Observations, conjugate, evidence, exact

KEY = jax.random.key(0)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), k=st.integers(2, 6))
def test_exact_is_bayes_rule(seed, k):
    rng = np.random.default_rng(seed)
    prior, likelihood = rng.dirichlet(np.ones(k)), rng.uniform(0.05, 1, k)
    agent = exact(Categorical.from_moments(jnp.array(prior)), lambda batch: jnp.log(batch))
    belief, info = agent.learn(KEY, agent.init(KEY), jnp.array(likelihood))
    np.testing.assert_allclose(belief.moments(), prior * likelihood / (prior @ likelihood), rtol=1e-10)
    assert info == {}


def test_exact_survives_a_hundred_thousand_nats():
    agent = exact(Categorical.uniform(2), lambda batch: batch)
    belief = agent.init(KEY)
    for _ in range(100):
        belief, _ = agent.learn(KEY, belief, jnp.array([0.0, -1e3]))
    assert float(belief.log_probabilities()[1]) == -1e5


def batch_of(rng, m, d):
    features = jnp.array(rng.normal(size=(m, d)))
    return Observations(features, jnp.array(rng.normal(size=m)))


def test_conjugate_is_ridge_regression():
    """The posterior mean from N(0, s²I) is ridge regression with penalty α²/s²."""
    rng = np.random.default_rng(0)
    data, s2, noise = batch_of(rng, 20, 3), 0.5, 0.8
    agent = conjugate(Gaussian.from_moments(jnp.zeros(3), s2 * jnp.eye(3)), noise)
    belief, _ = agent.learn(KEY, agent.init(KEY), data)
    X, y = np.asarray(data.features), np.asarray(data.labels)
    ridge = np.linalg.solve(X.T @ X + noise**2 / s2 * np.eye(3), X.T @ y)
    np.testing.assert_allclose(belief.mean, ridge, rtol=1e-10)


def test_conjugate_in_pieces_is_conjugate_at_once():
    rng = np.random.default_rng(1)
    parts = [batch_of(rng, 4, 3) for _ in range(5)]
    agent = conjugate(Gaussian.from_moments(jnp.zeros(3), jnp.eye(3)), 0.5)
    streamed = agent.init(KEY)
    for part in parts:
        streamed, _ = agent.learn(KEY, streamed, part)
    whole = Observations(jnp.concatenate([p.features for p in parts]), jnp.concatenate([p.labels for p in parts]))
    at_once, _ = agent.learn(KEY, agent.init(KEY), whole)
    np.testing.assert_allclose(streamed.precision, at_once.precision, rtol=1e-12)
    np.testing.assert_allclose(streamed.precision_mean, at_once.precision_mean, rtol=1e-11)


def test_conjugate_is_bayes_rule_on_a_grid():
    data = Observations(jnp.array([[1.0], [0.5]]), jnp.array([0.7, -0.1]))
    agent = conjugate(Gaussian.from_moments(jnp.zeros(1), 0.5 * jnp.eye(1)), 0.8)
    belief, _ = agent.learn(KEY, agent.init(KEY), data)
    grid, cell = np.linspace(-6, 6, 6001, retstep=True)
    prior = np.exp(-(grid**2) / (2 * 0.5))
    residuals = np.asarray(data.labels)[:, None] - np.asarray(data.features) * grid
    posterior = prior * np.exp(-(residuals**2).sum(0) / (2 * 0.8**2))
    posterior /= posterior.sum() * cell
    ours = jnp.exp(jax.vmap(lambda t: belief.log_density(t[None]))(jnp.array(grid)))
    np.testing.assert_allclose(ours, posterior, atol=1e-9)


def test_nan_in_data_is_refused():
    with pytest.raises(InputError, match="labels: must be finite, got nan"):
        evidence(Observations(jnp.ones((1, 1)), jnp.array([jnp.nan])), 1.0)
    with pytest.raises(InputError, match="features: must be finite, got inf"):
        evidence(Observations(jnp.full((1, 1), jnp.inf), jnp.ones(1)), 1.0)
