"""A user's own task as one of its agents has it: its own share, its own number, and nothing of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from consilience.engines.arm import Arm
from consilience.errors import InputError, brief
from consilience.experiments.learn.agreed import built
from consilience.experiments.learn.arms import _check_targets, _measure, _parted
from consilience.experiments.learn.description import Config
from consilience.task.shared import Examples, room
from consilience.task.shares import Held
from consilience.task.task import Task, arm_of_one


class Share(NamedTuple):
    """An agent's own data in a task, ready to be learnt from; `most`: rows that it is judged by; what reports keep."""

    task: Task
    samples: int
    most: int
    kept: dict[str, Any]

    def arm(self, present: int) -> Arm:
        """The agent that learns from it, among so many."""
        return arm_of_one(self.task, present, partial(partial, _measure, self.task, self.samples, room(self.most)))


def share_of(
    task: Mapping[str, Any],
    config: Config,
    number: int,
    agents: int,
    labels: Sequence[str] | None = None,
    shape: Sequence[int] | None = None,
) -> Share:
    """A task that was agreed on with the one share that its description names, as agent `number` of so many.

    labels, shape: what all have agreed on, where columns do not say it. Who learns from which of its rows, and by which
    it is judged, is what a simulation of all agents would have.
    """
    learnt = built(task, labels, shape)
    held = _as_agreed(
        config.shares.read(config.columns, config.beside, config.likelihood.of_numbers),
        learnt.label_names,
        learnt.shape,
    )
    _check_targets(config, held)
    name = next(iter(held.names))
    held = held._replace(owner=np.full(len(held.targets), number))
    own, kept = _parted(config, held, agents, config.seed)
    made = Task(
        lambda: Examples(held.inputs, held.targets),
        {config.seed: own},
        {config.seed: kept},
        learnt.model,
        learnt.likelihood,
        config.learner,
        consensus=config.consensus,
    )
    kinds = len(held.label_names)
    counts = own.counts(held.targets, kinds)[number].tolist() if kinds else None
    return Share(
        made,
        config.samples,
        int(kept.sizes()[number]),
        {
            "note": None,
            "agents": [name],
            "rows": [int(own.sizes()[number])],
            "held_out_rows": [int(kept.sizes()[number])],
            "test_rows": None,
            "label_names": list(held.label_names),
            "input_shape": list(held.inputs.shape[1:]),
            "counts": None if counts is None else [counts],
        },
    )


def _as_agreed(held: Held, labels: Sequence[str], shape: Sequence[int]) -> Held:
    """The share as all have agreed to read it: its labels are numbered as everybody's are."""
    if tuple(held.inputs.shape[1:]) != tuple(shape):
        raise InputError(
            f"data: inputs must be of shape {tuple(shape)}, as the study says, got {held.inputs.shape[1:]}"
        )
    if bool(labels) != bool(held.label_names):
        kinds = ("labels", "numbers") if labels else ("numbers", "labels")
        raise InputError(f"data: the study predicts {kinds[0]}, the file has {kinds[1]}")
    if unknown := [name for name in held.label_names if name not in labels]:
        raise InputError(f"data: the study knows no label {brief(unknown[0])}; it has {', '.join(labels)}")
    if not labels:
        return held
    numbers = np.array([list(labels).index(name) for name in held.label_names], np.int32)
    return held._replace(targets=numbers[held.targets], label_names=tuple(labels))
