"""What a classification run has; the built-in experiments are values for it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from consilience.described.fields import naming
from consilience.described.networks import NetworkConfig
from consilience.runs.description import ArmName, RunConfig
from consilience.task.consensus import ConsensusConfig, Pooling
from consilience.task.learner import LearnerConfig, PaperLearner
from consilience.task.models import Mlp, ModelConfig
from consilience.task.partitions import Iid, PartitionConfig


class Config(RunConfig):
    """A classification run; the built-in experiments are values for it."""

    experiment: str
    rounds: int = Field(800, ge=1)
    record_every: int = Field(25, ge=1)
    checkpoint_every: int = Field(25, ge=1)
    precision: Literal["float32", "float64"] = "float32"
    dataset: str = naming("file", "mnist", description="a dataset's name, or a file .npz, .csv or .parquet")
    data_dir: Path | None = naming("folder", None, description="where a dataset's files are")
    per_seed: bool = Field(True, description="where there are several seeds, a row for each in the place of means")
    validation: int = Field(0, ge=0, description="training examples to test on, to choose settings; 0: the test set")
    training: int = Field(0, ge=0, description="training examples that are used, drawn anew by every seed; 0: all")
    partition: PartitionConfig = Iid()
    networks: dict[ArmName, NetworkConfig] = Field(min_length=1, description="one arm for each")
    alone: bool = Field(False, description="also run the agents of the first network without hearing each other")
    model: ModelConfig = Mlp()
    learner: PaperLearner = LearnerConfig()
    consensus: ConsensusConfig = Pooling()
    samples: int = Field(6, ge=1, description="L: Monte Carlo draws for predictions")
    same_partition: bool = Field(False, description="all repetitions have the partition of the first seed")
    same_start: bool = Field(False, description="all repetitions begin with the weights of the first seed")
    told_over: int = Field(1, ge=1, description="the last rounds of which the mean is told, of those recorded")
    strangers: str | None = naming(
        "file", None, description="another dataset, name or file, whose images are to be told apart by their doubt"
    )
    watched: list[int | str] = Field([], description="labels whose confidence is drawn")
    confusion: bool = Field(False, description="also record how often each label is taken for each other one")
