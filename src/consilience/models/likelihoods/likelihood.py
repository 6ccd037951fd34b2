"""What every likelihood can do, and the checks of the values it is built from."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from consilience.errors import InputError, brief
from consilience.models.networks import Model

LogDensity = Callable[[Float[Array, "batch outputs"], Array], Float[Array, "batch"]]
Apply = Callable[[Float[Array, "size"], Array], Float[Array, "examples outputs"]]
Told = dict[str, np.ndarray]


@runtime_checkable
class Likelihood(Protocol):
    """ℓ(y | f_θ(x)): the law of a target, given a network's outputs.

    All but `told` are pure functions of arrays, fit for a jitted program.
    """

    @property
    def name(self) -> str:
        """What it is called in a description."""
        ...

    @property
    def outputs(self) -> int:
        """How many outputs the network must have."""
        ...

    @property
    def concave(self) -> bool:
        """Whether log ℓ is concave in the outputs, so that curvatures are never negative."""
        ...

    def model(self, network: Model) -> Model:
        """What is learnt: the network, or the network and parameters of the likelihood beside it."""
        ...

    def log_density(self, outputs: Any, targets: Any) -> Float[Array, "batch"]:
        """log ℓ of each example's target, from the outputs of `model`."""
        ...

    def predictive(self, apply: Apply, belief: Any, inputs: Array, key: PRNGKeyArray, samples: int) -> Any:
        """What is predicted when θ is drawn from the belief: a named tuple of arrays, with a row for each example."""
        ...

    def scores(
        self, predicted: Any, targets: Array, weights: Float[Array, "examples"] | None = None
    ) -> dict[str, Float[Array, ""]]:
        """How good and how sure the predictions are; `weights` count examples, 0 leaves one out."""
        ...

    def told(self, predicted: Any, level: float = 0.9) -> Told:
        """The columns that are shown to a user; intervals are central and hold this share."""
        ...


def require_positive(name: str, value: float) -> None:
    """Refuse a number that is not positive and finite."""
    if not 0 < value < math.inf:
        raise InputError(f"{name}: must be positive and finite, got {brief(value)}")


def require_level(level: float) -> None:
    """Refuse a level that is no share.

    >>> require_level(1.5)
    Traceback (most recent call last):
    consilience.errors.InputError: level: must lie between 0 and 1, got 1.5
    """
    if not 0 < level < 1:
        raise InputError(f"level: must lie between 0 and 1, got {brief(level)}")
