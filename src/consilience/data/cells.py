"""The cells of a column, as they come from a file, in numbers or levels; the first that does not fit is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float64, Int32

from consilience.data.labels import as_number
from consilience.errors import InputError, brief
from consilience.task.columns import listed

ABSENT = ("na", "n/a", "nan", "null", "none", "nil", "-", "--", ".", "?", "missing")  # how other programs write it
TRUTH = ("true", "false")


class Unfit(Exception):
    """A cell that breaks a rule: its row in the batch, and the rule with what was found."""

    def __init__(self, row: int, rule: str) -> None:
        super().__init__(rule)
        self.row, self.rule = row, rule


def is_text(kind: Any) -> bool:
    """Whether a column holds text."""
    return any(is_kind(kind) for is_kind in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def is_number(kind: Any) -> bool:
    """Whether a column holds numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_usable(kind: Any) -> bool:
    """Whether a column holds text, numbers, truth values or nothing, and not, say, dates or lists."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return is_text(kind) or is_number(kind) or bool(pa.types.is_boolean(kind) or pa.types.is_null(kind))


def check_kind(name: str, kind: Any) -> None:
    """Refuse a column of a kind that cannot be used."""
    if not is_usable(kind):
        raise InputError(f"column {brief(name)} must hold numbers or text, it holds {brief(str(kind))}")


def plain(cells: Any) -> Any:
    """Cells with categories replaced by what they stand for."""
    return cells.cast(cells.type.value_type) if pa.types.is_dictionary(cells.type) else cells


def texts(cells: Any) -> Any:
    """Cells as text; an empty one is missing."""
    cells = plain(cells).cast(pa.string())
    return pc.if_else(pc.equal(cells, ""), pa.scalar(None, pa.string()), cells)


def numbers(cells: Any) -> tuple[Float64[np.ndarray, "rows"], Bool[np.ndarray, "rows"] | None]:
    """Cells as numbers, and which of them are missing, if any; a truth value is 0 or 1."""
    cells = plain(cells)
    cells = _parsed(texts(cells)) if is_text(cells.type) else cells.cast(pa.float64(), safe=False)
    missing = cells.is_null().to_numpy(zero_copy_only=False) if cells.null_count else None
    return cells.to_numpy(zero_copy_only=False), missing


def _parsed(cells: Any) -> Any:
    """Text as numbers, with spaces around them or without."""
    try:
        return cells.cast(pa.float64())
    except pa.ArrowInvalid:
        trimmed = pc.utf8_trim_whitespace(cells)
    try:
        return trimmed.cast(pa.float64())
    except pa.ArrowInvalid:
        row, cell = next((row, cell) for row, cell in enumerate(trimmed) if not is_numeral(cell.as_py()))
    hint = "; a missing value is an empty cell" if cell.as_py().lower() in ABSENT else ""
    raise Unfit(row, f"must be a number, got {brief(cells[row].as_py())}{hint}")


def is_numeral(text: str | None) -> bool:
    """Whether a text is read as a number, or is missing.

    >>> is_numeral("-1.5e3"), is_numeral("1,5")
    (True, False)
    """
    try:
        pa.scalar(text, pa.string()).cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def meaning(text: str) -> str | int | float:
    """What a text stands for, however it is written: a number, a truth value, or itself.

    >>> meaning("1.0") == meaning("1"), meaning("TRUE"), meaning("Left")
    (True, 'true', 'Left')
    """
    number = as_number(text)
    if number is not None:
        return number
    return text.lower() if text.lower() in TRUTH else text


class LevelNumbers:
    """The number of each level, from its name, or from another way to write the same.

    >>> LevelNumbers(["1", "2"]).of("2.0"), LevelNumbers(["no", "yes"]).of("maybe")
    (1, None)
    """

    def __init__(self, levels: list[str]) -> None:
        self.levels = levels
        self._by_name = {level: number for number, level in enumerate(levels)}
        self._by_meaning = {meaning(level): number for number, level in enumerate(levels)}

    def of(self, text: str) -> int | None:
        """The level's number, if there is such a level."""
        return self._by_name[text] if text in self._by_name else self._by_meaning.get(meaning(text))

    def numbers(self, cells: Any, missing: str | None, without: str = "has no value") -> Int32[np.ndarray, "rows"]:
        """The level of every cell; a missing one is of the level given for it, or is refused in these words."""
        encoded = texts(cells).dictionary_encode()
        names = encoded.dictionary.to_pylist()
        for_missing = -1 if missing is None else self._by_name[missing]
        found = [self.of(name) for name in names]
        known = np.array([-1 if number is None else number for number in found] + [for_missing], np.int32)
        chosen = encoded.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)
        codes = np.asarray(known[chosen])
        if len(codes) and codes.min() < 0:
            row = int(codes.argmin())
            if chosen[row] == len(names):
                raise Unfit(row, without)
            raise Unfit(row, f"must be one of {listed(self.levels)}, got {brief(names[chosen[row]])}")
        return codes
