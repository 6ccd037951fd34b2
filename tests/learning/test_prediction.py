"""Predictions of many rows: pieces over several devices, and all draws of a small model at once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consilience.beliefs import MeanField
from consilience.errors import InputError
from consilience.learning import prediction
from consilience.models import mlp
from consilience.models.likelihoods import Bernoulli, Categorical, Gaussian
from consilience.task.learnt import Learnt
from consilience.task.task import flat_apply


def learnt_of(likelihood, labels=()):
    model = likelihood.model(mlp((3,), likelihood.outputs, ()))
    rng = np.random.default_rng(0)
    belief = MeanField.from_moments(jnp.array(rng.normal(size=model.size)), jnp.full(model.size, 0.3))
    return Learnt(model, likelihood, ("a",), labels, (3,)), belief


X = np.random.default_rng(1).normal(size=(1030, 3)).astype(np.float32)


@pytest.mark.parametrize(
    "likelihood", [Categorical(("a", "b", "c")), Bernoulli(("a", "b"))], ids=lambda each: each.name
)
def test_draws_at_once_are_the_draws_one_by_one(likelihood):
    learnt, belief = learnt_of(likelihood, likelihood.label_names)
    found = prediction.Predictor(learnt)(belief, X, 16)
    apply = flat_apply(learnt.model)
    told = likelihood.told(likelihood.predictive(apply, belief, jnp.asarray(X), jax.random.key(0), 16))
    for name in (*(f"p_{label}" for label in likelihood.label_names), "aleatoric", "epistemic"):
        np.testing.assert_allclose(found.columns[name], told[name], atol=1e-9)
    assert (found.prediction == told["prediction"]).all()


def test_pieces_on_several_devices_are_the_whole(monkeypatch):
    learnt, belief = learnt_of(Gaussian())
    whole = prediction.Predictor(learnt)(belief, X, 8)
    monkeypatch.setattr(prediction, "PIECE", 300)
    assert len(jax.local_devices()) > 1
    parts = prediction.Predictor(learnt)(belief, X, 8)
    for name in whole.columns:
        np.testing.assert_allclose(parts.columns[name], whole.columns[name], rtol=1e-6)


def test_a_level_that_is_none_is_refused_for_labels_too():
    learnt, belief = learnt_of(Bernoulli(("a", "b")), ("a", "b"))
    with pytest.raises(InputError, match="level: must lie between 0 and 1"):
        prediction.Predictor(learnt)(belief, X, 8, level=1.5)
