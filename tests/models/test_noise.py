"""The hashed normal numbers: their exact law, and their independence of position and key."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from consilience.models import noise


def draws(seed: int, shape=(500, 400)) -> np.ndarray:
    return np.asarray(noise.normal(shape, jax.random.bits(jax.random.key(seed), (noise.KEY_WORDS,), jnp.uint32)))


def test_exact_moments_are_those_of_a_normal():
    mass = noise._byte_sum_distribution()
    t = np.arange(len(mass)) - 510.0
    values = sum(c * t ** (2 * k + 1) for k, c in enumerate(noise._fitted_polynomial()))
    moments = [float((values**k * mass).sum()) for k in range(7)]
    np.testing.assert_allclose(moments, [1, 0, 1, 0, 3, 0, 15], atol=0.01)
    assert np.abs(values).max() < 5.2
    assert np.abs(np.cumsum(mass) - mass / 2 - stats.norm.cdf(values)).max() < 1e-3


def test_draws_are_white():
    e = draws(0)
    n = e.size
    assert abs(e.mean()) < 4 / n**0.5
    assert abs(e.var() - 1) < 4 * (2 / n) ** 0.5
    for neighbour in (e[1:] * e[:-1], e[:, 1:] * e[:, :-1], e[1:, 1:] * e[:-1, :-1]):
        assert abs(neighbour.mean()) < 4 / n**0.5
    squares = e**2 - 1
    assert abs((squares[1:] * squares[:-1]).mean()) < 4 * 2 / n**0.5


def test_keys_give_unrelated_draws():
    stacks = np.stack([draws(seed, (100, 100)).ravel() for seed in range(30)])
    correlations = np.corrcoef(stacks)[np.triu_indices(30, 1)]
    assert np.abs(correlations).max() < 5 / 100


def test_the_same_key_gives_the_same_draws():
    np.testing.assert_array_equal(draws(3), draws(3))


@pytest.mark.parametrize("seed", [0, 1])
def test_kolmogorov_distance(seed):
    assert stats.kstest(draws(seed).ravel(), "norm").statistic < 0.005
