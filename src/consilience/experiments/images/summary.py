"""What is told of a run: every arm at its last recorded round."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.table import Table

from consilience.experiments.images.description import Config
from consilience.report.tables import table as made_table
from consilience.runs.record import Record

AVERAGES = (
    "pooled_accuracy",
    "nll",
    "brier",
    "ece",
    "epistemic",
    "disagreement",
    "mean_sd",
    "floored",
)  # over agents, told of arms


def summarise(config: Config, record: Record) -> dict[str, Any]:
    """Each arm at its last recorded round: average, centre (the best informed agent) and edges."""
    held = (np.array(record.shares["counts"]) > 0).sum(1)
    centre = int(held.argmax())
    rows: dict[str, dict[str, Any]] = {}
    for arm in record.arms():
        last = {name: record.select(arm, name)[-1] for name in record.metrics()}
        edges = np.delete(last["accuracy"], centre)
        rows[arm] = {
            "rounds": int(record.rounds(arm)[-1]),
            "average_accuracy": float(last["accuracy"].mean()),
            "center_accuracy": float(last["accuracy"][centre]),
            "edge_accuracy": float(edges.mean()) if edges.size else None,
            "worst_accuracy": float(last["accuracy"].min()),
            **{name: float(last[name].mean()) for name in AVERAGES if name in last},
        }
        if (error := record.error_of_average(arm, "accuracy")) is not None:
            rows[arm]["average_accuracy_se"] = float(error[-1])
    first = rows[record.arms()[0]]
    return {
        "dataset": config.dataset,
        "tested_on": f"{config.validation} held-out training examples" if config.validation else "test set",
        "rounds": first["rounds"],
        "replicates": config.replicates,
        "center": centre,
        "labels_held": held.tolist(),
        **{name: first[name] for name in ("average_accuracy", "center_accuracy", "nll", "ece")},
        "arms": rows,
    }


def compared(record: Record) -> dict[str, str]:
    """Accuracy of what agents publish and of what they have pooled, and how sure they are."""
    names = ("accuracy", "pooled_accuracy", "nll", "brier", "ece")
    return {name.replace("_", " "): name for name in names if name in record.columns}


def table(summary: dict[str, Any]) -> Table:
    """A row for each network or arm."""
    keys = ["average_accuracy", "center_accuracy", "edge_accuracy", "pooled_accuracy"]
    rows = [
        [arm, *(None if row[key] is None else f"{row[key]:.2%}" for key in keys), row["nll"], row["ece"]]
        for arm, row in summary["arms"].items()
    ]
    columns = ["", "average", "centre", "edges", "pooled", "NLL", "ECE"]
    title = f"Accuracy on {summary['dataset']} ({summary['tested_on']}) after {summary['rounds']} rounds"
    return made_table(columns, rows, title)
