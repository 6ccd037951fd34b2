"""Predictions of an agent for new inputs, with how much of the doubt is ignorance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from consilience.beliefs import MeanField
from consilience.errors import InputError
from consilience.task.learnt import Learnt
from consilience.task.task import flat_apply

PIECE = 20_000  # rows at a time


@dataclass(frozen=True)
class Prediction:
    """What is predicted for each row: columns by name, as `consilience predict` prints them.

    For labels: `prediction`, `p_LABEL` of each, `aleatoric` and `epistemic` (entropies, in nats: what noise leaves
    open, and what more data would tell). For numbers: `prediction` (the mean), `sd`, `low` and `high` (a central
    interval), `aleatoric` and `epistemic` (standard deviations).
    """

    columns: Mapping[str, np.ndarray]
    label_names: tuple[str, ...] = ()
    level: float = 0.9

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getattr__(self, name: str) -> np.ndarray:
        """A column by its name."""
        if name.startswith("__") or name not in self.columns:
            raise AttributeError(f"no column '{name}'; there are {', '.join(self.columns)}")
        return self.columns[name]

    @property
    def probabilities(self) -> np.ndarray:
        """Of each label (columns), for each row."""
        if not self.label_names:
            raise InputError("probabilities: numbers are predicted here; see sd, low and high")
        return np.stack([self.columns[f"p_{name}"] for name in self.label_names], axis=1)

    def to_pandas(self) -> Any:
        """As a data frame of pandas."""
        import pandas

        return pandas.DataFrame(dict(self.columns))

    def to_polars(self) -> Any:
        """As a data frame of polars."""
        import polars

        return polars.DataFrame(dict(self.columns))


def predicted(
    learnt: Learnt, belief: MeanField, inputs: np.ndarray, samples: int, seed: int = 0, level: float = 0.9
) -> Prediction:
    """What a belief predicts, by Monte Carlo over draws of the parameters, a piece of the rows at a time."""
    if inputs.shape[1:] != learnt.shape:
        raise InputError(f"inputs: must have the shape {learnt.shape} each, got {inputs.shape[1:]}")
    parts: list[dict[str, np.ndarray]] = []
    predict = jax.jit(partial(_predictive, learnt, samples))
    for begin in range(0, len(inputs), PIECE):
        piece = inputs[begin : begin + PIECE]
        spare = min(PIECE, len(inputs)) - len(piece)  # one shape, one program
        filled = np.concatenate([piece, np.zeros((spare, *piece.shape[1:]), piece.dtype)]) if spare else piece
        found = predict(belief, jnp.asarray(filled), jax.random.key(seed))
        parts.append({k: v[: len(piece)] for k, v in learnt.likelihood.told(found, level).items()})
    if not parts:
        raise InputError("inputs: must have at least one row, got none")
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return Prediction(columns, learnt.label_names, level)


def _predictive(learnt: Learnt, samples: int, belief: MeanField, inputs: Array, key: PRNGKeyArray) -> Any:
    scaled = inputs / 255.0 if inputs.dtype == jnp.uint8 else inputs
    return learnt.likelihood.predictive(flat_apply(learnt.model), belief, scaled, key, samples)
