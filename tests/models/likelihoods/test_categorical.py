"""Labels: against scikit-learn, scipy and definitions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

from consilience.beliefs import MeanField
from consilience.errors import InputError
from consilience.models.likelihoods import Bernoulli, Categorical
from consilience.models.likelihoods.categorical import Predictive, confidence_by_label
from consilience.models.scores import calibration_error, entropy

RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.ones(4) * 0.5, size=500)
Y = RNG.integers(0, 4, 500)
FOUR, TWO = Categorical(("a", "b", "c", "d")), Bernoulli(("no", "yes"))


def test_scores_agree_with_scikit_learn():
    ours = FOUR.scores(Predictive(jnp.array(P), jnp.zeros(500)), jnp.array(Y))
    assert float(ours["accuracy"]) == pytest.approx(accuracy_score(Y, P.argmax(1)))
    assert float(ours["nll"]) == pytest.approx(log_loss(Y, P, labels=range(4)))
    assert float(ours["brier"]) == pytest.approx(brier_score_loss(Y, P, labels=range(4), scale_by_half=False))
    assert float(ours["entropy"]) == pytest.approx(float(-(P * np.log(P)).sum(1).mean()))


def test_scores_without_weights_are_to_the_bit_those_of_the_plain_means():
    """The formulas as they were before examples could be weighted."""
    p, y, draw_entropy = jnp.array(P), jnp.array(Y), jnp.array(RNG.random(500))
    of_label = jnp.take_along_axis(p, y[:, None], axis=-1)[:, 0]
    correct = (p.argmax(-1) == y).astype(p.dtype)
    total, aleatoric = entropy(p).mean(), draw_entropy.mean()
    expected = {
        "accuracy": correct.mean(),
        "nll": -jnp.log(jnp.maximum(of_label, 1e-12)).mean(),
        "brier": jnp.mean(jnp.sum(p**2, axis=-1) - 2 * of_label + 1),
        "ece": calibration_error(p.max(-1), correct),
        "entropy": total,
        "aleatoric": aleatoric,
        "epistemic": total - aleatoric,
    }
    ours = FOUR.scores(Predictive(p, draw_entropy), y)
    assert list(ours) == list(expected)
    assert {name: float(value) for name, value in ours.items()} == {k: float(v) for k, v in expected.items()}


def test_the_prediction_is_to_the_bit_the_sum_over_draws_in_chunks():
    """Draws follow one another, 500 examples are a chunk, and the last chunk is filled up."""
    belief = MeanField.from_moments(jnp.array(RNG.normal(size=12)), jnp.full(12, 0.3))
    inputs = jnp.array(RNG.normal(size=(1200, 3)))
    apply = lambda w, x: x @ w.reshape(3, 4)  # noqa: E731

    def expected(key):
        chunks = jnp.concatenate([inputs, jnp.zeros((300, 3))]).reshape(3, 500, 3)

        def add(total, own):
            weights = belief.sample(own, 1)[0]
            logits = jax.lax.map(lambda chunk: apply(weights, chunk), chunks)
            p = jax.nn.softmax(logits.reshape(-1, 4)[:1200])
            return (total[0] + p, total[1] + entropy(p)), None

        total, _ = jax.lax.scan(add, (jnp.zeros((1200, 4)), jnp.zeros(1200)), jax.random.split(key, 7))
        return total[0] / 7, total[1] / 7

    ours = jax.jit(lambda key: FOUR.predictive(apply, belief, inputs, key, 7))(jax.random.key(0))
    for part, should in zip(ours, jax.jit(expected)(jax.random.key(0)), strict=True):
        np.testing.assert_array_equal(part, should)


def test_confidence_by_label():
    ours = confidence_by_label(Predictive(jnp.array(P), jnp.zeros(500)), jnp.array(Y), 4)
    np.testing.assert_allclose(ours, [P[k == Y, k].mean() for k in range(4)], rtol=1e-10)


def test_predictive_of_a_sure_belief_is_the_softmax_and_has_no_epistemic_part():
    belief = MeanField.from_moments(jnp.array([1.0, -1.0]), jnp.full(2, 1e-12))
    inputs = jnp.array([[1.0], [2.0]])
    likelihood = Categorical(("a", "b"))
    predicted = likelihood.predictive(lambda w, x: x * w, belief, inputs, jax.random.key(0), samples=5)
    np.testing.assert_allclose(predicted.probabilities, jax.nn.softmax(inputs * jnp.array([1.0, -1.0])), atol=1e-5)
    ours = likelihood.scores(predicted, jnp.array([0, 0]))
    assert float(ours["epistemic"]) == pytest.approx(0, abs=1e-5)


def test_epistemic_is_the_mutual_information():
    """Two equally likely opposite sure predictions: all uncertainty is about θ."""
    draws = jnp.array([[1.0, 0.0], [0.0, 1.0]])
    predicted = Predictive(draws.mean(0)[None], entropy(draws).mean()[None])
    assert float(TWO.scores(predicted, jnp.array([0]))["epistemic"]) == pytest.approx(np.log(2), abs=1e-6)


def test_log_densities_agree_with_scipy():
    f = RNG.normal(size=(50, 4)) * 3
    p = np.exp(f) / np.exp(f).sum(1, keepdims=True)
    expected = [stats.multinomial.logpmf(np.eye(4, dtype=int)[k], 1, q) for k, q in zip(Y, p, strict=False)]
    np.testing.assert_allclose(FOUR.log_density(jnp.array(f), jnp.array(Y[:50])), expected, rtol=1e-10)
    z, y = RNG.normal(size=50) * 20, RNG.integers(0, 2, 50)
    ours = TWO.log_density(jnp.array(z)[:, None], jnp.array(y))
    np.testing.assert_allclose(ours, -np.logaddexp(0, np.where(y == 1, -z, z)), rtol=1e-10)
    near = np.clip(z, -5, 5)
    ours = TWO.log_density(jnp.array(near)[:, None], jnp.array(y))
    np.testing.assert_allclose(ours, stats.bernoulli.logpmf(y, 1 / (1 + np.exp(-near))), rtol=1e-8)


def test_one_logit_is_a_softmax_of_two():
    """The same draws of the same weights, told by one output or by two of which the first is 0."""
    belief = MeanField.from_moments(jnp.array([0.5, -1.0]), jnp.array([0.5, 1.0]))
    inputs = jnp.array(RNG.normal(size=(30, 2)))
    one = TWO.predictive(lambda w, x: (x @ w)[:, None], belief, inputs, jax.random.key(1), 20)
    logits = lambda w, x: jnp.stack([jnp.zeros(len(x)), x @ w], 1)  # noqa: E731
    two = Categorical(("no", "yes")).predictive(logits, belief, inputs, jax.random.key(1), 20)
    for ours, theirs in zip(one, two, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("likelihood", [FOUR, TWO])
def test_padding_changes_nothing(likelihood):
    kinds = len(likelihood.label_names)
    p, y, h = P[:, :kinds] / P[:, :kinds].sum(1, keepdims=True), Y % kinds, RNG.random(500)
    plain = likelihood.scores(Predictive(jnp.array(p), jnp.array(h)), jnp.array(y))
    padded = Predictive(jnp.concatenate([p, np.full((9, kinds), np.nan)]), jnp.concatenate([h, np.full(9, np.inf)]))
    weights, y = jnp.concatenate([np.ones(500), np.zeros(9)]), jnp.concatenate([y, np.zeros(9, int)])
    weighted = jax.jit(likelihood.scores)(padded, y, weights)
    for name, value in plain.items():
        assert float(weighted[name]) == pytest.approx(float(value), rel=1e-12), name


def test_columns_that_are_told():
    told = FOUR.told(Predictive(jnp.array(P), jnp.full(500, 0.01)))
    assert list(told) == ["prediction", "p_a", "p_b", "p_c", "p_d", "aleatoric", "epistemic"]
    assert told["prediction"].tolist() == ["abcd"[k] for k in P.argmax(1)]
    np.testing.assert_array_equal(told["p_c"], P[:, 2])
    np.testing.assert_allclose(told["epistemic"], np.maximum(-(P * np.log(P)).sum(1) - 0.01, 0), atol=1e-9)
    assert list(TWO.told(Predictive(jnp.array(P[:, :2]), jnp.zeros(500))))[:3] == ["prediction", "p_no", "p_yes"]


@pytest.mark.parametrize(
    ("make", "names", "message"),
    [
        (Categorical, ("a", "a"), r"label_names: must be two or more, all different, got \('a', 'a'\)"),
        (Categorical, (), r"label_names: must be two or more"),
        (Bernoulli, ("a", "b", "c"), r"label_names: bernoulli has two, got \('a', 'b', 'c'\)"),
    ],
)
def test_bad_names_are_named(make, names, message):
    with pytest.raises(InputError, match=message):
        make(names)
