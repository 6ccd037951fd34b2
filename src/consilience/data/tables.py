"""Rows of a table, as its columns are described: inputs and targets; what does not fit is named by its place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Int32

from consilience.data.cells import Unfit, check_kind
from consilience.data.encoding import Encode, kept_as
from consilience.data.formats import TableFile, opened
from consilience.data.owners import Owners
from consilience.errors import InputError, brief
from consilience.files.reading import reading
from consilience.machine.memory import require
from consilience.task.columns import AnyColumn, Ignore, Label, features, predicted


class Rows(NamedTuple):
    """What a table holds: labels are numbers of levels, targets are in the units of the file."""

    inputs: Float32[np.ndarray, "rows features"]
    targets: np.ndarray | None
    file: Path
    owners: Int32[np.ndarray, "rows"] | None = None
    owner_names: tuple[str, ...] = ()


def read_rows(
    file: Path,
    columns: Mapping[str, AnyColumn],
    with_target: bool = True,
    owner: str | None = None,
    field: str = "file",
) -> Rows:
    """Read a CSV or Parquet file: without target also one that has none, with owners where a column names them.

    Inputs have a column for each of `features(columns)`, in that order, however the file orders its own.
    """
    with reading(field, file), opened(file) as table:
        answer, described = predicted(columns)
        used = {name: column for name, column in columns.items() if not isinstance(column, Ignore)}
        if not with_target:
            del used[answer]
        needed = list(dict.fromkeys([*used, *([] if owner is None else [owner])]))
        _check_columns(table, columns, needed, owner)
        width = len(features(columns))
        # Rows are written where they stay, batch by batch, so that a table is in memory once.
        require(4.0 * table.most_rows * width, "unpacked")
        inputs = np.empty((table.most_rows, width), np.float32)
        targets = np.empty(table.most_rows, np.int32 if isinstance(described, Label) else np.float64)
        owners = Owners()
        kept: dict[str, Encode] = {name: kept_as(column) for name, column in used.items()}
        rows = 0
        for batch in table.batches(needed):
            after, place = rows + batch.num_rows, 0
            for name, encode in kept.items():
                values = _fitting(table, rows, name, encode, batch)
                if name == answer:
                    targets[rows:after] = values
                else:
                    inputs[rows:after, place : place + values.shape[1]] = values
                    place += values.shape[1]
            if owner is not None:
                _fitting(table, rows, owner, owners.add, batch)
            rows = after
        if not rows:
            raise InputError("must have rows, got none below the names")
    owned, names = owners.numbered() if owner is not None else (None, ())
    return Rows(inputs[:rows], targets[:rows] if with_target else None, file, owned, names)


def _check_columns(table: TableFile, columns: Mapping[str, AnyColumn], needed: list[str], owner: str | None) -> None:
    """Every column that is needed is there, and every one that is there is described."""
    there = ", ".join(map(brief, table.names[:6])) + (", …" if len(table.names) > 6 else "")
    for name in needed:
        if name not in table.kinds:
            raise InputError(f"must have a column {brief(name)}, it has {there}")
        check_kind(name, table.kinds[name])
    for name in table.names:
        if name not in columns and name != owner:
            raise InputError(f'column {brief(name)} is not described; if it is not to be used: kind = "ignore"')


def _fitting(table: TableFile, before: int, name: str, encode: Encode, batch: Any) -> np.ndarray:
    """A column of a batch as it is kept, or where and why it cannot be."""
    try:
        return encode(batch.column(name))
    except Unfit as wrong:
        raise InputError(f"{table.place(before + wrong.row)}, column {brief(name)} {wrong.rule}") from None
