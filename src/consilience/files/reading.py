"""Files that are handed over: whatever fails while one is read becomes one line."""

from __future__ import annotations

import csv
import math
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from consilience.errors import InputError, brief, printable


@contextmanager
def reading(field: str, file: str | Path) -> Iterator[None]:
    """Say in one line why a file cannot be read: the rule it breaks, or whatever a parser raises.

    >>> with reading("dataset", "a.csv"):
    ...     raise InputError("line 7 must be a number")
    Traceback (most recent call last):
    consilience.errors.InputError: dataset: cannot read 'a.csv': line 7 must be a number
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what matters is checked by those who read
            yield
    except InputError as error:
        raise InputError(f"{field}: cannot read '{printable(str(file))}': {error}") from None
    except Exception as error:  # damaged archives and tables fail in many ways: zlib, headers, codecs, pyarrow's own
        raise InputError(f"{field}: cannot read '{printable(str(file))}': {_reason(error)}") from None


def numbered_rows(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file that are not blank, each with the number of its last line."""
    rows = csv.reader(lines, strict=True)
    try:
        yield from ((rows.line_num, row) for row in rows if row)
    except csv.Error as error:
        raise InputError(f"line {rows.line_num}: {error}") from None


def whole(text: str, place: str) -> int:
    """The whole number at a place of a file, written in plain digits.

    >>> whole(" 12", "line 3"), whole("-1", "line 4")
    (12, -1)
    """
    digits = text.strip()
    if not (digits.removeprefix("-").isdecimal() and digits.isascii() and len(digits) < 19):
        raise InputError(f"{place} must be a whole number, got {brief(text)}")
    return int(digits)


def finite(value: str | float | int, place: str) -> float:
    """The number at a place of a file.

    >>> finite("1e-3", "line 3")
    0.001
    """
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise InputError(f"{place} must be a number, got {brief(value)}") from None
    if not math.isfinite(number):
        raise InputError(f"{place} must be finite, got {number:g}")
    return number


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    if isinstance(error, MemoryError):
        return "it needs more memory than there is"
    return printable(next(iter(str(error).strip().splitlines()), "it is damaged")[:200])
