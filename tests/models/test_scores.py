"""Scores against scikit-learn and definitions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.metrics import accuracy_score, brier_score_loss, confusion_matrix, log_loss

from consilience.beliefs import MeanField
from consilience.models.scores import (
    Predictive,
    calibration_error,
    confidence_by_label,
    confusion,
    disagreement,
    entropy,
    predictive,
    scores,
)

RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.ones(4) * 0.5, size=500)
Y = RNG.integers(0, 4, 500)


def test_scores_agree_with_scikit_learn():
    ours = scores(Predictive(jnp.array(P), jnp.zeros(500)), jnp.array(Y))
    assert float(ours["accuracy"]) == pytest.approx(accuracy_score(Y, P.argmax(1)))
    assert float(ours["nll"]) == pytest.approx(log_loss(Y, P, labels=range(4)))
    assert float(ours["brier"]) == pytest.approx(brier_score_loss(Y, P, labels=range(4), scale_by_half=False))
    assert float(ours["entropy"]) == pytest.approx(float(-(P * np.log(P)).sum(1).mean()))


def test_calibration_error_by_its_definition():
    confidence, correct = P.max(1), (P.argmax(1) == Y).astype(float)
    total = 0.0
    for low in np.arange(15) / 15:
        inside = (confidence >= low) & (confidence < low + 1 / 15 + (low > 0.93))
        if inside.any():
            total += inside.sum() * abs(correct[inside].mean() - confidence[inside].mean())
    assert float(calibration_error(jnp.array(confidence), jnp.array(correct))) == pytest.approx(total / 500)
    assert float(calibration_error(jnp.ones(3), jnp.ones(3))) == 0


def test_confidence_by_label():
    ours = confidence_by_label(Predictive(jnp.array(P), jnp.zeros(500)), jnp.array(Y), 4)
    np.testing.assert_allclose(ours, [P[k == Y, k].mean() for k in range(4)], rtol=1e-10)


def test_confusion_agrees_with_scikit_learn():
    ours = confusion(jnp.array(P.argmax(1)), jnp.array(Y), 4)
    np.testing.assert_allclose(ours, confusion_matrix(Y, P.argmax(1), normalize="true"), rtol=1e-10)
    assert confusion(jnp.array([1]), jnp.array([0]), 3).tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]


def test_disagreement():
    choices = jnp.array([[0, 1, 2, 3], [0, 1, 2, 0], [0, 0, 2, 0]])
    np.testing.assert_allclose(
        disagreement(choices, 4), [(0 + 0.5 + 0 + 1) / 4, (0 + 0.5 + 0 + 0.5) / 4, (0 + 1 + 0 + 0.5) / 4]
    )
    assert disagreement(choices[:1], 4).tolist() == [0]


def test_predictive_of_a_sure_belief_is_the_softmax_and_has_no_epistemic_part():
    belief = MeanField.from_moments(jnp.array([1.0, -1.0]), jnp.full(2, 1e-12))
    inputs = jnp.array([[1.0], [2.0]])
    predicted = predictive(lambda w, x: x * w, belief, inputs, jax.random.key(0), samples=5)
    np.testing.assert_allclose(predicted.probabilities, jax.nn.softmax(inputs * jnp.array([1.0, -1.0])), atol=1e-5)
    ours = scores(predicted, jnp.array([0, 0]))
    assert float(ours["epistemic"]) == pytest.approx(0, abs=1e-5)


def test_epistemic_is_the_mutual_information():
    """Two equally likely opposite sure predictions: all uncertainty is about θ."""
    draws = jnp.array([[1.0, 0.0], [0.0, 1.0]])
    predicted = Predictive(draws.mean(0)[None], entropy(draws).mean()[None])
    assert float(scores(predicted, jnp.array([0]))["epistemic"]) == pytest.approx(np.log(2), abs=1e-6)
