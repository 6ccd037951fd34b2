"""What is told of a run: everybody's scores at the last recorded round, agent by agent and on average."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.table import Table

from consilience.experiments.learn.arms import HELD_OUT, ROWS, TEST, TOGETHER
from consilience.experiments.learn.description import Config
from consilience.report.tables import table as made_table
from consilience.runs import sent
from consilience.runs.record import Record, average_score, standard_error
from consilience.task.consensus import ALONE

MOST_TOLD = 24  # agents in a table
SHOWN = {"accuracy": "accuracy", "rmse": "RMSE", "nll": "NLL", "ece": "ECE", "coverage_90": "90 % covers"}
PER_CENT = ("accuracy", "coverage_90")


def judged_by(record: Record) -> str:
    """What agents are judged by first: the test set where there is one, else rows of their own."""
    return TEST if f"{TEST}_nll" in record.columns else HELD_OUT


def scores_of(record: Record, where: str) -> list[str]:
    """The names of the scores."""
    return [
        name.removeprefix(f"{where}_") for name in record.metrics() if name.startswith(f"{where}_") and name != ROWS
    ]


def summarise(config: Config, record: Record) -> dict[str, Any]:
    """Every arm at its last recorded round: averages over the agents that are judged, and each of them."""
    where, shares = judged_by(record), record.shares
    names = scores_of(record, where)
    # By the test set everybody is judged alike; by its own held-out rows, who has one tells less than who has forty.
    counts = np.array([1] * len(shares["agents"]) if where == TEST else shares["held_out_rows"])
    arms: dict[str, Any] = {}
    for arm in record.arms():
        own, pooled = (
            {name: record.select(arm, f"{word}{where}_{name}")[-1] for name in names} for word in ("", "pooled_")
        )
        arms[arm] = {
            "average": {name: average_score(name, values, counts) for name, values in own.items()},
            "average_pooled": {name: average_score(name, values, counts) for name, values in pooled.items()},
            "agents": {
                agent: {name: None if np.isnan(values[k]) else float(values[k]) for name, values in pooled.items()}
                for k, agent in enumerate(shares["agents"])
            },
            **sent.told(shares, arm, int(record.rounds(arm)[-1])),
        }
        if config.per_seed and config.replicates > 1:
            each = record.each(arm, f"pooled_{where}_{names[0]}")[-1]
            averages = np.array([average_score(names[0], seed, counts) for seed in each], float)
            arms[arm]["standard_error"] = {names[0]: standard_error(averages)}
    rows = shares["test_rows"] if where == TEST else sum(shares["held_out_rows"])
    return {
        "rounds": int(record.rounds(TOGETHER)[-1]),
        "replicates": config.replicates,
        "tested_on": f"a test set of {rows:,} rows" if where == TEST else f"{rows:,} rows that agents held out",
        "judged_alike": where == TEST,
        "rows": dict(zip(shares["agents"], shares["rows"], strict=True)),
        "arms": arms,
        **({"note": shares["note"]} if shares.get("note") else {}),
    }


def compared(record: Record) -> dict[str, str]:
    """What agents predict with, judged by the test set or by rows of their own."""
    where = judged_by(record)
    return {f"{where.replace('_', '-')} {name}": f"pooled_{where}_{name}" for name in scores_of(record, where)}


def table(summary: dict[str, Any]) -> Table:
    """A row for each agent, and the average; where they also learnt alone, that beside it."""
    together = summary["arms"][TOGETHER]
    keys = [key for key in SHOWN if key in together["average_pooled"]] or list(together["average_pooled"])[:4]
    alone = summary["arms"].get(ALONE)
    first = keys[0]
    columns = ["agent", "rows", *(SHOWN.get(key, key) for key in keys)]
    columns += [f"{SHOWN.get(first, first)} alone"] if alone else []

    def row(name: str, rows: int, values: dict[str, Any], by_itself: dict[str, Any] | None) -> list[Any]:
        cells = [_shown(key, values[key]) for key in keys]
        return [name, rows, *cells, *([] if by_itself is None else [_shown(first, by_itself[first])])]

    told = list(summary["rows"].items())[:MOST_TOLD] if len(summary["rows"]) <= MOST_TOLD else []
    rows = [row(name, count, together["agents"][name], alone and alone["agents"][name]) for name, count in told]
    if len(summary["rows"]) > 1:  # a peer's own folder has one
        everybody = "average" if summary["judged_alike"] else "everybody"
        averages = together["average_pooled"], alone and alone["average_pooled"]
        rows.append(row(everybody, sum(summary["rows"].values()), *averages))
    return made_table(columns, rows, f"After {summary['rounds']} rounds, by {summary['tested_on']}")


def _shown(key: str, value: float | None) -> Any:
    return f"{value:.2%}" if key in PER_CENT and value is not None else value
