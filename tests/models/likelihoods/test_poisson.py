"""Counts: against scipy, scikit-learn, sums over all whole numbers and sampling."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import root_mean_squared_error

from consilience.beliefs import MeanField
from consilience.errors import InputError
from consilience.models.likelihoods import Likelihood, Poisson
from consilience.models.likelihoods.poisson import PoissonDraws

RNG = np.random.default_rng(0)
N, L = 60, 6
RATES = np.exp(RNG.uniform(-3, 4, (N, 1)) + 0.4 * RNG.normal(size=(N, L)))
Y = RNG.poisson(RATES[:, 0])
DRAWS = PoissonDraws(jnp.log(RATES))


def brute_crps(y, rates, most):
    below = stats.poisson.cdf(np.arange(most)[None, :, None], rates[:, None, :]).mean(-1)
    return ((below - (y[:, None] <= np.arange(most))) ** 2).sum(1)


def inside(y, rates, level):
    """Whether y lies between the quantiles of the mixture, found by counting."""
    ks = np.arange(2000)
    below = stats.poisson.cdf(ks[None, :, None], rates[:, None, :]).mean(-1)
    low, high = ((below < share).sum(1) for share in ((1 - level) / 2, (1 + level) / 2))
    return (low <= y) & (y <= high), low, high


def test_log_density_agrees_with_scipy():
    y = np.array([0, 0, 1, 2, 9, 10, 11, 50, 1000, 10**6])
    f = RNG.normal(size=10) * 0.5 + np.log(y + 0.1) - np.log(3)
    ours = Poisson(centre=3.0).log_density(jnp.array(f)[:, None], jnp.array(y))
    np.testing.assert_allclose(ours, stats.poisson.logpmf(y, 3 * np.exp(f)), rtol=1e-8, atol=1e-9)


def test_slopes_are_the_difference_of_count_and_rate():
    f, y = jnp.array(RNG.normal(size=(30, 1))), jnp.array(RNG.integers(0, 20, 30))
    slope = jax.grad(lambda f: Poisson(centre=2.0).log_density(f, y).sum())(f)
    np.testing.assert_allclose(slope[:, 0], y - 2 * jnp.exp(f[:, 0]), rtol=1e-10)


def test_large_counts_in_single_precision():
    """y log λ, λ and log y! would be off by 1 here, each."""
    y, f = jnp.array([10**6], jnp.int32), jnp.log(jnp.array([[1.001e6]], jnp.float32))
    expected = stats.poisson.logpmf(10**6, float(np.exp(np.float64(f[0, 0]))))
    assert float(Poisson().log_density(f, y)[0]) == pytest.approx(expected, abs=0.01)


def test_scores_against_brute_force():
    ours = {name: float(value) for name, value in Poisson(most=500).scores(DRAWS, jnp.array(Y)).items()}
    assert list(ours) == ["rmse", "nll", "crps", "coverage_50", "coverage_90", "aleatoric", "epistemic"]
    assert ours["rmse"] == pytest.approx(root_mean_squared_error(Y, RATES.mean(1)))
    assert ours["nll"] == pytest.approx(-np.log(stats.poisson.pmf(Y[:, None], RATES).mean(1)).mean())
    assert ours["crps"] == pytest.approx(brute_crps(Y, RATES, 2000).mean(), rel=1e-9)
    for level in (50, 90):
        assert ours[f"coverage_{level}"] == pytest.approx(inside(Y, RATES, level / 100)[0].mean())
    assert ours["aleatoric"] == pytest.approx(np.sqrt(RATES.mean(1)).mean())
    assert ours["epistemic"] == pytest.approx(RATES.std(1).mean())


def test_coverage_against_sampling():
    """Counts that follow the predictive law lie inside at least as often as the level says."""
    rates = np.repeat(RATES, 300, axis=0)
    y = RNG.poisson(np.take_along_axis(rates, RNG.integers(0, L, (len(rates), 1)), 1))[:, 0]
    ours = Poisson(most=500).scores(PoissonDraws(jnp.log(rates)), jnp.array(y))
    for level in (50, 90):
        exact = inside(np.zeros(N), RATES, level / 100)
        mass = stats.poisson.cdf(exact[2][:, None], RATES) - stats.poisson.cdf(exact[1][:, None] - 1, RATES)
        assert mass.mean(1).min() >= level / 100 - 1e-12
        assert float(ours[f"coverage_{level}"]) == pytest.approx(mass.mean(), abs=0.015)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_interval_ends_against_counting(level):
    told = Poisson(most=500).told(DRAWS, level)
    assert list(told) == ["prediction", "sd", "low", "high", "aleatoric", "epistemic"]
    _, low, high = inside(Y, RATES, level)
    np.testing.assert_array_equal(told["low"], low)
    np.testing.assert_array_equal(told["high"], high)
    assert told["low"].dtype == told["high"].dtype == np.int64
    np.testing.assert_allclose(told["sd"] ** 2, RATES.mean(1) + RATES.var(1), rtol=1e-12)
    np.testing.assert_allclose(told["prediction"], RATES.mean(1), rtol=1e-12)


@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_beyond_the_most_a_gaussian_stands_in(spread):
    """From rates of 110 on: CRPS within 1%, coverage within 0.02, interval ends within 0.01 of their shares."""
    rates = np.exp(RNG.uniform(np.log(110), np.log(900), (300, 1)) + spread * RNG.normal(size=(300, 8)))
    y = RNG.poisson(rates[:, 0])
    far, exact = Poisson(most=0), Poisson(most=3000)
    drawn = PoissonDraws(jnp.log(rates))
    ours, theirs = (likelihood.scores(drawn, jnp.array(y)) for likelihood in (far, exact))
    assert float(ours["crps"]) == pytest.approx(float(theirs["crps"]), rel=0.01)
    for level in ("coverage_50", "coverage_90"):
        assert float(ours[level]) == pytest.approx(float(theirs[level]), abs=0.02)
    for level in (0.5, 0.9):
        for side, share in (("low", (1 - level) / 2), ("high", (1 + level) / 2)):
            ours, theirs = far.told(drawn, level)[side], exact.told(drawn, level)[side]
            assert np.abs(ours - theirs).max() <= 3
            assert np.mean(ours == theirs) > 0.6
            below, upto = (stats.poisson.cdf((ours - less)[:, None], rates).mean(1) for less in (1, 0))
            assert (below < share + 0.01).all()
            assert (upto > share - 0.01).all()


def test_near_and_far_examples_beside_each_other():
    """Each is scored as it is alone."""
    both = PoissonDraws(jnp.log(jnp.array([[3.0, 4.0], [5000.0, 5100.0], [2.0, 2.0]])))
    y = jnp.array([2, 5020, 300])
    likelihood = Poisson()
    together = {name: float(value) for name, value in likelihood.scores(both, y).items()}
    alone = [likelihood.scores(PoissonDraws(both.log_rates[k : k + 1]), y[k : k + 1]) for k in range(3)]
    for name in ("nll", "crps", "coverage_50", "coverage_90"):
        assert together[name] == pytest.approx(np.mean([float(each[name]) for each in alone])), name
    told = likelihood.told(both)
    for k in range(3):
        for name, column in likelihood.told(PoissonDraws(both.log_rates[k : k + 1])).items():
            assert told[name][k] == pytest.approx(column[0])
    assert 4900 < told["low"][1] < told["high"][1] < 5300


def test_padding_changes_nothing():
    plain = Poisson().scores(DRAWS, jnp.array(Y))
    padded = PoissonDraws(jnp.concatenate([DRAWS.log_rates, np.full((9, L), np.nan)]))
    weights = jnp.concatenate([np.ones(N), np.zeros(9)])
    weighted = jax.jit(Poisson().scores)(padded, jnp.concatenate([Y, np.zeros(9, int)]), weights)
    for name, value in plain.items():
        assert float(weighted[name]) == pytest.approx(float(value), rel=1e-12), name


def test_prediction_is_centred():
    belief = MeanField.from_moments(jnp.array([0.5]), jnp.array([1e-12]))
    drawn = Poisson(centre=7.0).predictive(lambda w, x: x * w, belief, jnp.array([[0.0], [2.0]]), jax.random.key(0), 3)
    np.testing.assert_allclose(jnp.exp(drawn.log_rates), [[7.0] * 3, [7 * np.e] * 3], rtol=1e-5)


def test_a_likelihood_is_one():
    assert isinstance(Poisson(), Likelihood)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Poisson(centre=0.0), "centre: must be positive and finite, got 0.0"),
        (lambda: Poisson(most=-1), "most: must be at least 0, got -1"),
        (lambda: Poisson().told(DRAWS, 0.0), "level: must lie between 0 and 1, got 0.0"),
    ],
)
def test_bad_values_are_named(make, message):
    with pytest.raises(InputError, match=message):
        make()
