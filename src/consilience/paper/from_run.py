"""From a finished run's folder to what it tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np

from consilience.experiments import summarise
from consilience.experiments.images.confusion import at_the_end
from consilience.experiments.images.description import Config as OfLabels
from consilience.paper.told import Told, centre_of
from consilience.paper.told_file import from_values, rounded
from consilience.runs import folder as files
from consilience.runs import run
from consilience.runs.description import RunConfig
from consilience.runs.record import Record

FACTS = ("command", "seeds", "hours", "versions", "commit", "machine")


def told_by(name: str, folder: Path) -> Told:
    """What the run in a folder tells, under the name of its play; the very value that its file holds."""
    config, record = run.recorded(folder)
    known = files.facts(folder)
    with jax.enable_x64(config.precision == "float64"):
        summary = summarise(config, record)
    exact = {
        "name": name,
        "configuration": config.model_dump(mode="json", exclude_none=True, exclude={"data_dir"}),  # the place's own
        "facts": {fact: known[fact] for fact in FACTS if fact in known},
    }
    measured = {"summary": summary, "rounds": record.rounds(record.arms()[0]), **curves(config, record)}
    return from_values({**exact, **rounded(measured)})


def curves(config: RunConfig, record: Record) -> dict[str, Any]:
    """Of a run about labels: accuracies, confidences, what is taken for what, and who held what."""
    if not isinstance(config, OfLabels):
        fields = ("by_seed", "by_agent", "label_names", "counts")
        return {"confidences": {}, "confusions": {}, **{name: [] for name in fields}}
    arm, names, counts = record.arms()[0], record.shares["label_names"], np.array(record.shares["counts"])
    centre = centre_of(counts)
    confidences: dict[str, dict[str, np.ndarray]] = {"centre": {}, "edges": {}}
    for label in names:
        of_agents = record.select(arm, f"confidence_{label}")
        confidences["centre"][label] = of_agents[:, centre]
        confidences["edges"][label] = np.delete(of_agents, centre, axis=1).mean(axis=1)
    return {
        "by_seed": record.each(arm, "accuracy").mean(axis=2),
        "by_agent": record.select(arm, "accuracy"),
        "confidences": confidences,
        "confusions": at_the_end(record, centre) if config.confusion else {},
        "label_names": names,
        "counts": counts,
    }
