"""What is told of a run: measured rates against the realised ones, and what W alone would have said."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float
from rich.table import Table

from consilience.experiments.changing_rates.description import Config
from consilience.experiments.changing_rates.theory import Prediction, predict
from consilience.report.tables import table as made_table
from consilience.runs.record import Record


def summarise(config: Config, record: Record) -> dict[str, Any]:
    """For every network: the measured rate against the realised one, and what W alone would have said."""
    theory = predict(config)
    return {
        "replicates": config.replicates,
        "rounds": min(int(record.rounds(name)[-1]) for name in record.arms()),
        "networks": {name: _summarise(record, name, theory[name]) for name in record.arms()},
    }


def _summarise(record: Record, name: str, theory: Prediction) -> dict[str, Any]:
    measured = record.select(name, "log_ratio")
    exact = theory.exact[: len(measured)]  # as far as it has been played
    row = {
        "agents": theory.agents,
        "K_of_W": theory.K_of_W,
        "K_realised": theory.K,
        "rate_measured": float(measured[-1].mean()),
        "measured_over_realised": float(measured[-1].mean() / theory.K) if theory.K else None,
        "worst_difference_of_any_agent": _worst(measured[-1], exact[-1]),
        "realised_centrality": theory.centrality.tolist(),
        "mixing_window": theory.window,
    }
    if "log_ratio_se" in record.columns:  # with several seeds
        error = record.select(name, "log_ratio_se")
        off = np.abs(measured - exact) / np.maximum(error, 1e-300)
        row["worst_in_standard_errors"] = float(off[error > 0].max(initial=0))
    return row


def _worst(measured: Float[np.ndarray, "agents"], exact: Float[np.ndarray, "agents"]) -> float | None:
    """The largest relative difference, of agents that have heard anything yet."""
    some = exact > 0
    return float(np.abs(measured[some] / exact[some] - 1).max()) if some.any() else None


def table(summary: dict[str, Any]) -> Table:
    """A row for each network or arm."""
    columns = ["network", "N", "K of W", "K realised", "measured", "any agent off", "in s.e.", "mixing window"]
    rows = [
        [
            name,
            row["agents"],
            row["K_of_W"],
            row["K_realised"],
            row["rate_measured"],
            None if row["worst_difference_of_any_agent"] is None else f"{row['worst_difference_of_any_agent']:.2%}",
            row.get("worst_in_standard_errors"),
            row["mixing_window"],
        ]
        for name, row in summary["networks"].items()
    ]
    title = (
        f"Decay after {summary['rounds']} turns, {summary['replicates']} seeds. K of W: as if nothing changed; off: an "
        "agent's largest distance from its exact mean; mixing window: turns in which differences halve"
    )
    return made_table(columns, rows, title)
