"""Results as small tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str | None = None) -> Table:
    """A table whose numbers have at most four significant digits and stand on the right."""
    made = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for number, name in enumerate(columns):
        numeric = any(isinstance(row[number], int | float) for row in rows)
        made.add_column(name, justify="right" if numeric else "left")
    for row in rows:
        made.add_row(*map(shown, row))
    return made


def shown(value: Any) -> str:
    """A value as a person reads it.

    >>> shown(0.123456), shown(20737), shown(None), shown(True)
    ('0.1235', '20,737', '–', 'yes')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def summary_tables(summary: dict[str, Any]) -> list[Table]:
    """The tables of a run's summary."""
    return [TABLES[summary["experiment"]](summary)]


def _linear_regression(summary: dict[str, Any]) -> Table:
    columns = ["", "MSE", "of central", "distance to θ*", "rate predicted", "rate measured"]
    keys = ["mse", "mse_over_central", "distance", "rate_predicted", "rate_measured"]
    rows = [[arm, *(row[key] for key in keys)] for arm, row in summary["arms"].items()]
    title = f"After {summary['rounds']} rounds (means of {summary['replicates']} seeds; θ* itself has MSE "
    return table(columns, rows, f"{title}{shown(summary['mse_of_the_truth'])})")


def _theorem_1(summary: dict[str, Any]) -> Table:
    columns = [
        "network",
        "N",
        "gap",
        "K",
        "measured",
        "off exact mean",
        "n corrected",
        "event promised",
        "held",
        "wrong θ",
    ]
    keys = [
        "agents",
        "gap",
        "K",
        "decay_measured",
        "worst_difference_from_exact_mean",
        "n_corrected",
        "event_promised",
        "event_measured",
        "wrong_at_last",
    ]
    rows = [[name, *(row[key] for key in keys)] for name, row in summary["networks"].items()]
    return table(columns, rows, f"Theorem 1 over {summary['replicates']} seeds")


TABLES = {"linear-regression": _linear_regression, "theorem-1": _theorem_1}
