"""Two labels: one output, the log odds of the second."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from consilience.errors import InputError, brief
from consilience.models.likelihoods.categorical import (
    Predictive,
    label_scores,
    mean_over_draws,
    require_distinct,
    told_of_labels,
)
from consilience.models.likelihoods.likelihood import Apply, Told
from consilience.models.networks import Model


@dataclass(frozen=True)
class Bernoulli:
    """P(y = 1) = 1 / (1 + e^−f), with y = 0 for the first label and 1 for the second.

    >>> likelihood = Bernoulli(("no", "yes"))
    >>> likelihood.log_density(jnp.array([[0.0], [2.0]]), jnp.array([0, 1])).round(4).tolist()
    [-0.6931, -0.1269]
    """

    label_names: tuple[str, ...]
    concave: ClassVar[bool] = True
    name: ClassVar[str] = "bernoulli"
    outputs: ClassVar[int] = 1

    def __post_init__(self) -> None:
        require_distinct(self.label_names)
        if len(self.label_names) > 2:
            raise InputError(f"label_names: bernoulli has two, got {brief(self.label_names)}")

    def model(self, network: Model) -> Model:
        """The network."""
        return network

    def log_density(self, outputs: Float[Array, "batch 1"], targets: Int[Array, "batch"]) -> Float[Array, "batch"]:
        """log P(y) of each example's label."""
        return jax.nn.log_sigmoid(jnp.where(targets == 1, 1, -1) * outputs[:, 0])

    def probabilities(self, outputs: Float[Array, "examples 1"]) -> Float[Array, "examples 2"]:
        """Of both labels."""
        return jnp.concatenate([jax.nn.sigmoid(-outputs), jax.nn.sigmoid(outputs)], axis=-1)

    def predictive(self, apply: Apply, belief: Any, inputs: Array, key: PRNGKeyArray, samples: int) -> Predictive:
        """The probabilities of both labels."""
        return mean_over_draws(self.probabilities, apply, belief, inputs, key, samples)

    def scores(
        self, predicted: Predictive, targets: Int[Array, "examples"], weights: Float[Array, "examples"] | None = None
    ) -> dict[str, Float[Array, ""]]:
        """As those of any labels."""
        return label_scores(predicted, targets, weights)

    def told(self, predicted: Predictive, level: float = 0.9) -> Told:
        """As for any labels."""
        return told_of_labels(predicted, self.label_names)
