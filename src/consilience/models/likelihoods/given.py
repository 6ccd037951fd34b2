"""A user's own likelihood: any log density of a target, given a network's outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, PRNGKeyArray

from consilience.errors import InputError, brief
from consilience.models.likelihoods.draws import draws_of
from consilience.models.likelihoods.likelihood import Apply, LogDensity, Told
from consilience.models.networks import Model
from consilience.models.scores import average


class OutputDraws(NamedTuple):
    """f_θk(x) of every draw θ_k."""

    outputs: Float[Array, "examples draws outputs"]


@dataclass(frozen=True)
class Given:
    """log ℓ(y | f) as a function that was handed over; see `given`."""

    density: LogDensity
    outputs: int
    name: str

    def __post_init__(self) -> None:
        if self.outputs < 1:
            raise InputError(f"outputs: must be at least 1, got {brief(self.outputs)}")

    @property
    def concave(self) -> bool:
        """Nobody knows."""
        return False

    def model(self, network: Model) -> Model:
        """The network."""
        return network

    def log_density(self, outputs: Float[Array, "batch outputs"], targets: Array) -> Float[Array, "batch"]:
        """The given function's, refused if it is not one number for each example."""
        told = jnp.asarray(self.density(outputs, targets))
        if told.shape != outputs.shape[:1]:
            wished = f"must give one number for each of {outputs.shape[0]} examples"
            raise InputError(f"log_density: {wished}, got an array of shape {told.shape}")
        return told

    def predictive(self, apply: Apply, belief: Any, inputs: Array, key: PRNGKeyArray, samples: int) -> OutputDraws:
        """The outputs of all draws."""
        return OutputDraws(draws_of(apply, belief, inputs, key, samples))

    def scores(
        self, predicted: OutputDraws, targets: Array, weights: Float[Array, "examples"] | None = None
    ) -> dict[str, Float[Array, ""]]:
        """NLL = −log (1/L) Σ_k ℓ(y | f_θk(x)); nothing else follows from a density alone."""
        draws = predicted.outputs.shape[1]
        each = jax.vmap(self.log_density, in_axes=(1, None), out_axes=1)(predicted.outputs, targets)
        return {"nll": average(jnp.log(draws) - logsumexp(each, axis=1), weights)}

    def told(self, predicted: OutputDraws, level: float = 0.9) -> Told:
        """Mean and standard deviation over draws of every output; there is no interval."""
        outputs = np.asarray(predicted.outputs, np.float64)
        mean, sd = outputs.mean(1), outputs.std(1)
        columns = ({f"mean_{k}": mean[:, k], f"sd_{k}": sd[:, k]} for k in range(outputs.shape[-1]))
        return {name: column for pair in columns for name, column in pair.items()}


def given(log_density: LogDensity, outputs: int, name: str = "given") -> Given:
    """A likelihood from `log_density(outputs, targets)`: log ℓ of each example, from its row of `outputs` outputs.

    >>> laplace = given(lambda f, y: -jnp.abs(y - f[:, 0]) - jnp.log(2.0), outputs=1, name="laplace")
    >>> laplace.log_density(jnp.zeros((1, 1)), jnp.array([1.0])).round(4).tolist()
    [-1.6931]
    """
    return Given(log_density, outputs, name)
