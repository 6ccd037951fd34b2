"""CSV files that only grow: what is known of them has a checksum, and what a crash has left behind it is cut.

Putting a file on disk takes milliseconds. Who writes something else to disk at every step can keep the last rows there
instead (`Tail`), and put them on disk here only now and then.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from consilience.errors import InputError
from consilience.files.whole import naming, sha256_of_file


class Extent(NamedTuple):
    """How much of a file is known to be right: its first bytes, and their checksum."""

    bytes: int
    sha256: str

    def check(self, file: Path) -> None:
        """Refuse a file that does not begin so."""
        size = file.stat().st_size if file.exists() else 0
        if size < self.bytes:
            raise InputError(f"record: '{file}' has {size} bytes, the checkpoint or run.json knows {self.bytes}")
        if self.bytes and sha256_of_file(file, self.bytes).hexdigest() != self.sha256:
            damage = f"is damaged, its first {self.bytes} bytes do not have their checksum"
            raise InputError(f"record: '{file}' {damage}, or the checkpoint or run.json is of another run")


NOTHING = Extent(0, "")


class Tail(NamedTuple):
    """The end of a file, kept elsewhere: how much of it is on disk, and what follows."""

    synced: Extent
    text: str

    def mend(self, file: Path, whole: Extent) -> None:
        """Give a file its end again where that is not as it was: the power failed before it was on disk."""
        try:
            whole.check(file)
        except InputError:
            self.synced.check(file)
            rows = Appended(file, self.synced)
            rows.add(self.text.encode())
            rows.close()
            whole.check(file)


class Appended:
    """A CSV file to which rows are added behind what is known to be right of it; the rest is cut.

    >>> import tempfile; file = Path(tempfile.mkdtemp()) / "heard.csv"
    >>> rows = Appended(file); rows.write([("round", "heard"), (1, "north")]); known = rows.sync()
    >>> rows.write([(2, "no")]); rows.close()
    >>> rows = Appended(file, known); rows.write([(2, "south")]); rows.close()
    >>> list(rows_of(file))
    [['round', 'heard'], ['1', 'north'], ['2', 'south']]
    """

    def __init__(self, file: Path, extent: Extent = NOTHING) -> None:
        extent.check(file)
        file.touch()
        self._total, self._synced = sha256_of_file(file, extent.bytes), extent
        self._since: list[bytes] = []  # what was added since it was synced
        self._path, self._file = file, file.open("r+b")
        self._file.truncate(extent.bytes)
        self._file.seek(0, os.SEEK_END)

    def write(self, rows: Iterable[Iterable[Any]]) -> None:
        """Add rows; they are safe when they were synced."""
        text = StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        self.add(text.getvalue().encode())

    def add(self, content: bytes) -> None:
        """Add rows as they are written."""
        self._total.update(content)
        with naming(self._path):
            self._file.write(content)
        self._since.append(content)

    def sync(self) -> Extent:
        """Put everything on disk and tell what the file is now."""
        self._synced, self._since = self.flush(), []
        with naming(self._path):
            os.fsync(self._file.fileno())
        return self._synced

    def flush(self) -> Extent:
        """Have everything survive the end of this process, and tell what the file is now."""
        with naming(self._path):
            self._file.flush()
        return Extent(self._file.tell(), self._total.hexdigest())

    def tail(self) -> Tail:
        """What has been added since the last `sync`."""
        return Tail(self._synced, b"".join(self._since).decode())

    def close(self) -> None:
        """Sync and close."""
        try:
            self.sync()
        finally:
            with naming(self._path):
                self._file.close()


def rows_of(file: Path, length: int | None = None) -> Iterator[list[str]]:
    """The rows of a file up to a length, without one that is torn at the end."""
    with file.open("rb") as stream:
        yield from csv.reader(_whole_lines(stream, length))


def _whole_lines(stream: Iterable[bytes], length: int | None) -> Iterator[str]:
    left = length
    for line in stream:
        if left is not None:
            line, left = line[:left], left - len(line[:left])
        if line.endswith(b"\n"):
            yield line.decode()
