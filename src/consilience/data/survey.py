"""What is in the columns of a table that nobody has described yet: how many numbers, which words, how large."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float64

from consilience.data.cells import is_number, is_numeral, is_usable, plain, texts
from consilience.data.formats import opened
from consilience.errors import InputError, brief
from consilience.files.reading import reading

MANY = 1000  # values that are remembered
MOST_OWNERS = 10_000


@dataclass
class Moments:
    """How many numbers there are, their mean, their squared distances from it in all, and their range."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    low: float = np.inf
    high: float = -np.inf

    @property
    def sd(self) -> float:
        """The standard deviation."""
        return float(np.sqrt(self.squares / self.count)) if self.count else 0.0

    def with_(self, other: Moments) -> Moments:
        """Of both together (Chan, Golub and LeVeque).

        >>> Moments.of(np.array([1.0, 2.0])).with_(Moments.of(np.array([6.0]))).mean
        3.0
        """
        count = self.count + other.count
        if not count:
            return Moments()
        step = other.mean - self.mean
        return Moments(
            count,
            self.mean + step * other.count / count,
            self.squares + other.squares + step * step * self.count * other.count / count,
            min(self.low, other.low),
            max(self.high, other.high),
        )

    @staticmethod
    def of(values: Float64[np.ndarray, "values"]) -> Moments:
        """Of some numbers."""
        if not len(values):
            return Moments()
        mean = float(values.mean())
        squares = float(((values - mean) ** 2).sum())
        return Moments(len(values), mean, squares, float(values.min()), float(values.max()))


@dataclass
class Found:
    """What is in a column of one agent's rows."""

    rows: int = 0
    missing: int = 0
    numbers: Moments = field(default_factory=Moments)
    words: dict[str, None] = field(default_factory=dict)  # values that are no numbers, the first of them
    values: dict[str, None] = field(default_factory=dict)  # all values, the first of them
    whole: bool = True
    distinct: bool = True  # as far as values are remembered, and in every batch
    other: str = ""  # what it holds where that is neither numbers nor text

    @property
    def many(self) -> bool:
        """Whether there are more values than are remembered."""
        return len(self.values) > MANY

    def add(self, cells: Any) -> None:
        """Look at some more rows."""
        cells = plain(cells)
        cells = cells if is_number(cells.type) else texts(cells)
        present = cells.drop_null()
        self.rows += len(cells)
        self.missing += len(cells) - len(present)
        if self.distinct or not self.many:
            different = present.unique()
            names = different.cast(pa.string()).to_pylist()
            self.distinct = self.distinct and len(names) == len(present) and self.values.keys().isdisjoint(names)
            if not self.many:
                self.values.update(dict.fromkeys(names))
        if is_number(cells.type):
            numbers = present.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            self.words.update(dict.fromkeys(str(value) for value in np.unique(numbers[~np.isfinite(numbers)])))
            self._add_numbers(numbers)
        elif len(self.words) <= MANY:  # in a column of so many words numbers do not matter
            encoded = present.dictionary_encode()
            numerals = _numerals(encoded.dictionary)
            words = np.array(encoded.dictionary.to_pylist(), object)[~np.isfinite(numerals)]
            self.words.update(dict.fromkeys(words))
            self._add_numbers(numerals[encoded.indices.to_numpy(zero_copy_only=False)])

    def _add_numbers(self, numbers: Float64[np.ndarray, "values"]) -> None:
        numbers = numbers[np.isfinite(numbers)]
        self.whole = self.whole and bool((numbers == np.floor(numbers)).all())
        with np.errstate(over="ignore", invalid="ignore"):
            self.numbers = self.numbers.with_(Moments.of(numbers))


def surveyed(file: Path, owner: str | None = None) -> dict[str, dict[str, Found]]:
    """What each agent has in each column: of a file all rows are one agent's, or as a column names their owners."""
    with reading("files", file), opened(file) as table:
        kinds = {name: _other_kind(table.kinds[name]) for name in table.names if name != owner}
        read = [name for name in table.names if not kinds.get(name)]
        if owner is not None and owner not in table.names:
            raise InputError(f"must have a column {brief(owner)} that names owners")
        found: dict[str, dict[str, Found]] = {}
        for batch in table.batches(read):
            for name, part in [(file.stem, batch)] if owner is None else _parts(batch, owner):
                own = found.setdefault(name, {column: Found(other=kind) for column, kind in kinds.items()})
                if len(found) > MOST_OWNERS:
                    raise InputError(f"column {brief(owner)} must name at most {MOST_OWNERS} owners, got more")
                for column in own.keys() & set(read):
                    own[column].add(part.column(column))
        if not found:
            raise InputError("must have rows, got none below the names")
    return found


def _other_kind(kind: Any) -> str:
    """What a column holds where that is neither numbers nor text."""
    return "" if is_usable(kind) else str(kind)[:60]


def _parts(batch: Any, owner: str) -> Iterator[tuple[str, Any]]:
    """The rows of each owner in a batch."""
    owners = texts(batch.column(owner))
    if owners.null_count:
        raise InputError(f"column {brief(owner)} must name the owner of every row, some have none")
    for name in owners.unique().to_pylist():
        yield name, batch.filter(pc.equal(owners, name))


def _numerals(names: Any) -> Float64[np.ndarray, "names"]:
    """The number that each text is, or NaN."""
    trimmed = pc.utf8_trim_whitespace(names)
    try:
        return np.asarray(trimmed.cast(pa.float64()).to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid:
        return np.array([float(name) if name and is_numeral(name) else np.nan for name in trimmed.to_pylist()])
