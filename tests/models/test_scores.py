"""Scores' parts against scikit-learn and definitions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, roc_auc_score

from consilience.models.scores import auroc, average, calibration_error, confusion, disagreement

RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.ones(4) * 0.5, size=500)
Y = RNG.integers(0, 4, 500)


def test_calibration_error_by_its_definition():
    confidence, correct = P.max(1), (P.argmax(1) == Y).astype(float)
    total = 0.0
    for low in np.arange(15) / 15:
        inside = (confidence >= low) & (confidence < low + 1 / 15 + (low > 0.93))
        if inside.any():
            total += inside.sum() * abs(correct[inside].mean() - confidence[inside].mean())
    assert float(calibration_error(jnp.array(confidence), jnp.array(correct))) == pytest.approx(total / 500)
    assert float(calibration_error(jnp.ones(3), jnp.ones(3))) == 0


def test_a_weight_counts_an_example_so_often():
    values, often = RNG.normal(size=50), RNG.integers(0, 4, 50)
    assert float(average(jnp.array(values), jnp.array(often, float))) == pytest.approx(np.repeat(values, often).mean())
    confidence, correct = P.max(1), (P.argmax(1) == Y).astype(float)
    often = RNG.integers(0, 3, 500)
    ours = calibration_error(jnp.array(confidence), jnp.array(correct), weights=jnp.array(often, float))
    repeated = (jnp.array(np.repeat(part, often)) for part in (confidence, correct))
    assert float(ours) == pytest.approx(float(calibration_error(*repeated)))


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


@pytest.mark.parametrize("seed", range(12))
def test_auroc_is_that_of_another_library_with_ties(seed):
    """And of all pairs, counted."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 2 + seed, 24).astype(float)
    found = float(auroc(jnp.asarray(scores[:15]), jnp.asarray(scores[15:])))
    np.testing.assert_allclose(found, roc_auc_score(np.repeat([0, 1], [15, 9]), scores), atol=1e-12)
    pairs = np.sign(scores[15:, None] - scores[None, :15]) / 2 + 0.5
    np.testing.assert_allclose(found, pairs.mean(), atol=1e-12)


def test_auroc_of_as_many_as_are_looked_at_is_right_in_single_precision():
    rng = np.random.default_rng(0)
    usual, strange = rng.normal(size=2000).astype(np.float32), rng.normal(0.3, size=2000).astype(np.float32)
    expected = roc_auc_score(np.repeat([0, 1], 2000), np.concatenate([usual, strange]))
    with jax.enable_x64(False):
        np.testing.assert_allclose(float(auroc(jnp.asarray(usual), jnp.asarray(strange))), expected, atol=1e-6)
