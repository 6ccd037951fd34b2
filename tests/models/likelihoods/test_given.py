"""A user's own density: against the same law built in, and refused by name."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from consilience.beliefs import MeanField
from consilience.errors import InputError
from consilience.models.likelihoods import Gaussian, Likelihood, given
from consilience.models.likelihoods.given import OutputDraws

RNG = np.random.default_rng(0)
LAPLACE = given(lambda f, y: -jnp.abs(y - f[:, 0]) * jnp.exp(-f[:, 1]) - f[:, 1] - jnp.log(2.0), 2, "laplace")
OUTPUTS, Y = RNG.normal(size=(30, 5, 2)), RNG.normal(size=30)


def test_nll_of_the_mixture():
    density = stats.laplace.pdf(Y[:, None], OUTPUTS[..., 0], np.exp(OUTPUTS[..., 1]))
    ours = LAPLACE.scores(OutputDraws(jnp.array(OUTPUTS)), jnp.array(Y))
    assert list(ours) == ["nll"]
    assert float(ours["nll"]) == pytest.approx(-np.log(density.mean(1)).mean())


def test_agrees_with_a_law_that_is_built_in():
    own = given(lambda f, y: stats_normal(f[:, 0], y), 1)
    belief, key = MeanField.from_moments(jnp.array([1.0, 0.5]), jnp.array([0.2, 0.1])), jax.random.key(0)
    inputs, apply = jnp.array(RNG.normal(size=(30, 2))), lambda w, x: (x @ w)[:, None]
    theirs = Gaussian(0.5)
    scores = (each.scores(each.predictive(apply, belief, inputs, key, 9), jnp.array(Y)) for each in (own, theirs))
    assert float(next(scores)["nll"]) == pytest.approx(float(next(scores)["nll"]))


def stats_normal(mean, y):
    return jax.scipy.stats.norm.logpdf(y, mean, 0.5)


def test_padding_changes_nothing():
    padded = OutputDraws(jnp.concatenate([OUTPUTS, np.full((4, 5, 2), np.nan)]))
    weights = jnp.concatenate([np.ones(30), np.zeros(4)])
    weighted = jax.jit(LAPLACE.scores)(padded, jnp.concatenate([Y, np.zeros(4)]), weights)
    plain = LAPLACE.scores(OutputDraws(jnp.array(OUTPUTS)), jnp.array(Y))
    assert float(weighted["nll"]) == pytest.approx(float(plain["nll"]), rel=1e-12)


def test_columns_that_are_told():
    told = LAPLACE.told(OutputDraws(jnp.array(OUTPUTS)))
    assert list(told) == ["mean_0", "sd_0", "mean_1", "sd_1"]
    np.testing.assert_allclose(told["mean_1"], OUTPUTS[..., 1].mean(1))
    np.testing.assert_allclose(told["sd_0"], OUTPUTS[..., 0].std(1))


def test_a_likelihood_is_one():
    assert isinstance(LAPLACE, Likelihood)
    assert (LAPLACE.name, LAPLACE.outputs) == ("laplace", 2)


@pytest.mark.parametrize(("density", "shape"), [(lambda f, y: f, r"\(30, 1\)"), (lambda f, y: f.sum(), r"\(\)")])
def test_a_density_of_the_wrong_shape_is_named(density, shape):
    with pytest.raises(InputError, match=f"log_density: must give one number for each of 30 examples, got .* {shape}"):
        given(density, 1).log_density(jnp.ones((30, 1)), jnp.ones(30))


def test_no_outputs_are_refused():
    with pytest.raises(InputError, match="outputs: must be at least 1, got 0"):
        given(lambda f, y: f, 0)
