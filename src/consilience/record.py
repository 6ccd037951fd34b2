"""The record of a run: an append-only CSV file with one row for each arm, recorded round and agent."""

from __future__ import annotations

import csv
import os
from array import array
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

import numpy as np

from consilience.errors import InputError

KEYS = ("arm", "round", "agent")


class RecordWriter:
    """Appends rows; what has been synced survives a crash, and a torn last line is cut when a run is resumed."""

    def __init__(self, file: Path, length: int = 0) -> None:
        """Open the record, keeping its first `length` bytes."""
        size = file.stat().st_size if file.exists() else 0
        if size < length:
            raise InputError(f"record: '{file}' has {size} bytes, the checkpoint was made when it had {length}")
        self._file = file.open("r+b" if file.exists() else "w+b")
        self._file.truncate(length)
        self._file.seek(0)
        header = self._file.readline().decode().strip()
        self.columns: tuple[str, ...] = tuple(header.split(",")) if header else ()
        self._file.seek(0, os.SEEK_END)

    def append(self, arm: str, rounds: list[int], metrics: Mapping[str, np.ndarray]) -> None:
        """Write metrics of shape (rounds, agents); the first call decides the columns."""
        if not self.columns:
            self.columns = (*KEYS, *metrics)
            self._file.write((",".join(self.columns) + "\n").encode())
        agents = next(iter(metrics.values())).shape[1]
        columns = [
            np.full(len(rounds) * agents, arm).tolist(),
            np.repeat(rounds, agents).tolist(),
            np.tile(np.arange(agents), len(rounds)).tolist(),
            *(metrics[name].ravel().tolist() for name in self.columns[len(KEYS) :]),
        ]
        text = StringIO()
        csv.writer(text, lineterminator="\n").writerows(zip(*columns, strict=True))
        self._file.write(text.getvalue().encode())

    def sync(self) -> int:
        """Put everything on disk and tell how long the record is now, in bytes."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._file.tell()

    def close(self) -> None:
        """Sync and close."""
        self.sync()
        self._file.close()


class Record:
    """The columns of a record, as arrays.

    `select(arm, name)` gives one metric as an array of shape (rounds, agents), `rounds(arm)` the rounds of its rows.
    """

    def __init__(self, columns: Mapping[str, np.ndarray]) -> None:
        self.columns = dict(columns)

    @classmethod
    def read(cls, file: Path) -> Record:
        """Read a record, leaving out a torn last line."""
        try:
            with file.open(encoding="utf-8", newline="") as stream:
                # Row by row into compact columns: a record of two million rows fits into its own size of memory.
                rows = csv.reader(line for line in stream if line.endswith("\n"))
                header = next(rows, [])
                if not header:
                    raise InputError(f"record: '{file}' is empty, the run has not recorded anything yet")
                place = header.index("arm") if "arm" in header else 0
                arms: dict[str, int] = {}
                numbers = [array("d") for _ in header]
                for row in rows:
                    if len(row) != len(header):
                        raise InputError(f"record: '{file}' is damaged, a row does not have {len(header)} values")
                    row[place] = str(arms.setdefault(row[place], len(arms)))
                    for column, cell in zip(numbers, row, strict=True):
                        column.append(float(cell))
            columns = {name: np.array(column) for name, column in zip(header, numbers, strict=True)}
            columns[header[place]] = np.array(list(arms) or [""])[columns[header[place]].astype(np.int64)]
            for name in ("round", "agent"):
                if name in columns:
                    columns[name] = columns[name].astype(np.int64)
        except OSError as error:
            raise InputError(f"record: cannot read '{file}': {error.strerror}") from None
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputError(f"record: '{file}' is damaged: {error}") from None
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"record: '{file}' is damaged: {error}") from None
        if not set(KEYS) <= set(columns) or not len(columns[KEYS[0]]):
            raise InputError(f"record: '{file}' is empty, the run has not recorded anything yet")
        return cls(columns)._complete()

    def _complete(self) -> Record:
        """Without the last recorded round where a crash left some of its arms or agents out."""
        keep = np.ones(len(self.columns["arm"]), dtype=bool)
        for arm in self.arms():
            mine = self.columns["arm"] == arm
            agents = int(self.columns["agent"][mine].max()) + 1
            rounds, counts = np.unique(self.columns["round"][mine], return_counts=True)
            keep &= ~(mine & np.isin(self.columns["round"], rounds[counts != agents]))
        everywhere = [set(self.columns["round"][keep & (self.columns["arm"] == arm)].tolist()) for arm in self.arms()]
        keep &= np.isin(self.columns["round"], sorted(set.intersection(*everywhere)))
        if not keep.any():
            raise InputError("record: no round is complete yet")
        return Record({name: values[keep] for name, values in self.columns.items()})

    def arms(self) -> list[str]:
        """The arms, in the order in which they were first recorded."""
        return list(dict.fromkeys(self.columns["arm"].tolist()))

    def rounds(self, arm: str) -> np.ndarray:
        """The recorded rounds of an arm."""
        return np.unique(self.columns["round"][self.columns["arm"] == arm])

    def select(self, arm: str, metric: str) -> np.ndarray:
        """One metric of one arm, of shape (rounds, agents)."""
        if metric not in self.columns:
            raise InputError(f"record: has no column '{metric}'; it was written by another version or edited")
        mine = self.columns["arm"] == arm
        values: np.ndarray = self.columns[metric][mine]
        return values.reshape(len(self.rounds(arm)), -1)
