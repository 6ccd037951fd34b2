"""Results as small tables for a terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from consilience.errors import printable

NUMBER = re.compile(r"-?[\d,.]*\d(e[-+]?\d+)?%?|-?∞|–")


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str | None = None) -> Table:
    """A table: text on the left of its columns, numbers, with four significant digits, on the right."""
    made = Table(
        title=title and Text(printable(title)), title_justify="left", header_style="bold", box=None, pad_edge=False
    )
    for number, name in enumerate(columns):
        cells = [shown(row[number]) for row in rows]
        justify: Any = "right" if number and all(map(_is_number, cells)) else "left"
        made.add_column(Text(printable(name)), justify=justify, no_wrap=number == 0)
    for row in rows:
        made.add_row(*(Text(shown(value)) for value in row))
    return made


def _is_number(cell: str) -> bool:
    """Whether a cell belongs on the right: a number, or that there is none."""
    return NUMBER.fullmatch(cell) is not None


def shown(value: Any) -> str:
    """A value as a person reads it.

    >>> shown(0.123456), shown(20737), shown(None), shown(True), shown(float("-inf"))
    ('0.1235', '20,737', '–', 'yes', '-∞')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}".replace("inf", "∞")
    return printable(str(value))


def summary_tables(summary: dict[str, Any]) -> list[Table]:
    """The tables of a run's summary."""
    return [TABLES.get(summary["experiment"], _classification)(summary)]


def _classification(summary: dict[str, Any]) -> Table:
    keys = ["average_accuracy", "center_accuracy", "edge_accuracy", "pooled_accuracy"]
    rows = [
        [arm, *(None if row[key] is None else f"{row[key]:.2%}" for key in keys), row["nll"], row["ece"]]
        for arm, row in summary["arms"].items()
    ]
    columns = ["", "average", "centre", "edges", "pooled", "NLL", "ECE"]
    title = f"Accuracy on {summary['dataset']} ({summary['tested_on']}) after {summary['rounds']} rounds"
    return table(columns, rows, title)


def _linear_regression(summary: dict[str, Any]) -> Table:
    columns = ["", "MSE", "over central", "distance to θ*", "slowest rate", "predicted"]
    keys = ["mse", "mse_over_central", "distance", "rate_measured", "rate_predicted"]
    rows = [[arm, *(row[key] for key in keys)] for arm, row in summary["arms"].items()]
    title = f"After {summary['rounds']} rounds (means of {summary['replicates']} seeds; θ* itself has MSE "
    return table(columns, rows, f"{title}{shown(summary['mse_of_the_truth'])})")


def _theorem_1(summary: dict[str, Any]) -> Table:
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
    return table(columns, rows, title)


def _changing_rates(summary: dict[str, Any]) -> Table:
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
    return table(columns, rows, title)


TABLES = {
    "linear-regression": _linear_regression,
    "theorem-1": _theorem_1,
    "changing-rates": _changing_rates,
}
