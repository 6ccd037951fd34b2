"""The two formats of tables, CSV and Parquet: the names of their columns, their rows in batches, and where a row is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from consilience.data.header import check_header
from consilience.errors import InputError, brief
from consilience.files.reading import numbered_rows

BLOCK = 1 << 22  # bytes of a CSV file at a time
BATCH = 1 << 16  # rows of a Parquet file at a time
PIECE = 1 << 20  # bytes of a column in a Parquet file at a time
MAGIC = b"PAR1"
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
        self.most_rows, quotes = _lines_and_quotes(file)
        if quotes:  # pyarrow takes a quote that is never closed, and all lines after it, for one cell
            self._check_rows()

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Some of its columns, as text, a batch of rows at a time."""
        with self.file.open("rb") as stream:
            try:
                yield from pyarrow.csv.open_csv(
                    stream,
                    pyarrow.csv.ReadOptions(block_size=BLOCK),
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
        # With a buffer a column is read in pieces, not a whole group of rows at once.
        self._table = pyarrow.parquet.ParquetFile(stream, buffer_size=PIECE)
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


def _lines_and_quotes(file: Path) -> tuple[int, bool]:
    """How many lines a file has at most, and whether it has quotes: rows are then checked one by one."""
    lines, quotes = 1, False
    with file.open("rb") as stream:
        while piece := stream.read(BLOCK):
            lines += piece.count(b"\n") + piece.count(b"\r") - piece.count(b"\r\n")
            quotes = quotes or b'"' in piece
    return lines, quotes


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
