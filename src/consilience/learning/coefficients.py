"""Coefficients of a model without hidden layers, in the units of the data: a line each, with how sure they are.

With inputs z_k = (x_k − m_k) / s_k a layer gives f = b + Σ_k w_k z_k, which is β_0 + Σ_k β_k x_k for β_k = w_k / s_k
and β_0 = b − Σ_k w_k m_k / s_k. All of it is linear in the weights, so what is believed of β is Gaussian, too.

How sure they are is what the agent believes. By the rule `laplace` that is what a regression on all the data would say.
By the paper's rule weights are independent in it, and data that is used again in every round counts again, so an
interval is as a rule narrower than that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import scipy.sparse as sp
from jaxtyping import Float
from scipy.special import ndtri

from consilience.errors import InputError, brief
from consilience.models.likelihoods import Bernoulli, Categorical, Gaussian, Poisson
from consilience.models.likelihoods.likelihood import require_level
from consilience.report.tables import as_text
from consilience.task.columns import Feature, Target, features, predicted
from consilience.task.learnt import Learnt

if TYPE_CHECKING:
    from consilience.learning.fit import Fit

INTERCEPT = "(intercept)"
TOLD = ("mean", "sd", "low", "high", "ratio", "ratio_low", "ratio_high")  # of each line, where it is shown


@dataclass(frozen=True, repr=False)
class Coefficients:
    """A line for each coefficient, in the units of the data; columns by name.

    `column`, `level` and its `reference` (of categories), `unit`; `mean`, `sd`, `low`, `high`: of the coefficient.
    `label` (of more than two labels): whose log odds against the first they add to. `ratio`, `ratio_low`, `ratio_high`:
    e to the power of these, odds ratios of labels or rate ratios of counts (`ratio_name`); medians of what is believed.
    """

    columns: Mapping[str, Any]
    of: str
    ratio_name: str = ""
    level: float = 0.95

    def __len__(self) -> int:
        return len(self.columns["mean"])

    def __repr__(self) -> str:
        units = {"unit": self.columns["unit"]} if any(self.columns["unit"]) else {}
        told = {name: self.columns[name] for name in TOLD if name in self.columns}
        return as_text({self.of: self.names(), **units, **told}, most=100)

    def names(self) -> list[str]:
        """What each line is called, e.g. `age`, or `side = right (against left)`."""
        parts = (self.columns[name] for name in ("label", "column", "level", "reference"))
        several = len(set(self.columns["label"])) > 1
        return [
            (f"{label}: " if several else "") + (column if level is None else f"{column} = {level} (against {other})")
            for label, column, level, other in zip(*parts, strict=True)
        ]

    def to_pandas(self) -> Any:
        """As a data frame of pandas."""
        import pandas

        return pandas.DataFrame(dict(self.columns))


def coefficients_of(fit: Fit, mean: Any, sd: Any, covariance: Any = None, level: float = 0.95) -> Coefficients:
    """Coefficients from what is believed of the weights, in the model's own tree (see `Belief`)."""
    check_linear(fit.config)
    require_level(level)
    learnt, inputs = fit.learnt, _features(fit.learnt)
    labels, A = in_units(learnt, len(_layer(mean)["c"]), inputs)
    means = A @ _weights(mean)
    if covariance is None:
        variances = A.power(2) @ _weights(sd) ** 2
    else:
        variances = np.asarray(A.multiply(A @ _of_layer(mean, covariance)).sum(axis=1)).reshape(-1)
    sds = np.sqrt(variances)
    likelihood = learnt.likelihood
    if isinstance(likelihood, Gaussian):
        means, sds = likelihood.scale * means, likelihood.scale * sds
        means[0] += likelihood.centre
    elif isinstance(likelihood, Poisson):
        means[0] += math.log(likelihood.centre)
    lines = [Feature(INTERCEPT, None, 0.0, 1.0, "", None), *inputs]
    far = float(ndtri((1 + level) / 2)) * sds
    columns: dict[str, Any] = {
        "label": [label for label in labels for _ in lines],
        **{
            field: [getattr(line, field) for _ in labels for line in lines]
            for field in ("column", "level", "reference", "unit")
        },
        "mean": means,
        "sd": sds,
        "low": means - far,
        "high": means + far,
    }
    name = {"gaussian": "", "poisson": "rate ratio"}.get(likelihood.name, "odds ratio")
    if name:
        with np.errstate(over="ignore"):
            ends = {"ratio": means, "ratio_low": means - far, "ratio_high": means + far}
            columns |= {key: np.exp(values) for key, values in ends.items()}
    return Coefficients(columns, _told_of(learnt), name, level)


