"""The names of a table's columns: each has one of its own, fit to be written in a description."""

from __future__ import annotations

from collections.abc import Iterable

from consilience.errors import InputError, brief

PANDAS_INDEX = "__index_level_"  # how pandas names an index that it writes as a column


def check_header(header: Iterable[str]) -> list[str]:
    """The names, or which of them cannot be used.

    >>> check_header(["age", "age"])
    Traceback (most recent call last):
    consilience.errors.InputError: column 'age' is there twice
    """
    names = list(header)
    if not names:
        raise InputError("it is empty")
    seen: set[str] = set()
    for number, name in enumerate(names):
        if not name:
            raise InputError(f"column {number} has no name; an index is written as one, leave it out")
        if name.startswith(PANDAS_INDEX):
            raise InputError(f"column '{name}' is the index of a data frame; write the file without it")
        if name != name.strip():
            raise InputError(f"a column's name must not begin or end with a space, got {brief(name)}")
        if name in seen:
            raise InputError(f"column {brief(name)} is there twice")
        seen.add(name)
    return names
