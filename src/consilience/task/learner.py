"""How an agent learns from its own data in a round: how much of it, in which steps, and what is done with them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from consilience.described.fields import Described
from consilience.learners import Options
from consilience.learners.gradient import GradientOptions
from consilience.learners.laplace import LaplaceOptions
from consilience.learners.natural import NaturalOptions

VARIATIONAL = "variational"


class Drawing(Described):
    """How much data a round takes."""

    epochs: int = Field(5, ge=1, description="E: passes over the local data a round")
    batch: int = Field(50, ge=1, description="B: examples a step")
    evidence: Literal["own", "drawn", "used"] = Field(
        "own", description="n in KL/n: all own examples, those drawn in a round, or those used in an epoch"
    )
    # The paper's rule: the smallest share decides how many steps everybody makes, of B examples each.
    steps: Literal["own", "same"] = Field(
        "same", description="own: everybody goes through its own data E times; same: as many steps for everybody"
    )


class LearnerConfig(Options, Drawing):
    """The paper's local update: how much data a round takes, and what `variational` does with it."""

    kind: Literal["variational"] = "variational"


class Natural(NaturalOptions, Drawing):
    """Natural-gradient variational inference."""

    kind: Literal["natural"] = "natural"


class Gradient(GradientOptions, Drawing):
    """Gradient steps on point weights."""

    kind: Literal["gradient"] = "gradient"


class Laplace(LaplaceOptions):
    """Laplace's approximation with a full covariance, for models without hidden layers; a round is one Newton step."""

    kind: Literal["laplace"] = "laplace"
    batch: int = Field(256, ge=1, description="examples at a time; all own examples are used in every round")

    @property
    def epochs(self) -> int:
        """Every example once a round."""
        return 1

    @property
    def steps(self) -> Literal["own"]:
        """As many as the own data has."""
        return "own"

    @property
    def evidence(self) -> Literal["own"]:
        """All own examples."""
        return "own"


AnyLearner = LearnerConfig | Natural | Gradient | Laplace


def kind_of(values: Any) -> str:
    """The kind of a described learner; where nothing is said, it is the paper's."""
    kind = values.get("kind", VARIATIONAL) if isinstance(values, dict) else getattr(values, "kind", VARIATIONAL)
    return str(kind)


PaperLearner = Annotated[
    Annotated[LearnerConfig, Tag(VARIATIONAL)]
    | Annotated[Natural, Tag("natural")]
    | Annotated[Gradient, Tag("gradient")]
    | Annotated[Laplace, Tag("laplace")],
    Discriminator(kind_of),
]
