"""What is told of a run: measured rates against K and the exact means, the bound's event against its promise."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.table import Table

from consilience.experiments.theorem_1.description import Config
from consilience.experiments.theorem_1.theory import Prediction, exact_means, predict
from consilience.report.tables import table as made_table
from consilience.runs.record import Record

SETTLED = (
    10  # from this round on −log b(θ) is shown as a rate; before, the truth does not have nearly all of the belief
)


def summarise(config: Config, record: Record) -> dict[str, Any]:
    """For every network: the measured rate against K and the exact mean, and the bound's event against its promise."""
    predictions = predict(config)
    return {
        "replicates": config.replicates,
        "delta": config.delta,
        "networks": {name: _summarise(config, record, name, predictions[name]) for name in record.arms()},
    }


def _summarise(config: Config, record: Record, name: str, theory: Prediction) -> dict[str, Any]:
    rounds = record.rounds(name)
    decay, log_ratio = record.select(name, "decay").mean(1), record.select(name, "log_ratio").mean(1)
    expected = exact_means(config, name, theory, rounds.tolist()).mean(1)
    each = record.select(name, "log_ratio") / exact_means(config, name, theory, rounds.tolist())
    event = record.select(name, "event")[:, 0]
    promised = rounds >= theory.n_corrected
    return {
        "agents": theory.agents,
        "gap": theory.gap,
        "K": theory.K,
        "decay_measured": float(decay[-1]),
        "decay_over_K": float(decay[-1] / theory.K),
        "worst_difference_from_exact_mean": float(np.abs(decay / expected - 1)[rounds >= SETTLED].max(initial=0)),
        "worst_difference_of_log_ratio": float(np.abs(log_ratio / expected - 1).max()),
        "worst_difference_of_any_agent": float(np.abs(np.nan_to_num(each, nan=1.0, posinf=1.0) - 1).max()),
        "n_paper": theory.n_paper,
        "n_corrected": theory.n_corrected,
        "n_certain": theory.n_certain,
        "event_promised": 1 - config.delta,
        "event_measured": float(event[promised].min()) if promised.any() else None,
        "wrong_at_first": float(record.select(name, "wrong")[0].mean()),
        "wrong_at_last": float(record.select(name, "wrong")[-1].mean()),
    }


def table(summary: dict[str, Any]) -> Table:
    """A row for each network or arm."""
    columns = ["network", "N", "gap", "K", "rate", "off", "n", "1 − δ", "held", "wrong θ"]
    rows = [
        [
            name,
            row["agents"],
            round(row["gap"], 3),
            row["K"],
            row["decay_measured"],
            f"{max(row['worst_difference_from_exact_mean'], row['worst_difference_of_log_ratio']):.2%}",
            row["n_corrected"],
            f"{row['event_promised']:.0%}",
            None if row["event_measured"] is None else f"{row['event_measured']:.1%}",
            f"{row['wrong_at_last']:.1%}",
        ]
        for name, row in summary["networks"].items()
    ]
    title = (
        f"Theorem 1 over {summary['replicates']} seeds. rate: measured, against K; off: its largest distance from the "
        "exact mean at any n; held: how often the event held from the corrected n on; wrong θ: picked at the end"
    )
    return made_table(columns, rows, title)
