"""The two formats of tables, CSV and Parquet: the names of their columns, their rows in batches, and where a row is."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from consilience.data.header import check_header
from consilience.errors import InputError, brief
from consilience.files.reading import numbered_rows

BLOCK = 1 << 20  # bytes of a CSV file at a time, at least; a row must fit in
BATCH = 1 << 16  # rows of a Parquet file at a time
PIECE = 1 << 20  # bytes of a file, or of a column in it, at a time
MAGIC = b"PAR1"
LF, CR, QUOTE = b'\n\r"'
ENDS = np.frombuffer(b'\n\r,"', np.uint8)
SEPARATORS = (";", "\t", "|")


class CsvTable:
    """A CSV file with a line of names; blank lines are left out, and cells may hold commas and line ends in quotes."""

    def __init__(self, file: Path) -> None:
        self.file = file
        with self._lines() as stream:
            _, header = next(numbered_rows(stream), (0, []))
        self.names = check_header(header)
        if len(header) == 1 and (other := [mark for mark in SEPARATORS if mark in header[0]]):
            raise InputError(
                f"its columns must be separated by commas, not by {brief(other[0])}, got {brief(header[0])}"
            )
        self.kinds = dict.fromkeys(header, pa.string())
        self.most_rows, fit = _layout(file)
        if not fit:  # pyarrow takes a quote that is never closed, and all lines after it, for one cell
            self._check_rows()

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Some of its columns, as text, a batch of rows at a time."""
        block = max(BLOCK, 32 * len(",".join(self.names)))  # a table of many columns has long rows
        with self.file.open("rb") as stream:
            try:
                yield from pyarrow.csv.open_csv(
                    stream,
                    pyarrow.csv.ReadOptions(block_size=block),
                    pyarrow.csv.ParseOptions(newlines_in_values=True),
                    pyarrow.csv.ConvertOptions(column_types=self.kinds, include_columns=list(names)),
                )
            except pa.ArrowInvalid:
                if self._check_rows():
                    raise

    def place(self, row: int) -> str:
        """Where a row is, as an editor counts; found by reading once more, because it is asked for once."""
        with self._lines() as stream:
            line, _ = next(islice(numbered_rows(stream), row + 1, None))
        return f"line {line}"

    def _check_rows(self) -> int:
        """How many rows there are, or the first that does not fit the names."""
        rows = -1
        with self._lines() as stream:
            for line, row in numbered_rows(stream):
                if len(row) != len(self.names):
                    raise InputError(f"line {line} has {len(row)} values, the header has {len(self.names)}")
                rows += 1
        return rows

    @contextmanager
    def _lines(self) -> Iterator[IO[str]]:
        try:
            with self.file.open(encoding="utf-8-sig", newline="") as stream:
                yield stream
        except UnicodeDecodeError:
            with self.file.open("rb") as lines:
                for number, line in enumerate(lines, start=1):
                    if not _is_utf8(line):
                        raise InputError(f"line {number} must be UTF-8 text, got {brief(line)}") from None
            raise


class ParquetTable:
    """A Parquet file."""

    def __init__(self, stream: IO[bytes]) -> None:
        if stream.read(len(MAGIC)) != MAGIC:
            raise InputError("it is not a Parquet file")
        stream.seek(0)
        # With a buffer, and nothing read ahead, a column is read in pieces, not a whole group of rows at once.
        self._table = pyarrow.parquet.ParquetFile(stream, buffer_size=PIECE, pre_buffer=False)
        schema = self._table.schema_arrow
        self.names = check_header(schema.names)
        self.kinds = dict(zip(schema.names, schema.types, strict=True))
        self.most_rows = int(self._table.metadata.num_rows)

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Some of its columns, a batch of rows at a time."""
        yield from self._table.iter_batches(BATCH, columns=list(names))

    def place(self, row: int) -> str:
        """Where a row is, counted from 0."""
        return f"row {row}"


TableFile = CsvTable | ParquetTable


@contextmanager
def opened(file: Path) -> Iterator[TableFile]:
    """A table's file, by its ending."""
    ending = file.suffix.lower()
    if ending not in (".csv", ".parquet"):
        raise InputError(f"a table's file must end in .csv or .parquet, got {brief(file.suffix)}")
    if ending == ".csv":
        yield CsvTable(file)
        return
    with file.open("rb") as stream:
        yield ParquetTable(stream)


def _layout(file: Path) -> tuple[int, bool]:
    """How many lines a CSV file has, blank ones included, and whether every quote opens, closes or is in a quoted cell.

    Counted from the beginning, quotes open and close in turn, and a quote in a cell is written as two: so an opening
    one must come after the end of a cell or a quote, a closing one before one.
    """
    lines, inside, fit, before = 1, False, True, b"\n"
    with file.open("rb") as stream:
        piece = stream.read(PIECE).removeprefix(BOM_UTF8)
        while piece:
            after = stream.read(PIECE)
            around = np.frombuffer(before + piece + (after[:1] or b"\n"), np.uint8)
            codes = around[1:-1]
            lines += int((codes == LF).sum() + ((codes == CR) & (around[2:] != LF)).sum())
            quotes = np.flatnonzero(codes == QUOTE)
            opening, closing = quotes[inside::2], quotes[not inside :: 2]
            fit = fit and bool(np.isin(around[opening], ENDS).all() and np.isin(around[closing + 2], ENDS).all())
            inside ^= len(quotes) % 2 == 1
            before, piece = piece[-1:], after
    return lines, fit and not inside


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
