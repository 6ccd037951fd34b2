"""Coefficients in the units of the data: against brute force, a posterior in closed form, and predictions."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from consilience.errors import InputError
from consilience.learning.coefficients import coefficients_of
from consilience.models import mlp
from consilience.models.likelihoods import Bernoulli, Categorical, Gaussian, Poisson
from consilience.task.columns import Category, Label, Number, Target, features
from consilience.task.learnt import Learnt
from consilience.task.likelihoods import GivenLikelihood
from consilience.task.models import Cnn, GivenModel, Mlp

INPUTS = {
    "age": Number(centre=50, scale=10, unit="years"),
    "side": Category(levels=["left", "none", "right"], reference="none"),
    "dose": Number(centre=-2, scale=0.5, unit="mg"),
}


def a_fit(likelihood, answer, labels=(), model=None):
    columns = {**INPUTS, "answer": answer}
    learnt = Learnt(mlp((4,), likelihood.outputs, ()), likelihood, ("a",), labels, (4,), columns)
    return SimpleNamespace(config=SimpleNamespace(model=model or Mlp(hidden=[])), learnt=learnt)


def a_belief(outputs):
    rng = np.random.default_rng(outputs)
    mean = [(), {"w": rng.normal(size=(outputs, 4)), "c": rng.normal(size=outputs)}]
    sd = [(), {"w": rng.uniform(0.1, 0.4, size=(outputs, 4)), "c": rng.uniform(0.1, 0.4, size=outputs)}]
    return mean, sd


def rows(count):
    """Rows in the units of the data, and as the model sees them."""
    rng = np.random.default_rng(1)
    age, dose, side = rng.normal(40, 20, count), rng.normal(0, 3, count), rng.integers(0, 3, count)
    data = np.stack([np.ones(count), age, side == 0, side == 2, dose], axis=1)
    inputs = np.stack([(age - 50) / 10, side == 0, side == 2, (dose + 2) / 0.5], axis=1)
    return data.astype(float), inputs.astype(float)


def outputs_at(layer, inputs):
    return inputs @ layer["w"].T + layer["c"]


def test_mean_and_sd_are_those_of_many_draws():
    mean, sd = a_belief(1)
    inputs = features({**INPUTS, "answer": Target()})
    rng, count = np.random.default_rng(0), 400_000
    b, w = (mean[1][k][0] + sd[1][k][0] * rng.normal(size=(count, *mean[1][k][0].shape)) for k in ("c", "w"))
    centre, scale = (np.array([getattr(each, name) for each in inputs]) for name in ("centre", "scale"))
    drawn = np.concatenate([(b - (w * centre / scale).sum(1))[:, None], w / scale], axis=1)
    found = coefficients_of(a_fit(Gaussian(0.5), Target()), mean, sd).columns
    found_mean, found_sd = found["mean"], found["sd"]
    np.testing.assert_allclose(found_mean, drawn.mean(0), atol=5 * (drawn.std(0) / np.sqrt(count)).max())
    np.testing.assert_allclose(found_sd, drawn.std(0), rtol=0.01)


def test_a_covariance_is_that_of_the_coefficients():
    """Weights that are not independent: their draws, in the units of the data."""
    mean, sd = a_belief(3)
    leaves, structure = jax.tree.flatten(mean)
    rng, size = np.random.default_rng(1), sum(leaf.size for leaf in leaves)
    root = rng.normal(size=(size, size)) / 10
    flat = np.concatenate([leaf.reshape(-1) for leaf in leaves]) + rng.normal(size=(2000, size)) @ root.T
    ends = np.cumsum([leaf.size for leaf in leaves])
    parts = zip(np.split(flat, ends[:-1], 1), leaves, strict=True)
    drawn = jax.tree.unflatten(structure, [part.reshape(-1, *leaf.shape) for part, leaf in parts])
    labels = ("a", "b", "c")
    fit = a_fit(Categorical(labels), Label(levels=list(labels)), labels)
    found = coefficients_of(fit, mean, sd, root @ root.T).columns
    few = [coefficients_of(fit, jax.tree.map(lambda x, k=k: x[k], drawn), sd).columns["mean"] for k in range(2000)]
    np.testing.assert_allclose(found["mean"], coefficients_of(fit, mean, sd).columns["mean"], rtol=1e-12)
    np.testing.assert_allclose(found["sd"], np.std(few, axis=0), rtol=0.1)


def test_a_linear_model_predicts_in_the_target_s_units():
    mean, sd = a_belief(1)
    likelihood = Gaussian(0.5, centre=100.0, scale=20.0)
    fit = a_fit(likelihood, Target(unit="kg", centre=100.0, scale=20.0))
    found = coefficients_of(fit, mean, sd)
    data, inputs = rows(50)
    np.testing.assert_allclose(data @ found.columns["mean"], 100 + 20 * outputs_at(mean[1], inputs)[:, 0])
    assert found.names() == ["(intercept)", "age", "side = left (against none)", "side = right (against none)", "dose"]
    assert list(found.columns["unit"]) == ["", "years", "", "", "mg"]
    assert (found.of, found.ratio_name) == ("mean of answer (kg)", "")
    np.testing.assert_allclose(found.columns["sd"][1:], 20 * sd[1]["w"][0] / [10, 1, 1, 0.5])
    np.testing.assert_allclose(found.columns["high"] - found.columns["mean"], 1.959964 * found.columns["sd"], rtol=1e-6)
    assert list(found.to_pandas()["mean"]) == list(found.columns["mean"])


def test_of_a_posterior_in_closed_form():
    """Where columns are orthogonal, the posterior of standardised weights in other units is that of raw columns."""
    rng = np.random.default_rng(3)
    scaled = np.linalg.qr(np.c_[np.ones(200), rng.normal(size=(200, 1))])[0][:, 1:] * np.sqrt(200)
    raw = 50 + 10 * scaled
    noise, y = 2.0, 3 + 0.7 * raw[:, 0] + 2.0 * rng.normal(size=200)
    design = np.c_[np.ones(200), scaled]
    covariance = np.linalg.inv(design.T @ design / noise**2)
    mean = covariance @ design.T @ y / noise**2
    assert abs(covariance[0, 1]) < 1e-12
    fit = a_fit(Gaussian(noise), Target())
    columns = {"age": Number(centre=50, scale=10), "answer": Target()}
    fit.learnt = fit.learnt._replace(columns=columns, shape=(1,))
    trees = [[(), {"w": part[1:][None], "c": part[:1]}] for part in (mean, np.sqrt(np.diag(covariance)))]
    found = coefficients_of(fit, *trees).columns
    plain = np.c_[np.ones(200), raw]
    exact = np.linalg.inv(plain.T @ plain / noise**2)
    np.testing.assert_allclose(found["mean"], exact @ plain.T @ y / noise**2)
    np.testing.assert_allclose(found["sd"], np.sqrt(np.diag(exact)))


def test_learnt_noise_is_no_coefficient():
    mean, sd = a_belief(1)
    known = coefficients_of(a_fit(Gaussian(0.5), Target()), mean, sd)
    beside = [{"network": part, "log_noise": np.ones(())} for part in (mean, sd)]
    learnt = coefficients_of(a_fit(Gaussian(), Target()), *beside)
    np.testing.assert_array_equal(known.columns["mean"], learnt.columns["mean"])


@pytest.mark.parametrize("labels", [("no", "yes"), ("a", "b", "c")])
def test_odds_ratios_of_labels_against_the_first(labels):
    mean, sd = a_belief(len(labels))
    fit = a_fit(Categorical(labels), Label(levels=list(labels)), labels)
    found = coefficients_of(fit, mean, sd)
    data, inputs = rows(20)
    outputs = outputs_at(mean[1], inputs)
    for k, label in enumerate(labels[1:], start=1):
        mine = np.array(found.columns["label"]) == label
        np.testing.assert_allclose(data @ found.columns["mean"][mine], outputs[:, k] - outputs[:, 0])
        difference = (mean[1]["w"][k] - mean[1]["w"][0]) / [10, 1, 1, 0.5]
        np.testing.assert_allclose(found.columns["ratio"][mine][1:], np.exp(difference))
        spread = np.hypot(sd[1]["w"][k], sd[1]["w"][0]) / [10, 1, 1, 0.5]
        np.testing.assert_allclose(found.columns["ratio_high"][mine][1:], np.exp(difference + 1.959964 * spread), 1e-5)
    assert found.ratio_name == "odds ratio"
    assert len(found) == 5 * (len(labels) - 1)
    assert found.names()[1] == ("age" if len(labels) == 2 else "b: age")


def test_bernoulli_and_poisson():
    mean, sd = a_belief(1)
    data, inputs = rows(20)
    outputs = outputs_at(mean[1], inputs)[:, 0]
    two = coefficients_of(a_fit(Bernoulli(("no", "yes")), Label(levels=["no", "yes"]), ("no", "yes")), mean, sd)
    np.testing.assert_allclose(data @ two.columns["mean"], outputs)
    assert (two.of, two.ratio_name) == ("log odds of yes against no", "odds ratio")
    counts = coefficients_of(a_fit(Poisson(centre=4.0), Target(counts=True)), mean, sd)
    np.testing.assert_allclose(np.exp(data @ counts.columns["mean"]), 4 * np.exp(outputs))
    assert (counts.of, counts.ratio_name) == ("log rate of answer", "rate ratio")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Mlp(hidden=[20]), "without hidden layers to have coefficients, got hidden = [20]"),
        (Cnn(), "got kind = 'cnn'"),
        (GivenModel(), "model: was given in Python"),
    ],
)
def test_other_models_have_none(model, words):
    with pytest.raises(InputError, match=words.replace("[", r"\[")):
        coefficients_of(a_fit(Gaussian(0.5), Target(), model=model), *a_belief(1))


def test_a_given_likelihood_has_none():
    fit = a_fit(Gaussian(0.5), Target())
    fit.config.likelihood = GivenLikelihood()
    with pytest.raises(InputError, match="likelihood: was given in Python"):
        coefficients_of(fit, *a_belief(1))
