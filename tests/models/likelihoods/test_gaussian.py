"""Real numbers: against scipy, scikit-learn, numerical integration, sampling, and noise that is recovered."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, optimize, stats
from sklearn.metrics import root_mean_squared_error

from consilience.beliefs import Gaussian as GaussianBelief
from consilience.beliefs import MeanField
from consilience.errors import InputError
from consilience.learners import Minibatches, Options, variational
from consilience.learners.packing import packing_of
from consilience.models import Model, mlp
from consilience.models.likelihoods import Gaussian, Likelihood
from consilience.models.likelihoods.draws import draws_of
from consilience.models.likelihoods.gaussian import GaussianDraws

RNG = np.random.default_rng(0)
CENTRE, SCALE = 30.0, 4.0
N, L = 40, 7
F, SIGMA = RNG.normal(size=(N, L)), RNG.uniform(0.3, 2, (N, L))
MEAN, SD = CENTRE + SCALE * F, SCALE * SIGMA  # in units of the data
Y = CENTRE + SCALE * RNG.normal(size=N) * 1.5
LEARNT = Gaussian(None, CENTRE, SCALE)
DRAWS = GaussianDraws(jnp.array(F), jnp.array(SIGMA))


def mixture_cdf(x, row):
    return stats.norm.cdf(x, MEAN[row], SD[row]).mean()


def beyond(x, row, share):
    return mixture_cdf(x, row) - share


def test_log_density_agrees_with_scipy():
    ours = LEARNT.log_density(jnp.stack([F[:, 0], np.log(SIGMA[:, 0])], 1), jnp.array(Y))
    np.testing.assert_allclose(ours, stats.norm.logpdf(Y, MEAN[:, 0], SD[:, 0]), rtol=1e-12)
    known = Gaussian(0.7, CENTRE, SCALE)
    np.testing.assert_allclose(
        known.log_density(jnp.array(F[:, :1]), jnp.array(Y)), stats.norm.logpdf(Y, MEAN[:, 0], 0.7), rtol=1e-12
    )
    whole = known.log_density(jnp.array(F[:, :1]), jnp.array(Y.astype(int)))
    np.testing.assert_allclose(whole, stats.norm.logpdf(Y.astype(int), MEAN[:, 0], 0.7), rtol=1e-12)


def test_scores_against_brute_force():
    ours = {name: float(value) for name, value in LEARNT.scores(DRAWS, jnp.array(Y)).items()}
    assert list(ours) == ["rmse", "nll", "crps", "coverage_50", "coverage_90", "aleatoric", "epistemic"]
    assert ours["rmse"] == pytest.approx(root_mean_squared_error(Y, MEAN.mean(1)))
    assert ours["nll"] == pytest.approx(-np.log(stats.norm.pdf(Y[:, None], MEAN, SD).mean(1)).mean())
    assert ours["aleatoric"] == pytest.approx(np.sqrt((SD**2).mean(1)).mean())
    assert ours["epistemic"] == pytest.approx(MEAN.std(1).mean())
    crps = []
    for row, y in enumerate(Y):
        left, right = MEAN[row].min() - 10 * SD[row].max(), MEAN[row].max() + 10 * SD[row].max()
        below = integrate.quad(lambda x, row=row: mixture_cdf(x, row) ** 2, left, y, limit=200)[0]
        above = integrate.quad(lambda x, row=row: (1 - mixture_cdf(x, row)) ** 2, y, right, limit=200)[0]
        crps.append(below + above)
    assert ours["crps"] == pytest.approx(np.mean(crps), rel=1e-7)


def test_coverage_against_sampling():
    """Quantiles of many samples of each example's mixture, beside the value of its CDF."""
    many = 20_000
    which = RNG.integers(0, L, (N, many))
    sampled = np.take_along_axis(MEAN, which, 1) + np.take_along_axis(SD, which, 1) * RNG.normal(size=(N, many))
    y = sampled[:, :500].ravel()  # targets that follow the predictive law
    repeated = GaussianDraws(*(jnp.repeat(part, 500, axis=0) for part in DRAWS))
    ours = LEARNT.scores(repeated, jnp.array(y))
    for level in (50, 90):
        low, high = np.quantile(sampled[:, 500:], [0.5 - level / 200, 0.5 + level / 200], axis=1)
        theirs = np.mean((sampled[:, :500] >= low[:, None]) & (sampled[:, :500] <= high[:, None]))
        assert float(ours[f"coverage_{level}"]) == pytest.approx(theirs, abs=0.004)
        assert float(ours[f"coverage_{level}"]) == pytest.approx(level / 100, abs=0.015)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.999])