def check_linear(config: Any) -> None:
    """Refuse a run whose model has no coefficients."""
    model, likelihood = config.model, getattr(config, "likelihood", None)
    for part, found in (("model", model), ("likelihood", likelihood)):
        if getattr(found, "kind", None) == "given":
            raise InputError(f"{part}: was given in Python, what its numbers mean is not known; it has no coefficients")
    if model.kind != "mlp" or model.hidden:
        got = f"hidden = {brief(model.hidden)}" if model.kind == "mlp" else f"kind = '{model.kind}'"
        raise InputError(f"model: must be an mlp without hidden layers to have coefficients, got {got}")


def in_units(learnt: Learnt, outputs: int, inputs: Sequence[Feature]) -> tuple[list[str], Any]:
    """A with β = A w: what is told of, and the coefficients from (b, w_1, …) of every output, one after another.

    Told of is the output, or the difference of each label's from the first one's. β_k = w_k / s_k, and
    β_0 = b − Σ_k w_k m_k / s_k.

    >>> age = Feature("age", None, 50.0, 10.0, "years", None)
    >>> line = Learnt(None, Gaussian(), (), (), (1,))
    >>> in_units(line, 1, [age])[1].toarray().tolist()
    [[1.0, -5.0], [0.0, 0.1]]
    """
    scale = np.array([1.0, *(feature.scale for feature in inputs)])
    of_output = sp.lil_array(sp.diags_array(1 / scale))
    if inputs:
        of_output[0, 1:] = [-feature.centre / feature.scale for feature in inputs]
    likelihood = learnt.likelihood
    if isinstance(likelihood, Categorical):
        differences = sp.hstack([-np.ones((outputs - 1, 1)), sp.eye_array(outputs - 1)])
        return list(likelihood.label_names[1:]), sp.csr_array(sp.kron(differences, of_output))
    return [likelihood.label_names[1] if isinstance(likelihood, Bernoulli) else ""], sp.csr_array(of_output)


def _layer(tree: Any) -> Any:
    return (tree["network"] if isinstance(tree, dict) else tree)[-1]


def _weights(tree: Any) -> Float[np.ndarray, "numbers"]:
    """(b, w_1, …) of every output, one after another."""
    layer = _layer(tree)
    return np.asarray(np.concatenate([layer["c"][:, None], layer["w"]], axis=1), np.float64).reshape(-1)


def _of_layer(tree: Any, covariance: Any) -> Float[np.ndarray, "numbers numbers"]:
    """The covariance of the same numbers, in the same order."""
    leaves, structure = jax.tree.flatten(tree)
    ends = np.cumsum([leaf.size for leaf in leaves])
    places = [np.arange(end - leaf.size, end).reshape(leaf.shape) for leaf, end in zip(leaves, ends, strict=True)]
    order = _weights(jax.tree.unflatten(structure, places)).astype(int)
    return np.asarray(np.asarray(covariance, np.float64)[np.ix_(order, order)])


def _features(learnt: Learnt) -> list[Feature]:
    """What each input is; those of arrays have no name but their place."""
    if learnt.columns is not None:
        return features(learnt.columns)
    return [
        Feature(f"x[{', '.join(map(str, place))}]", None, 0.0, 1.0, "", None) for place in np.ndindex(*learnt.shape)
    ]


def _told_of(learnt: Learnt) -> str:
    """What coefficients add to."""
    name, answer = predicted(learnt.columns) if learnt.columns is not None else ("y", None)
    if isinstance(learnt.likelihood, Categorical | Bernoulli):
        first, *others = learnt.likelihood.label_names
        other = others[0] if len(others) == 1 else "each label"
        return f"log odds of {other} against {first}"
    if isinstance(learnt.likelihood, Poisson):
        return f"log rate of {name}"
    unit = f" ({answer.unit})" if isinstance(answer, Target) and answer.unit else ""
    return f"mean of {name}{unit}"
