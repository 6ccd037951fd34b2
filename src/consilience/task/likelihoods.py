"""Descriptions of likelihoods: what a network's outputs say of what is predicted."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, PositiveFloat

from consilience.described.fields import Described
from consilience.errors import InputError
from consilience.models.likelihoods import Bernoulli, Categorical, Gaussian, Likelihood, Poisson
from consilience.task.columns import Target

LabelNames = tuple[str, ...]


class LikelihoodDescribed(Described):
    """What every one is asked: whether whole numbers are numbers to it, not labels, and which targets it refuses."""

    of_numbers: ClassVar[bool] = False

    def refuses(self, targets: np.ndarray) -> str | None:
        """The rule that some target breaks, if any."""
        return None


class OfLabels(LikelihoodDescribed):
    """Of a class."""

    kind: Literal["categorical"] = "categorical"

    def build(self, labels: LabelNames, target: Target | None) -> Likelihood:
        """A probability for each label."""
        return Categorical(_labels(labels, self.kind))


class OfTwoLabels(LikelihoodDescribed):
    """Of one of two classes: one output, the log odds of the second."""

    kind: Literal["bernoulli"] = "bernoulli"

    def build(self, labels: LabelNames, target: Target | None) -> Likelihood:
        """The odds of the second label."""
        if len(_labels(labels, self.kind)) != 2:
            raise InputError(f"likelihood: bernoulli is for two labels, there are {len(labels)}; use categorical")
        return Bernoulli(labels)


class OfNumbers(LikelihoodDescribed):
    """Of a number, with Gaussian noise."""

    of_numbers: ClassVar[bool] = True
    kind: Literal["gaussian"] = "gaussian"
    noise: PositiveFloat | None = Field(
        None, description="its standard deviation, in the target's units, where it is known; else it is learnt"
    )
    centre: float = Field(0.0, description="where no column says it: what an output of 0 stands for")
    scale: PositiveFloat = Field(1.0, description="where no column says it: what an output of 1 adds to that")

    def build(self, labels: LabelNames, target: Target | None) -> Likelihood:
        """In the target's units."""
        _no_labels(labels, self.kind)
        centre, scale = (self.centre, self.scale) if target is None else (target.centre, target.scale)
        return Gaussian(self.noise, centre, scale)


class OfCounts(LikelihoodDescribed):
    """Of a count."""

    of_numbers: ClassVar[bool] = True
    kind: Literal["poisson"] = "poisson"
    centre: PositiveFloat = Field(1.0, description="the rate that an output of 0 stands for, say the mean count")
    most: int = Field(1000, ge=1, le=10**6, description="the largest count that the CRPS looks at")

    def build(self, labels: LabelNames, target: Target | None) -> Likelihood:
        """The rate of counts."""
        _no_labels(labels, self.kind)
        if target is not None and not target.counts:
            raise InputError("likelihood: poisson is for counts; say counts = true of the target's column")
        return Poisson(self.centre, self.most)

    def refuses(self, targets: np.ndarray) -> str | None:
        """Counts are whole numbers from 0 on."""
        wrong = (targets < 0) | (targets != np.floor(targets))
        return f"poisson is for counts, whole numbers from 0 on, one is {targets[wrong][0]:g}" if wrong.any() else None


class GivenLikelihood(LikelihoodDescribed):
    """One that was handed over in Python and cannot be written down."""

    kind: Literal["given"] = "given"
    name: str = "given"
    outputs: int = Field(1, ge=1)
    likelihood: Any = Field(None, exclude=True)

    def build(self, labels: LabelNames, target: Target | None) -> Likelihood:
        """As it was given."""
        if not isinstance(self.likelihood, Likelihood):
            raise InputError(
                "likelihood: was given in Python; give it again: cs.load(folder, likelihood=…), or the same cs.learn(…)"
            )
        given: Likelihood = self.likelihood
        return given


LikelihoodConfig = Annotated[
    OfLabels | OfTwoLabels | OfNumbers | OfCounts | GivenLikelihood, Field(discriminator="kind")
]


def written(likelihood: Likelihood) -> tuple[Likelihood | None, dict[str, Any]]:
    """A likelihood as its description; and itself, where that does not say all."""
    if isinstance(likelihood, Categorical | Bernoulli):
        return None, {"kind": likelihood.name}
    if isinstance(likelihood, Gaussian):
        known = {"noise": likelihood.noise, "centre": likelihood.centre, "scale": likelihood.scale}
        return None, {"kind": likelihood.name} | {name: value for name, value in known.items() if value is not None}
    if isinstance(likelihood, Poisson):
        return None, {"kind": likelihood.name, "centre": likelihood.centre, "most": likelihood.most}
    if not isinstance(likelihood, Likelihood):
        raise InputError(f"likelihood: must be a likelihood or the name of one, got {type(likelihood).__name__}")
    return likelihood, {"kind": "given", "name": likelihood.name, "outputs": likelihood.outputs}


def _labels(labels: LabelNames, kind: str) -> LabelNames:
    if not labels:
        raise InputError(f"likelihood: {kind} predicts a label, the data has numbers; use gaussian or poisson")
    return labels


def _no_labels(labels: LabelNames, kind: str) -> None:
    if labels:
        raise InputError(f"likelihood: {kind} predicts a number, the data has labels; use categorical")
