"""The columns of a table in a file, CSV or Parquet: each has a name of its own; all but the labels hold numbers."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from consilience.data.header import check_header
from consilience.errors import InputError, brief
from consilience.files.reading import numbered_rows
from consilience.machine.memory import require

LABEL = "label"
Labels = np.ndarray | list[str]  # numbers, or text as it is written


class Table(NamedTuple):
    """Labels, and columns of numbers by name; `rows` tells where each row is in the file, counted as `word` says."""

    labels: Labels
    columns: dict[str, np.ndarray]
    word: str
    rows: Sequence[int]

    def place(self, row: int, column: str) -> str:
        """Where a value is, for a message."""
        return f"{self.word} {self.rows[row]}, column {brief(column)}"


def read_csv(file: Path) -> Table:
    """A CSV file with a line of names; blank lines are left out, and cells may hold commas and line ends in quotes."""
    with file.open(encoding="utf-8-sig", newline="") as stream:
        rows = numbered_rows(stream)
        _, header = next(rows, (0, []))
        place = _label_place(header)
        names = [name for name in header if name != LABEL]
        labels, numbers, lines = [], array("d"), array("q")
        for line, row in rows:
            if len(row) != len(header):
                raise InputError(f"line {line} has {len(row)} values, the header has {len(header)}")
            labels.append(row.pop(place))
            lines.append(line)
            try:
                numbers.extend(map(float, row))
            except ValueError:
                raise InputError(f"line {line}, {_not_a_number(names, row)}") from None
    values = np.array(numbers).reshape(len(labels), len(names))
    return Table(labels, {name: values[:, k] for k, name in enumerate(names)}, "line", lines)


def read_parquet(file: Path) -> Table:
    """A Parquet file; booleans count as 0 and 1, and categories as what they stand for."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise InputError("reading .parquet needs pyarrow: pip install 'consilience[parquet]'") from None
    with file.open("rb") as stream, pyarrow.parquet.ParquetFile(stream) as table:
        header = [field.name for field in table.schema_arrow]
        _label_place(header)
        require(
            2 * 8 * table.metadata.num_rows * len(header), "unpacked"
        )  # what repeats takes hardly any room in a file
        content = dict(zip(header, table.read(), strict=True))
    labels = _parquet_labels(content.pop(LABEL))
    columns = {name: _parquet_numbers(name, column) for name, column in content.items()}
    return Table(labels, columns, "row", range(len(labels)))


def _label_place(header: list[str]) -> int:
    """Where the labels are in a header in which every column has a name of its own."""
    check_header(header)
    if LABEL not in header:
        raise InputError(f"must have a column '{LABEL}', got {', '.join(map(brief, header[:6]))}")
    return header.index(LABEL)


def _not_a_number(names: Sequence[str], row: Sequence[str]) -> str:
    for name, cell in zip(names, row, strict=True):
        try:
            float(cell)
        except ValueError:
            return f"column {brief(name)} must be a number, got {brief(cell)}"
    raise AssertionError("all are numbers")


def _parquet_labels(column: Any) -> Labels:
    import pyarrow as pa

    column = _complete(LABEL, column)
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return list(column.to_pylist())
    return _parquet_numbers(LABEL, column)


def _parquet_numbers(name: str, column: Any) -> np.ndarray:
    import pyarrow as pa

    column = _complete(name, column)
    kind = column.type
    if pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        wanted = "numbers or text" if name == LABEL else "numbers"
        raise InputError(f"column {brief(name)} must hold {wanted}, it holds {str(kind)[:60]}")
    return np.asarray(column.to_numpy())


def _complete(name: str, column: Any) -> Any:
    """The values of a column that has one in every row; categories are replaced by what they stand for."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.null_count:
        raise InputError(f"row {column.is_null().to_numpy().argmax()}, column {brief(name)} has no value")
    return column
