"""What is told of a run: every arm at its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float
from rich.table import Table

from consilience.experiments.images.description import Config
from consilience.report.tables import table as made_table
from consilience.runs import sent
from consilience.runs.record import Record, standard_error

APART = tuple(f"{of}stranger_auroc{by}" for of in ("", "pooled_") for by in ("", "_entropy"))
AVERAGES = (
    "pooled_accuracy",
    "nll",
    "brier",
    "ece",
    "pooled_nll",
    "pooled_brier",
    "pooled_ece",
    "epistemic",
    "disagreement",
    "mean_sd",
    "floored",
    *APART,
)  # over agents, told of arms
ERRORS = {"average_accuracy": "accuracy", "pooled_accuracy": "pooled_accuracy", "nll": "nll", "ece": "ece"}


def summarise(config: Config, record: Record) -> dict[str, Any]:
    """Each arm at the end: average, centre (the best informed agent), edges and the worst, of b and of q.

    That is its last recorded round, or the mean of those among the last rounds (`told_over`).
    """
    held = (np.array(record.shares["counts"]) > 0).sum(1)
    centre = int(held.argmax())
    rows: dict[str, dict[str, Any]] = {}
    for arm in record.arms():
        each = {name: record.last(arm, name, config.told_over) for name in record.metrics()}  # seeds × agents
        last = {name: values.mean(axis=0) for name, values in each.items()}
        rows[arm] = {
            "rounds": int(record.rounds(arm)[-1]),
            "average_accuracy": float(last["accuracy"].mean()),
            **by_place(last["accuracy"], centre),
            **{name: float(last[name].mean()) for name in AVERAGES if name in last},
            **{f"pooled_{name}": value for name, value in by_place(last["pooled_accuracy"], centre).items()},
            **(errors(each) if len(record.seeds()) > 1 else {}),
            **sent.told(record.shares, arm, int(record.rounds(arm)[-1])),
        }
    first, recorded = rows[record.arms()[0]], record.rounds(record.arms()[0])
    return {
        "dataset": config.dataset,
        "tested_on": f"{config.validation} held-out training examples" if config.validation else "test set",
        "rounds": first["rounds"],
        "told_over": recorded[recorded > recorded[-1] - config.told_over].tolist(),
        "replicates": config.replicates,
        "center": centre,
        "labels_held": held.tolist(),
        **{name: first[name] for name in ("average_accuracy", "center_accuracy", "nll", "ece")},
        "arms": rows,
    }


def errors(each: Mapping[str, Float[np.ndarray, "seeds agents"]]) -> dict[str, float | None]:
    """Standard errors over seeds of averages over agents."""
    return {f"{told}_se": standard_error(each[name].mean(axis=1)) for told, name in ERRORS.items()}


def by_place(accuracy: Float[np.ndarray, "agents"], centre: int) -> dict[str, float | None]:
    """Of the best informed agent, of the others on average, and of whoever is worst.

    >>> by_place(np.array([0.75, 0.25, 0.5]), centre=0)
    {'center_accuracy': 0.75, 'edge_accuracy': 0.375, 'worst_accuracy': 0.25}
    """
    edges = np.delete(accuracy, centre)
    return {
        "center_accuracy": float(accuracy[centre]),
        "edge_accuracy": float(edges.mean()) if edges.size else None,
        "worst_accuracy": float(accuracy.min()),
    }


def compared(record: Record) -> dict[str, str]:
    """Accuracy of what agents publish and of what they have pooled, how sure they are, and of what they are not."""
    names = ("accuracy", "pooled_accuracy", "nll", "brier", "ece", *APART)
    return {name.replace("_", " "): name for name in names if name in record.columns}


def table(summary: dict[str, Any]) -> Table:
    """A row for each network or arm."""
    keys = ["average_accuracy", "center_accuracy", "edge_accuracy", "pooled_accuracy"]
    known = all("bytes_sent" in row for row in summary["arms"].values())
    rows = [
        [
            arm,
            *(None if row[key] is None else f"{row[key]:.2%}" for key in keys),
            row["nll"],
            row["ece"],
            *([row["bytes_sent"] / 1e9] if known else []),
        ]
        for arm, row in summary["arms"].items()
    ]
    columns = ["", "average", "centre", "edges", "pooled", "NLL", "ECE", *(["GB sent"] if known else [])]
    over = f", the mean of the last {len(summary['told_over'])} recorded" if len(summary["told_over"]) > 1 else ""
    title = f"Accuracy on {summary['dataset']} ({summary['tested_on']}) after {summary['rounds']} rounds{over}"
    return made_table(columns, rows, title)
