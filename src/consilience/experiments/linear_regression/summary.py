"""What is told of a run: each arm against the theory and the central agent."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from rich.table import Table

from consilience.experiments.linear_regression.arms import test_set
from consilience.experiments.linear_regression.description import Config
from consilience.experiments.linear_regression.theory import predict
from consilience.report.tables import shown
from consilience.report.tables import table as made_table
from consilience.runs.record import Record


def summarise(config: Config, record: Record) -> dict[str, Any]:
    """Each arm at its last recorded round, against the theory and the central agent."""
    last = {arm: int(record.rounds(arm)[-1]) for arm in record.arms()}
    predicted = predict(config, last["cooperating"])
    rows: dict[str, Any] = {}
    for arm in record.arms():
        mse, log_ratio = record.select(arm, "mse")[-1], record.select(arm, "log_ratio")[-1]
        rows[arm] = {
            "mse": float(mse.mean()),
            "mse_of_worst_agent": float(mse.max()),
            "distance": float(record.select(arm, "distance")[-1].mean()),
            "rate_predicted": predicted[arm]["exact"],
            "rate_measured": float(log_ratio.min() / last[arm]),
            "rate_limit": predicted[arm]["K"],
        }
    for arm in rows:
        rows[arm]["mse_over_central"] = rows[arm]["mse"] / rows["central"]["mse"]
    test = test_set(config)
    residuals = np.asarray(test.labels - test.features @ jnp.array(config.theta))
    return {
        "rounds": last["cooperating"],
        "replicates": config.replicates,
        "mse_of_the_truth": float(np.mean(residuals**2)),
        "arms": rows,
    }


def compared(record: Record) -> dict[str, str]:
    """How far agents are from the data and from the truth."""
    return {"MSE": "mse", "distance": "distance"}


def table(summary: dict[str, Any]) -> Table:
    """A row for each network or arm."""
    columns = ["", "MSE", "over central", "distance to θ*", "slowest rate", "predicted"]
    keys = ["mse", "mse_over_central", "distance", "rate_measured", "rate_predicted"]
    rows = [[arm, *(row[key] for key in keys)] for arm, row in summary["arms"].items()]
    title = f"After {summary['rounds']} rounds (means of {summary['replicates']} seeds; θ* itself has MSE "
    return made_table(columns, rows, f"{title}{shown(summary['mse_of_the_truth'])})")
