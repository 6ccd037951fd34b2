"""How the cells of a column are kept: a number for each feature of an input, a level's number, or a target as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64

from consilience.data.cells import LevelNumbers, Unfit, numbers
from consilience.task.columns import (
    CENTRE,
    REFUSE,
    AnyColumn,
    Category,
    InRange,
    Label,
    Number,
    Target,
    out_of_range,
)

NO_VALUE = "has no value, and its description does not say what a missing one means (missing = …)"
NO_ANSWER = "has no value, and it is what is predicted"
LARGEST = float(np.finfo(np.float32).max)
Encode = Callable[[Any], np.ndarray]  # cells of a column in one batch, as they are kept


def kept_as(column: AnyColumn) -> Encode:
    """How cells of a column are kept: one array column for each feature, or the targets."""
    if isinstance(column, Category):
        levels = LevelNumbers(column.levels)
        shown = np.array([number for number, level in enumerate(column.levels) if level != column.compared_with])
        missing = None if column.missing == REFUSE else column.missing
        return lambda cells: levels.numbers(cells, missing, NO_VALUE)[:, None] == shown
    if isinstance(column, Label):
        answers = LevelNumbers(column.levels)
        return lambda cells: answers.numbers(cells, None, NO_ANSWER)
    if isinstance(column, Target):
        return lambda cells: _target(column, cells)
    assert isinstance(column, Number)
    return lambda cells: _number(column, cells)


def _number(column: Number, cells: Any) -> Float32[np.ndarray, "rows 1"]:
    """(x − centre) / scale."""
    values, missing = numbers(cells)
    _check_range(column, values)
    if missing is not None:
        if column.missing == REFUSE:
            raise Unfit(int(missing.argmax()), NO_VALUE)
        meant = column.centre if column.missing == CENTRE else float(column.missing)
        values = np.where(missing, meant, values)
    with np.errstate(over="ignore", invalid="ignore"):
        kept = ((values - column.centre) / column.scale).astype(np.float32)
    if not np.isfinite(kept).all():
        row = int(np.isfinite(kept).argmin())
        _check_finite(values)
        where = "" if (column.centre, column.scale) == (0.0, 1.0) else " around its centre, in units of its scale"
        raise Unfit(row, f"must be at most {LARGEST:.2g} in size{where}, got {values[row]:g}")
    return kept[:, None]


def _target(column: Target, cells: Any) -> Float64[np.ndarray, "rows"]:
    """A number as it is."""
    values, missing = numbers(cells)
    if missing is not None:
        raise Unfit(int(missing.argmax()), NO_ANSWER)
    _check_finite(values)
    _check_range(column, values)
    if column.counts and (wrong := (values < 0) | (values != np.floor(values))).any():
        row = int(wrong.argmax())
        raise Unfit(row, f"must be a count, a whole number from 0 on, got {values[row]:g}")
    if (wrong := np.abs(values) > LARGEST).any():
        raise Unfit(int(wrong.argmax()), f"must be at most {LARGEST:.2g} in size, got {values[wrong.argmax()]:g}")
    return values


def _check_finite(values: np.ndarray) -> None:
    finite = np.isfinite(values)
    if not finite.all():
        raise Unfit(int(finite.argmin()), f"must be finite, got {values[finite.argmin()]:g}")


def _check_range(column: InRange, values: np.ndarray) -> None:
    if column.low is None and column.high is None:
        return
    low, high = (-np.inf if column.low is None else column.low), (np.inf if column.high is None else column.high)
    wrong = (values < low) | (values > high)
    if wrong.any():
        row = int(wrong.argmax())
        raise Unfit(row, f"must be {out_of_range(float(values[row]), column.low, column.high)}, got {values[row]:g}")