def test_interval_ends_against_root_finding(level):
    told = LEARNT.told(DRAWS, level)
    assert list(told) == ["prediction", "sd", "low", "high", "aleatoric", "epistemic"]
    for side, share in (("low", (1 - level) / 2), ("high", (1 + level) / 2)):
        roots = [
            optimize.brentq(lambda x, r=r, s=share: mixture_cdf(x, r) - s, -100, 200, xtol=1e-11) for r in range(N)
        ]
        np.testing.assert_allclose(told[side], roots, atol=1e-7)
    np.testing.assert_allclose(told["prediction"], MEAN.mean(1), rtol=1e-12)
    np.testing.assert_allclose(told["sd"] ** 2, (SD**2).mean(1) + MEAN.var(1), rtol=1e-12)
    np.testing.assert_allclose(told["sd"], np.hypot(told["aleatoric"], told["epistemic"]), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sigma", [1e-4, 0.01, 1.0, 100.0])
def test_interval_ends_of_wild_mixtures(sigma, dtype):
    """Far apart and narrow (a CDF of steps), one far from the rest, all the same: the CDF there is the share."""
    means = np.concatenate(
        [
            RNG.normal(size=(200, 9)) * 5,
            RNG.standard_cauchy((200, 9)),
            np.full((1, 9), 3.0),
            RNG.choice([-1, 1], (99, 9)),
        ]
    ).astype(dtype)
    sds = (sigma * RNG.uniform(0.5, 2, means.shape)).astype(dtype)
    told = Gaussian().told(GaussianDraws(jnp.array(means), jnp.array(sds)), 0.9)
    error = 1e-3 * sigma + np.abs(means).max(1) * 1e-5 if dtype == np.float32 else 1e-9 * (1 + np.abs(means).max(1))
    for side, share in (("low", 0.05), ("high", 0.95)):
        below, above = (stats.norm.cdf((told[side] + move)[:, None], means, sds).mean(1) for move in (-error, error))
        assert (below <= share + 1e-6).all()
        assert (above >= share - 1e-6).all()


def test_known_noise_is_one_column_and_the_same_law():
    sigma = 0.8
    known = Gaussian(sigma * SCALE, CENTRE, SCALE)
    one = GaussianDraws(jnp.array(F), jnp.full((N, 1), sigma))
    many = GaussianDraws(jnp.array(F), jnp.full((N, L), sigma))
    scores, told = LEARNT.scores(many, jnp.array(Y)), LEARNT.told(many)
    for name, value in known.scores(one, jnp.array(Y)).items():
        assert float(value) == pytest.approx(float(scores[name]), rel=1e-12)
    for name, column in known.told(one).items():
        np.testing.assert_allclose(column, told[name], rtol=1e-12)


def test_padding_changes_nothing():
    plain = LEARNT.scores(DRAWS, jnp.array(Y))
    padded = GaussianDraws(*(jnp.concatenate([part, np.full((9, L), np.nan)]) for part in DRAWS))
    weights = jnp.concatenate([np.ones(N), np.zeros(9)])
    weighted = jax.jit(LEARNT.scores)(padded, jnp.concatenate([Y, np.zeros(9)]), weights)
    for name, value in plain.items():
        assert float(weighted[name]) == pytest.approx(float(value), rel=1e-12), name


@pytest.mark.parametrize("samples", [1, 30])
def test_draws_are_those_of_the_belief(samples):
    """Each draw's outputs are the network's with the weights drawn by its own key, however many are made at once."""
    belief = GaussianBelief.from_moments(jnp.array([1.0, -2.0]), jnp.array([[0.5, 0.3], [0.3, 0.4]]))
    inputs = jnp.array(RNG.normal(size=(1100, 2)))
    drawn = draws_of(lambda w, x: (x @ w)[:, None], belief, inputs, jax.random.key(2), samples)
    weights = jnp.stack([belief.sample(own, 1)[0] for own in jax.random.split(jax.random.key(2), samples)])
    np.testing.assert_allclose(drawn[..., 0], inputs @ weights.T, rtol=1e-10, atol=1e-12)


def test_draws_of_a_large_model_follow_one_another_and_are_the_same():
    belief = MeanField.from_moments(jnp.arange(70_000.0), jnp.ones(70_000))
    drawn = draws_of(lambda w, x: x * w[-1], belief, jnp.array([[1.0], [2.0]]), jax.random.key(2), 3)
    last = [belief.sample(own, 1)[0, -1] for own in jax.random.split(jax.random.key(2), 3)]
    np.testing.assert_allclose(drawn[..., 0], np.outer([1, 2], last), rtol=1e-12)


def test_prediction_with_learnt_noise():
    """Weights whose law is known: f ~ N(x, 0.1² x²) and log σ ~ N(−1, 0.2²)."""
    belief = MeanField.from_moments(jnp.array([1.0, -1.0]), jnp.array([0.01, 0.04]))
    apply = lambda w, x: jnp.stack([x[:, 0] * w[0], jnp.broadcast_to(w[1], x.shape[:1])], 1)  # noqa: E731
    predict = jax.jit(lambda key: LEARNT.predictive(apply, belief, jnp.array([[1.0], [3.0]]), key, 20_000))
    means, sds = predict(jax.random.key(0))
    assert means.shape == sds.shape == (2, 20_000)
    np.testing.assert_allclose(means.mean(1), [1, 3], atol=0.01)
    np.testing.assert_allclose(means.std(1), [0.1, 0.3], rtol=0.02)
    np.testing.assert_allclose(jnp.log(sds).mean(1), [-1, -1], atol=0.01)
    np.testing.assert_allclose(jnp.log(sds).std(1), [0.2, 0.2], rtol=0.02)


@pytest.mark.parametrize("estimator", ["weights", "outputs"])
def test_learnt_noise_is_recovered(estimator):
    n = 400
    x = RNG.normal(size=(n, 1))
    y = 50 + 6 * x[:, 0] + 1.5 * RNG.normal(size=n)
    design = np.hstack([x, np.ones((n, 1))])
    left = np.sqrt(np.mean((y - design @ np.linalg.lstsq(design, y, rcond=None)[0]) ** 2))
    likelihood = Gaussian(None, float(y.mean()), float(y.std()))
    model = likelihood.model(mlp((1,), likelihood.outputs, hidden=()))
    initial = model.init(jax.random.key(0))
    assert float(initial["log_noise"]) == 0
    options = Options(learning_rate=0.02, decay=0.8, initial_sd=0.1, prior_sd=3.0, estimator=estimator, start="own")
    agent = variational(model, initial, options, likelihood.log_density)
    chosen = jnp.array(RNG.permuted(np.tile(np.arange(n), (20, 1)), axis=1).reshape(-1, 50))
    batch = Minibatches(jnp.array(x), jnp.array(y), chosen, float(n))
    state, learn = agent.init(jax.random.key(0)), jax.jit(agent.learn)
    for number in range(12):
        state, _ = learn(jax.random.key(number), state, batch)
    belief, packing = agent.publish(state), packing_of(initial)
    apply = lambda w, x: model.apply(packing.unpack(packing.split(w)), x)  # noqa: E731
    predicted = likelihood.predictive(apply, belief, jnp.array(x), jax.random.key(1), 50)
    told, ours = likelihood.told(predicted), likelihood.scores(predicted, jnp.array(y))
    np.testing.assert_allclose(told["aleatoric"], left, rtol=0.05)
    assert float(ours["rmse"]) == pytest.approx(left, rel=0.02)
    assert float(ours["coverage_90"]) == pytest.approx(0.9, abs=0.04)
    assert float(ours["epistemic"]) < 0.2


def test_the_model_with_noise_beside_it():
    network = mlp((3,), 1, (4,))
    known, learnt = Gaussian(1.0).model(network), Gaussian().model(network)
    assert known is network
    parameters, x = learnt.init(jax.random.key(0)), jnp.array(RNG.normal(size=(5, 3)))
    assert set(parameters) == {"network", "log_noise"}
    assert parameters["log_noise"].shape == ()
    assert learnt.size == network.size + 1
    outputs = learnt.apply({**parameters, "log_noise": jnp.array(-2.0)}, x)
    np.testing.assert_array_equal(outputs[:, :1], network.apply(parameters["network"], x))
    np.testing.assert_array_equal(outputs[:, 1], -2)
    assert Gaussian().model(Model(network.init, network.apply)).apply_gaussian is None
    spread = jax.tree.map(lambda leaf: jnp.full_like(leaf, 0.25), parameters)
    drawn = learnt.apply_gaussian(parameters, spread, jnp.array(RNG.normal(size=(20_000, 3))), jax.random.key(1))
    assert float(drawn[:, 1].mean()) == pytest.approx(0, abs=0.02)
    assert float(drawn[:, 1].std()) == pytest.approx(0.5, rel=0.02)
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.03, "network and noise are independent"


def test_a_likelihood_is_one():
    assert isinstance(Gaussian(), Likelihood)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(noise=0.0), "noise: must be positive and finite, got 0.0"),
        (lambda: Gaussian(scale=float("nan")), "scale: must be positive and finite, got nan"),
        (lambda: Gaussian(centre=float("inf")), "centre: must be finite, got inf"),
        (lambda: Gaussian().told(DRAWS, 1.0), "level: must lie between 0 and 1, got 1.0"),
    ],
)
def test_bad_values_are_named(make, message):
    with pytest.raises(InputError, match=message):
        make()
