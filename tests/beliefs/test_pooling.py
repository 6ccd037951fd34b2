"""The laws of pooling, for every family."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from consilience.beliefs import Categorical, Gaussian, MeanField, Point, pool
from consilience.network import erdos_renyi, from_matrix

N, D = 4, 3


def stack_of(family, seed: int):
    rng = np.random.default_rng(seed)
    if family is Categorical:
        return Categorical(jnp.array(rng.normal(size=(N, D)) * 10))
    if family is Gaussian:
        roots = rng.normal(size=(N, D, D))
        precision = jnp.array(roots @ roots.transpose(0, 2, 1) + 0.1 * np.eye(D))
        return Gaussian(precision, jnp.array(rng.normal(size=(N, D))))
    if family is MeanField:
        return MeanField(jnp.array(rng.uniform(0.1, 5, (N, D))), jnp.array(rng.normal(size=(N, D))))
    return Point(jnp.array(rng.normal(size=(N, D))))


def rows(seed: int) -> jnp.ndarray:
    return jnp.array(np.random.default_rng(seed).dirichlet(np.ones(N), size=N))


FAMILIES = [Categorical, Gaussian, MeanField, Point]
seeds = st.integers(0, 10_000)


def assert_same(one, other, **tolerance):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, **tolerance)


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=25, deadline=None)
@given(seed=seeds)
def test_pooling_equal_beliefs_returns_them(family, seed):
    belief = jax.tree.map(lambda x: x[0], stack_of(family, seed))
    same = jax.tree.map(lambda x: jnp.broadcast_to(x, (N, *x.shape)), belief)
    assert_same(pool(rows(seed)[0], same), belief, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=25, deadline=None)
@given(seed=seeds)
def test_pooling_twice_is_pooling_with_composed_weights(family, seed):
    beliefs, first, second = stack_of(family, seed), rows(seed + 1), rows(seed + 2)
    assert_same(pool(second, pool(first, beliefs)), pool(second @ first, beliefs), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=25, deadline=None)
@given(seed=seeds)
def test_nonzero_entries_pool_like_the_matrix(family, seed):
    network = erdos_renyi(N, 0.6, seed)
    beliefs = stack_of(family, seed)
    assert_same(
        pool(network.to_edges(), beliefs), pool(jnp.array(network.W.toarray()), beliefs), rtol=1e-12, atol=1e-12
    )


def brute_force(log_densities: np.ndarray, weights: np.ndarray, cell: float) -> np.ndarray:
    """Eq. 4 on a grid: exponentiate the weighted sum of log densities and divide by the sum."""
    total = weights @ log_densities
    unnormalised = np.exp(total - total.max())
    return unnormalised / (unnormalised.sum() * cell)


@settings(max_examples=20, deadline=None)
@given(seed=seeds)
def test_gaussian_pooling_is_equation_4_on_a_grid(seed):
    rng = np.random.default_rng(seed)
    means, variances = rng.uniform(-1, 1, (3, 1)), rng.uniform(0.3, 2, (3, 1))
    beliefs = MeanField.from_moments(jnp.array(means), jnp.array(variances))
    weights = rng.dirichlet(np.ones(3))
    grid, cell = np.linspace(-12, 12, 4001, retstep=True)
    per_agent = jax.vmap(lambda b: jax.vmap(lambda x: b.log_density(x[None]))(jnp.array(grid)))(beliefs)
    pooled = pool(jnp.array(weights), beliefs)
    ours = jnp.exp(jax.vmap(lambda x: pooled.log_density(x[None]))(jnp.array(grid)))
    np.testing.assert_allclose(ours, brute_force(np.asarray(per_agent), weights, cell), atol=1e-8)


def test_full_gaussian_pooling_is_equation_4_on_a_grid():
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(3, 2, 2))
    covariances = jnp.array(roots @ roots.transpose(0, 2, 1) + 0.4 * np.eye(2))
    beliefs = Gaussian.from_moments(jnp.array(rng.uniform(-1, 1, (3, 2))), covariances)
    weights = np.array([0.2, 0.5, 0.3])
    line, cell = np.linspace(-8, 8, 161, retstep=True)
    points = jnp.array(np.stack(np.meshgrid(line, line), -1).reshape(-1, 2))
    per_agent = jax.vmap(lambda b: jax.vmap(b.log_density)(points))(beliefs)
    ours = jnp.exp(jax.vmap(pool(jnp.array(weights), beliefs).log_density)(points))
    np.testing.assert_allclose(ours, brute_force(np.asarray(per_agent), weights, cell**2), atol=1e-7)


@settings(max_examples=30, deadline=None)
@given(logs=hnp.arrays(np.float64, (N, D), elements=st.floats(-1e6, 0)), seed=seeds)
def test_log_probabilities_down_to_minus_a_million_stay_finite(logs, seed):
    beliefs = Categorical(jnp.array(logs)).normalised()
    weights = rows(seed)
    pooled = pool(weights, beliefs).normalised()
    assert jnp.isfinite(pooled.log_weights).all()
    np.testing.assert_allclose(pooled.moments().sum(-1), 1, rtol=1e-12)
    assert jnp.isfinite(pooled.kl(beliefs)).all()
    direct = np.asarray(weights) @ logs
    direct -= np.logaddexp.reduce(direct, axis=-1, keepdims=True)
    np.testing.assert_allclose(pooled.log_weights, direct, atol=1e-7, rtol=1e-11)


@pytest.mark.parametrize("condition", [1e3, 1e6, 1e9, 1e12])
@pytest.mark.parametrize("kind", ["rotated", "units"])
def test_condition_numbers_up_to_1e12_stay_finite(condition, kind):
    rng = np.random.default_rng(1)
    spectrum = np.geomspace(1, 1 / condition, D)
    rotations = [np.linalg.qr(rng.normal(size=(D, D)))[0] if kind == "rotated" else np.eye(D) for _ in range(N)]
    covariances = jnp.array([q @ np.diag(spectrum) @ q.T for q in rotations])
    beliefs = Gaussian.from_moments(jnp.array(rng.normal(size=(N, D))), (covariances + covariances.swapaxes(1, 2)) / 2)
    pooled = pool(rows(5), beliefs)
    mean, covariance = pooled.moments()
    for value in (mean, covariance, pooled.kl(beliefs), beliefs.kl(pooled), pooled.log_density(mean)):
        assert jnp.isfinite(value).all()
    assert (jnp.linalg.eigvalsh(covariance) > 0).all()
    assert (beliefs.kl(pooled) > -1e-3).all()
    residual = jnp.einsum("nij,nj->ni", pooled.precision, mean) - pooled.precision_mean
    assert float(jnp.abs(residual).max() / jnp.abs(pooled.precision_mean).max()) < 1e-9


def test_a_lone_agent_keeps_its_belief():
    beliefs = stack_of(Gaussian, 0)
    assert_same(pool(from_matrix(np.eye(N)).to_edges(), beliefs), beliefs)
