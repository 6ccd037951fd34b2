"""Scores' parts against scikit-learn and definitions."""

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from consilience.models.scores import average, calibration_error, confusion, disagreement

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
