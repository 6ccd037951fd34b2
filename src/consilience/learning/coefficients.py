"""Coefficients of a model without hidden layers, in the units of the data: a line each, with how sure they are.

With inputs z_k = (x_k − m_k) / s_k a layer gives f = b + Σ_k w_k z_k, which is β_0 + Σ_k β_k x_k for β_k = w_k / s_k
and β_0 = b − Σ_k w_k m_k / s_k. All of it is linear in the weights, so what is believed of β is Gaussian, too.

How sure they are is what the agent believes: weights are independent in it, and data that is used again in every round
counts again. So an interval is as a rule narrower than the one that a regression on all the data would give.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

from consilience.errors import InputError, brief
from consilience.models.likelihoods import Bernoulli, Categorical, Gaussian, Poisson
from consilience.models.likelihoods.likelihood import require_level
from consilience.task.columns import Feature, Target, features, predicted
from consilience.task.learnt import Learnt

if TYPE_CHECKING:
    from consilience.learning.fit import Fit

INTERCEPT = "(intercept)"


@dataclass(frozen=True)
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


def coefficients_of(fit: Fit, mean: Any, sd: Any, level: float = 0.95) -> Coefficients:
    """Coefficients from means and standard deviations of the weights, in the model's own tree."""
    check_linear(fit.config)
    require_level(level)
    learnt = fit.learnt
    inputs = _features(learnt)
    blocks = [
        (label, *in_units(m, s, inputs))
        for label, m, s in _against_first(learnt, *(_weights(part) for part in (mean, sd)))
    ]
    likelihood = learnt.likelihood
    if isinstance(likelihood, Gaussian):
        blocks = [(label, likelihood.scale * m, likelihood.scale * s) for label, m, s in blocks]
        blocks[0][1][0] += likelihood.centre
    elif isinstance(likelihood, Poisson):
        blocks[0][1][0] += math.log(likelihood.centre)
    lines = [Feature(INTERCEPT, None, 0.0, 1.0, "", None), *inputs]
    means, sds = (np.concatenate([block[part] for block in blocks]) for part in (1, 2))
    far = float(ndtri((1 + level) / 2)) * sds
    columns: dict[str, Any] = {
        "label": [label for label, *_ in blocks for _ in lines],
        **{
            field: [getattr(line, field) for _ in blocks for line in lines]
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


def in_units(
    mean: Float[np.ndarray, "one_more"], sd: Float[np.ndarray, "one_more"], inputs: Sequence[Feature]
) -> tuple[Float[np.ndarray, "one_more"], Float[np.ndarray, "one_more"]]:
    """Mean and sd of (β_0, β_1, …) from those of (b, w_1, …), which are independent.

    >>> age = Feature("age", None, 50.0, 10.0, "years", None)
    >>> [part.round(4).tolist() for part in in_units(np.array([1.0, 2.0]), np.array([0.3, 0.08]), [age])]
    [[-9.0, 0.2], [0.5, 0.008]]
    """
    scale = np.array([1.0, *(feature.scale for feature in inputs)])
    moved = np.array([feature.centre / feature.scale for feature in inputs])
    mean_in_units, sd_in_units = mean / scale, sd / scale
    mean_in_units[0] = mean[0] - moved @ mean[1:]
    sd_in_units[0] = math.sqrt(sd[0] ** 2 + moved**2 @ sd[1:] ** 2)
    return mean_in_units, sd_in_units


def _weights(tree: Any) -> Float[np.ndarray, "outputs one_more"]:
    """(b, w_1, …) of every output."""
    layer = (tree["network"] if isinstance(tree, dict) else tree)[-1]
    return np.concatenate([layer["c"][:, None], layer["w"]], axis=1).astype(np.float64)


def _against_first(learnt: Learnt, mean: np.ndarray, sd: np.ndarray) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """What is told of: the output, or the difference of each label's from the first one's."""
    likelihood = learnt.likelihood
    if isinstance(likelihood, Categorical):
        spread = np.sqrt(sd[1:] ** 2 + sd[0] ** 2)
        return list(zip(likelihood.label_names[1:], mean[1:] - mean[0], spread, strict=True))
    return [(likelihood.label_names[1] if isinstance(likelihood, Bernoulli) else "", mean[0], sd[0])]


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
