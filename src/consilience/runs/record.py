"""The record of a run: an append-only CSV file with one row for each arm, recorded round and agent (and seed)."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from consilience.errors import InputError
from consilience.runs.appended import NOTHING, Appended, Extent, rows_of

KEYS = ("arm", "round", "agent")
HELD_OUT_ROWS = "held_out_rows"  # a metric where agents are judged by rows of their own: how many
SEED = "seed"  # a fourth key, where repetitions have rows of their own


class RecordWriter:
    """Appends rows; what has been synced survives a crash, and a torn last line is cut when a run is resumed."""

    def __init__(self, file: Path, extent: Extent = NOTHING) -> None:
        """Open the record, keeping what is known to be right."""
        self.rows = Appended(file, extent)
        self.columns: tuple[str, ...] = tuple(next(rows_of(file, extent.bytes), ()))

    def append(
        self, arm: str, rounds: list[int], metrics: Mapping[str, np.ndarray], seeds: Sequence[int] | None = None
    ) -> None:
        """Write metrics of shape (rounds, agents), or (rounds, seeds, agents); the first call decides the columns."""
        keys = KEYS if seeds is None else (*KEYS, SEED)
        if not self.columns:
            self.columns = (*keys, *metrics)
            self.rows.write([self.columns])
        *_, agents = next(iter(metrics.values())).shape
        repeated = 1 if seeds is None else len(seeds)
        columns: list[Any] = [
            np.full(len(rounds) * repeated * agents, arm).tolist(),
            np.repeat(rounds, repeated * agents).tolist(),
            np.tile(np.arange(agents), len(rounds) * repeated).tolist(),
            *([] if seeds is None else [np.tile(np.repeat(seeds, agents), len(rounds)).tolist()]),
            *(metrics[name].ravel().tolist() for name in self.columns[len(keys) :]),
        ]
        self.rows.write(zip(*columns, strict=True))

    def sync(self) -> Extent:
        """Put everything on disk and tell what the record is now."""
        return self.rows.sync()

    def close(self) -> None:
        """Sync and close."""
        self.rows.close()


class Record:
    """The columns of a record, as arrays.

    `select(arm, name)` gives one metric as an array of shape (rounds, agents), the mean over the seeds where these have
    rows of their own; `each(arm, name)` is of shape (rounds, seeds, agents); `rounds(arm)` are the rounds of its rows.
    `shares` is what was kept of the data: the names of labels, and how many examples of each every agent holds.
    """

    def __init__(self, columns: Mapping[str, np.ndarray], shares: Mapping[str, Any] | None = None) -> None:
        self.columns = dict(columns)
        self.shares = dict(shares or {})

    def __repr__(self) -> str:
        rounds, agents, arms = np.unique(self.columns["round"]), self.columns["agent"].max() + 1, ", ".join(self.arms())
        many = f"{len(rounds)} recorded rounds from {rounds[0]} to {rounds[-1]}, {agents} agents"
        return f"Record({arms}: {many}, {len(self.metrics())} metrics; to_pandas() has them)"

    @classmethod
    def read(cls, file: Path, extent: Extent | None = None, shares: Mapping[str, Any] | None = None) -> Record:
        """Read a record, or what of it is known to be right; without its last line where that is torn."""
        try:
            if extent is not None:
                extent.check(file)
            columns = _columns(file, None if extent is None else extent.bytes)
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
        return cls(columns, shares)._complete()

    def _complete(self) -> Record:
        """Without the last recorded round where a crash left some of its arms or agents out."""
        keep = np.ones(len(self.columns["arm"]), dtype=bool)
        for arm in self.arms():
            mine = self.columns["arm"] == arm
            rows = (int(self.columns["agent"][mine].max()) + 1) * len(self.seeds())
            rounds, counts = np.unique(self.columns["round"][mine], return_counts=True)
            keep &= ~(mine & np.isin(self.columns["round"], rounds[counts != rows]))
        everywhere = [set(self.columns["round"][keep & (self.columns["arm"] == arm)].tolist()) for arm in self.arms()]
        keep &= np.isin(self.columns["round"], sorted(set.intersection(*everywhere)))
        if not keep.any():
            raise InputError("record: no round is complete yet")
        return Record({name: values[keep] for name, values in self.columns.items()}, self.shares)

    def to_pandas(self) -> Any:
        """As a data frame of pandas, a row for each arm, recorded round and agent."""
        import pandas

        return pandas.DataFrame(self.columns)

    def to_polars(self) -> Any:
        """As a data frame of polars."""
        import polars

        return polars.DataFrame(self.columns)

    def arms(self) -> list[str]:
        """The arms, in the order in which they were first recorded."""
        return list(dict.fromkeys(self.columns["arm"].tolist()))

    def seeds(self) -> list[int | None]:
        """The seeds that have rows of their own; else one nameless."""
        return np.unique(self.columns[SEED]).tolist() if SEED in self.columns else [None]

    def rounds(self, arm: str) -> np.ndarray:
        """The recorded rounds of an arm."""
        return np.unique(self.columns["round"][self.columns["arm"] == arm])

    def metrics(self) -> list[str]:
        """The names of what was measured."""
        return [name for name in self.columns if name not in (*KEYS, SEED)]

    def each(self, arm: str, metric: str) -> np.ndarray:
        """One metric of one arm, of shape (rounds, seeds, agents)."""
        if metric not in self.columns:
            raise InputError(f"record: has no column '{metric}'; it was written by another version or edited")
        values: np.ndarray = self.columns[metric][self.columns["arm"] == arm]
        return values.reshape(len(self.rounds(arm)), len(self.seeds()), -1)

    def select(self, arm: str, metric: str) -> np.ndarray:
        """One metric of one arm, of shape (rounds, agents)."""
        each = self.each(arm, metric)
        return each[:, 0] if each.shape[1] == 1 else each.mean(axis=1)

    def last(self, arm: str, metric: str, rounds: int = 1) -> np.ndarray:
        """One metric of one arm at the end, of shape (seeds, agents): the mean of what the last rounds recorded."""
        recorded = self.rounds(arm)
        mean: np.ndarray = self.each(arm, metric)[recorded > recorded[-1] - rounds].mean(axis=0)
        return mean


def standard_error(averages: np.ndarray) -> float | None:
    """Of the mean of some seeds' averages; there is none of a single one.

    >>> standard_error(np.array([1.0, 3.0])), standard_error(np.array([1.0]))
    (1.0, None)
    """
    return float(averages.std(ddof=1) / np.sqrt(len(averages))) if len(averages) > 1 else None


def average_score(name: str, values: np.ndarray, counts: np.ndarray) -> float | None:
    """Over agents, as often as each is judged; of root mean squares, that of all errors together.

    >>> average_score("accuracy", np.array([1.0, 0.5, np.nan]), np.array([1, 4, 0]))
    0.6
    """
    judged = np.isfinite(values) & (counts > 0)
    if not judged.any():
        return None
    power = 2 if name == "rmse" else 1
    return float(np.average(values[judged] ** power, weights=counts[judged]) ** (1 / power))


def _columns(file: Path, length: int | None) -> dict[str, np.ndarray]:
    """Row by row into compact columns: a record of two million rows fits into its own size of memory."""
    rows = rows_of(file, length)
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
    for name in (*KEYS[1:], SEED):
        if name in columns:
            columns[name] = columns[name].astype(np.int64)
    return columns
