"""Every family is driven through the one protocol, and checked against scipy or the definition."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from consilience.beliefs import Categorical, Gaussian, MeanField, Point
from consilience.errors import InputError

RNG = np.random.default_rng(3)


def spd(d: int) -> jnp.ndarray:
    root = RNG.normal(size=(d, d))
    return jnp.array(root @ root.T + 0.3 * np.eye(d))


def members(family):
    """Two members of a family and a value in its domain."""
    if family is Categorical:
        p = RNG.dirichlet(np.ones(5), size=2)
        return Categorical.from_moments(jnp.array(p[0])), Categorical.from_moments(jnp.array(p[1])), jnp.array(2)
    if family is Gaussian:
        a, b = (Gaussian.from_moments(jnp.array(RNG.normal(size=3)), spd(3)) for _ in range(2))
        return a, b, jnp.array(RNG.normal(size=3))
    if family is MeanField:
        a, b = (
            MeanField.from_moments(jnp.array(RNG.normal(size=3)), jnp.array(RNG.uniform(0.2, 2, 3))) for _ in range(2)
        )
        return a, b, jnp.array(RNG.normal(size=3))
    return Point(jnp.array([1.0, 2.0])), Point(jnp.array([1.0, 3.0])), jnp.array([1.0, 2.0])


FAMILIES = [Categorical, Gaussian, MeanField, Point]


@pytest.mark.parametrize("family", FAMILIES)
def test_moments_go_back_and_forth(family):
    belief, _, _ = members(family)
    moments = belief.moments()
    again = family.from_moments(*moments) if isinstance(moments, tuple) else family.from_moments(moments)
    for before, after in zip(jax.tree.leaves(belief), jax.tree.leaves(again), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_kl_is_zero_for_itself_and_positive_otherwise(family):
    one, other, _ = members(family)
    assert abs(float(one.kl(one))) < 1e-12
    assert float(one.kl(other)) > 0


@pytest.mark.parametrize("family", FAMILIES)
def test_everything_works_on_stacks(family):
    one, other, value = members(family)
    stack = jax.tree.map(lambda a, b: jnp.stack([a, b]), one, other)
    values = jnp.stack([value, value])
    np.testing.assert_allclose(stack.log_density(values)[1], other.log_density(value), rtol=1e-12)
    np.testing.assert_allclose(stack.kl(stack), 0, atol=1e-12)
    draws = stack.sample(jax.random.key(0), 7)
    assert draws.shape == (7, 2, *value.shape)


@pytest.mark.parametrize("family", [Categorical, Gaussian, MeanField])
def test_kl_is_the_mean_log_ratio_of_samples(family):
    one, other, _ = members(family)
    draws = one.sample(jax.random.key(1), 200_000)
    ratios = jax.vmap(lambda x: one.log_density(x) - other.log_density(x))(draws)
    assert float(ratios.mean()) == pytest.approx(float(one.kl(other)), abs=5 * float(ratios.std()) / 200_000**0.5)


def test_log_densities_agree_with_scipy():
    g, _, x = members(Gaussian)
    mean, covariance = g.moments()
    assert float(g.log_density(x)) == pytest.approx(stats.multivariate_normal(mean, covariance).logpdf(x))
    m, _, x = members(MeanField)
    mean, variance = m.moments()
    assert float(m.log_density(x)) == pytest.approx(stats.norm(mean, np.sqrt(variance)).logpdf(x).sum())


def test_samples_have_the_moments():
    g, _, _ = members(Gaussian)
    draws = np.asarray(g.sample(jax.random.key(2), 400_000))
    mean, covariance = g.moments()
    np.testing.assert_allclose(draws.mean(0), mean, atol=0.03)
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.08)
    c, _, _ = members(Categorical)
    counts = np.bincount(np.asarray(c.sample(jax.random.key(3), 100_000)), minlength=5)
    np.testing.assert_allclose(counts / 100_000, c.moments(), atol=0.01)


def test_gaussian_of_one_dimension_is_meanfield():
    mean, variance = jnp.array([0.7]), jnp.array([2.5])
    full, field = Gaussian.from_moments(mean, jnp.diag(variance)), MeanField.from_moments(mean, variance)
    np.testing.assert_allclose(full.log_density(jnp.array([1.0])), field.log_density(jnp.array([1.0])), rtol=1e-12)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: MeanField.from_moments(jnp.zeros(2), jnp.array([1.0, -0.5])), "variance: must be positive .* -0.5"),
        (lambda: MeanField.from_moments(jnp.array([jnp.nan]), jnp.ones(1)), "mean: must be finite, got nan"),
        (lambda: Gaussian.from_moments(jnp.zeros(2), jnp.diag(jnp.array([1.0, -2.0]))), "covariance: .* -2.0"),
        (lambda: Gaussian.from_moments(jnp.zeros(2), jnp.array([[1.0, 2.0], [2.0, 1.0]])), "positive definite"),
        (lambda: Categorical.from_moments(jnp.array([1.0, 0.0])), "probabilities: must all be greater than 0"),
        (lambda: Categorical.from_moments(jnp.array([0.5, 0.2])), "probabilities: must sum to 1, got 0.7"),
        (lambda: Point.from_moments(jnp.array([jnp.inf])), "value: must be finite, got inf"),
    ],
)
def test_bad_moments_are_refused_by_name(build, message):
    with pytest.raises(InputError, match=message):
        build()


def test_a_log_ratio_is_a_difference_of_log_densities():
    belief, other, x = members(Gaussian)
    y = other.mean
    np.testing.assert_allclose(belief.log_ratio(x, y), belief.log_density(x) - belief.log_density(y), rtol=1e-10)
