"""What is learnt from what: a user's own task, described."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Discriminator, Field, PositiveFloat, Tag
from pydantic.json_schema import SkipJsonSchema

from consilience.described.fields import naming
from consilience.described.networks import NetworkConfig, Ring
from consilience.runs.description import RunConfig
from consilience.task.columns import Columns
from consilience.task.consensus import ConsensusConfig, Pooling
from consilience.task.learner import VARIATIONAL, Gradient, Laplace, LearnerConfig, Natural, kind_of
from consilience.task.likelihoods import LikelihoodConfig, OfLabels
from consilience.task.models import AnyModelConfig, Mlp
from consilience.task.shares import ARRAYS, Arrays, SharesConfig

KEPT_BACK = 0.2  # of an agent's rows, to judge it by, where there is no test file


class OwnLearner(LearnerConfig):
    """The local update, with constants that do for tables of any size."""

    batch: int = Field(32, ge=1, description="B: examples a step; a smaller share is one smaller batch")
    steps: Literal["own", "same"] = Field(
        "own", description="own: everybody goes through its own data E times; same: as many steps for everybody"
    )
    learning_rate: PositiveFloat = Field(0.05, description="Adam's step size")
    decay: float = Field(0.95, gt=0, le=1, description="factor on the learning rate a round")
    initial_sd: PositiveFloat = Field(0.1, description="of every weight at the start")
    prior_sd: PositiveFloat = Field(1.0, description="of the first prior, around the shared initial weights")
    # Sds that move as slowly as the means do: faster ones make beliefs sharp, and freeze them, before the means arrive.
    sd_rate: float = Field(1.0, ge=0, description="learning rate of log σ as a multiple of that of μ")
    start: Literal["own", "pooled"] = Field("pooled", description="where a round's minimisation starts")


class OwnNatural(Natural):
    """Natural-gradient inference on shares of any size."""

    batch: int = Field(32, ge=1, description="B: examples a step; a smaller share is one smaller batch")
    steps: Literal["own", "same"] = Field(
        "own", description="own: everybody goes through its own data E times; same: as many steps for everybody"
    )


class OwnGradient(Gradient):
    """Gradient steps on shares of any size."""

    batch: int = Field(32, ge=1, description="B: examples a step; a smaller share is one smaller batch")
    steps: Literal["own", "same"] = Field(
        "own", description="own: everybody goes through its own data E times; same: as many steps for everybody"
    )


AnyOwnLearner = Annotated[
    Annotated[OwnLearner, Tag(VARIATIONAL)]
    | Annotated[OwnNatural, Tag("natural")]
    | Annotated[OwnGradient, Tag("gradient")]
    | Annotated[Laplace, Tag("laplace")],
    Discriminator(kind_of),
]


class Config(RunConfig):
    """A user's own task; `consilience new` proposes one."""

    experiment: Literal["learn"] = "learn"
    rounds: int = Field(60, ge=1)
    record_every: int = Field(5, ge=1)
    checkpoint_every: int = Field(20, ge=1)
    precision: Literal["float32", "float64"] = "float32"
    per_seed: bool = Field(True, description="where there are several seeds, a row for each in the place of means")
    shares: SharesConfig = Field(..., description="where everybody's data is")
    network: NetworkConfig = Field(Ring(), description="who hears whom")
    alone: bool = Field(False, description="also learn without hearing each other, to compare")
    model: AnyModelConfig = Field(Mlp(hidden=[]), description="what is learnt")
    likelihood: LikelihoodConfig = Field(OfLabels(), description="what the model's outputs say of what is predicted")
    learner: AnyOwnLearner = OwnLearner()
    consensus: ConsensusConfig = Pooling()
    test: Path | None = naming("file", None, description="a file that is nobody's, to judge everybody by")
    held_out: float | None = Field(
        None, ge=0, lt=1, description="share of its rows by which each agent is judged [default: 0.2 without a test]"
    )
    samples: int = Field(32, ge=1, description="L: Monte Carlo draws for predictions")
    same_start: bool = Field(False, description="all repetitions begin with the weights of the first seed")
    columns: Columns | None = Field(None, description="what the columns of tables mean")
    beside: SkipJsonSchema[Path | None] = Field(None, exclude=True, description="where it lies")  # not part of it

    def carried(self) -> dict[str, bytes]:
        """The arrays, where these are all that there is of the data."""
        if not isinstance(self.shares, Arrays):
            return {}
        return {ARRAYS: self.shares.found(self.beside).read_bytes()}

    def kept_back(self, tested: bool) -> float:
        """The share of its rows that each agent is judged by."""
        return (0.0 if tested else KEPT_BACK) if self.held_out is None else self.held_out


# What only a user can say, to look at: `consilience new` writes it from files.
EXAMPLE = {
    "shares": {"kind": "files", "files": {"north": "north.csv", "south": "south.csv"}},
    "network": {"kind": "ring", "agents": 2},
    "columns": {
        "age": {"kind": "number", "unit": "years", "low": 0, "high": 120, "centre": 50, "scale": 15},
        "sex": {"kind": "category", "levels": ["female", "male"]},
        "outcome": {"kind": "label", "levels": ["well", "ill"]},
    },
}
