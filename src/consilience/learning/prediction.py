"""Predictions of an agent for new inputs, with how much of the doubt is ignorance."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from consilience.beliefs import Gaussian, MeanField, Point
from consilience.data.labels import values_of
from consilience.errors import InputError
from consilience.models.likelihoods import Bernoulli, Categorical
from consilience.models.likelihoods.categorical import mean_over_draws_at_once
from consilience.models.likelihoods.draws import WEIGHTS
from consilience.models.likelihoods.likelihood import require_level
from consilience.report.tables import as_text
from consilience.task.learnt import Learnt
from consilience.task.task import flat_apply

PIECE = 20_000  # rows at a time
AnyBelief = MeanField | Gaussian | Point


@dataclass(frozen=True, repr=False)
class Prediction:
    """What is predicted for each row: columns by name.

    For labels: `prediction` (whole numbers or booleans where all labels are, else text), `p_LABEL` of each, `aleatoric`
    and `epistemic` (entropies, in nats: what noise leaves open, and what more data would tell). For numbers:
    `prediction` (the mean), `sd`, `low` and `high` (a central interval), `aleatoric` and `epistemic` (standard
    deviations).

    >>> columns = {"prediction": np.array(["yes"]), "p_no": np.array([0.2]), "p_yes": np.array([0.8])}
    >>> told = Prediction(columns, label_names=("no", "yes"))
    >>> told.prediction.tolist(), told.probabilities.tolist(), len(told)
    (['yes'], [[0.2, 0.8]], 1)
    """

    columns: Mapping[str, np.ndarray]
    label_names: tuple[str, ...] = ()
    level: float = 0.9

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __repr__(self) -> str:
        return as_text(self.named())

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

    def named(self) -> dict[str, np.ndarray]:
        """The columns with labels by their names, as `consilience predict` prints and writes them."""
        names = np.array(self.label_names)
        return dict(self.columns) | ({"prediction": names[self.probabilities.argmax(1)]} if self.label_names else {})

    def to_pandas(self) -> Any:
        """As a data frame of pandas."""
        import pandas

        return pandas.DataFrame(dict(self.columns))

    def to_polars(self) -> Any:
        """As a data frame of polars."""
        import polars

        return polars.DataFrame(dict(self.columns))


class Predictor:
    """Predictions by Monte Carlo over draws of the parameters; a program is compiled once, whoever's belief it is."""

    def __init__(self, learnt: Learnt) -> None:
        self.learnt = learnt
        self._compiled: dict[int, Any] = {}

    def __call__(
        self, belief: AnyBelief, inputs: np.ndarray, samples: int, seed: int = 0, level: float = 0.9
    ) -> Prediction:
        """What a belief predicts; rows are spread over the devices."""
        learnt = self.learnt
        if inputs.shape[1:] != learnt.shape:
            raise InputError(f"inputs: must have the shape {learnt.shape} each, got {inputs.shape[1:]}")
        if not len(inputs):
            raise InputError("inputs: must have at least one row, got none")
        require_level(level)
        begins = range(0, len(inputs), PIECE)
        devices = jax.local_devices()[: len(begins)]
        predict = self._compiled.setdefault(samples, jax.jit(partial(_predictive, learnt, samples)))
        wide = bool(jax.config.read("jax_enable_x64"))  # of this thread

        def of_piece(begin: int) -> dict[str, np.ndarray]:
            piece = inputs[begin : begin + PIECE]
            spare = min(PIECE, len(inputs)) - len(piece)  # one shape, one program
            filled = np.concatenate([piece, np.zeros((spare, *piece.shape[1:]), piece.dtype)]) if spare else piece
            with jax.enable_x64(wide):
                given = belief, filled, jax.random.key(seed)
                found = predict(*jax.device_put(given, devices[begin // PIECE % len(devices)]))
                return {name: column[: len(piece)] for name, column in learnt.likelihood.told(found, level).items()}

        with ThreadPoolExecutor(len(devices)) as beside:  # a device computes for one thread at a time
            parts = list(beside.map(of_piece, begins))
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        found = Prediction(columns, learnt.label_names, level)
        if learnt.label_names:
            columns["prediction"] = values_of(learnt.label_names)[found.probabilities.argmax(1)]
        return found


def _predictive(learnt: Learnt, samples: int, belief: AnyBelief, inputs: Array, key: PRNGKeyArray) -> Any:
    scaled = inputs / 255.0 if inputs.dtype == jnp.uint8 else inputs
    apply, likelihood = flat_apply(learnt.model), learnt.likelihood
    if isinstance(likelihood, Categorical | Bernoulli) and samples * learnt.model.size <= WEIGHTS:
        return mean_over_draws_at_once(likelihood.probabilities, apply, belief, scaled, key, samples)
    return likelihood.predictive(apply, belief, scaled, key, samples)
