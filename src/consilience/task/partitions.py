"""Descriptions of who holds what, one for each kind."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, PositiveFloat

from consilience.data import Dataset, Partition, by_feature, by_label, dirichlet, from_file, iid, shards, skewed
from consilience.data.labels import label_number
from consilience.described.fields import Described, naming
from consilience.errors import InputError, brief


class Group(Described):
    """Labels and the agents that share their examples."""

    labels: list[int | str] = Field(min_length=1)
    agents: list[int] = Field(min_length=1)


class ByLabel(Described):
    """Every label belongs to one group of agents."""

    kind: Literal["labels"] = "labels"
    groups: list[Group] = Field(min_length=1)

    def divide(self, dataset: Dataset, agents: int, seed: int) -> Partition:
        """Who holds what."""
        holders: dict[int, list[int]] = {}
        for group in self.groups:
            if wrong := [agent for agent in group.agents if not 0 <= agent < agents]:
                raise InputError(f"partition: names agent {wrong[0]}, there are agents 0 to {agents - 1}")
            for label in group.labels:
                number = label_number(dataset.label_names, label, "partition", dataset.name)
                if number in holders:
                    raise InputError(f"partition: label {brief(label)} is named twice, its holders belong together")
                holders[number] = group.agents
        return by_label(dataset.labels, holders, agents, seed)


class Iid(Described):
    """Shuffled and dealt out."""

    kind: Literal["iid"] = "iid"

    def divide(self, dataset: Dataset, agents: int, seed: int) -> Partition:
        """Who holds what."""
        return iid(len(dataset.labels), agents, seed)


class Dirichlet(Described):
    """Label proportions from a Dirichlet distribution."""

    kind: Literal["dirichlet"] = "dirichlet"
    alpha: PositiveFloat = 0.5

    def divide(self, dataset: Dataset, agents: int, seed: int) -> Partition:
        """Who holds what."""
        return dirichlet(dataset.labels, agents, self.alpha, seed)


class Skewed(Described):
    """Agents that differ in how much they hold and in what: sizes times label proportions, normalised for each label.

    Some may hold next to nothing, or nothing.
    """

    kind: Literal["skewed"] = "skewed"
    sizes: PositiveFloat = Field(1.0, description="of the Dirichlet distribution over agents: small, unequal sizes")
    classes: PositiveFloat = Field(0.5, description="of each agent's over labels: small, few labels an agent")

    def divide(self, dataset: Dataset, agents: int, seed: int) -> Partition:
        """Who holds what."""
        return skewed(dataset.labels, agents, self.sizes, self.classes, seed)


class Shards(Described):
    """Sorted by label and dealt out in pieces."""

    kind: Literal["shards"] = "shards"
    each: int = Field(2, ge=1)

    def divide(self, dataset: Dataset, agents: int, seed: int) -> Partition:
        """Who holds what."""
        return shards(dataset.labels, agents, self.each, seed)


class ByFeature(Described):
    """Ranges of one feature."""

    kind: Literal["feature"] = "feature"
    feature: int = Field(0, ge=0)

    def divide(self, dataset: Dataset, agents: int, seed: int) -> Partition:
        """Who holds what."""
        return by_feature(dataset.inputs, agents, self.feature)


class ByFile(Described):
    """Owners in a file."""

    kind: Literal["file"] = "file"
    file: Path = naming("file", description="the owner of each training example, a number a line")

    def divide(self, dataset: Dataset, agents: int, seed: int) -> Partition:
        """Who holds what."""
        return from_file(self.file, len(dataset.labels), agents)


PartitionConfig = Annotated[
    ByLabel | Iid | Dirichlet | Skewed | Shards | ByFeature | ByFile, Field(discriminator="kind")
]
