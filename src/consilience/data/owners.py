"""Whose the rows of one table are, where a column of it says so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxtyping import Int32

from consilience.data.cells import Unfit, texts
from consilience.data.labels import as_number, unfit
from consilience.errors import brief


class Owners:
    """Whose each row is: owners get their numbers in the order of their names, however rows are ordered."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._found: list[Int32[np.ndarray, "rows"]] = []

    def add(self, cells: Any) -> np.ndarray:
        """The owners of a batch, in the order in which they are met."""
        encoded = texts(cells).dictionary_encode()
        if encoded.null_count:
            raise Unfit(int(encoded.is_null().to_numpy(zero_copy_only=False).argmax()), "has no value")
        chosen, names = encoded.indices.to_numpy(zero_copy_only=False), encoded.dictionary.to_pylist()
        for number, name in enumerate(names):
            if rule := unfit(name):
                raise Unfit(int((chosen == number).argmax()), f"{rule}, got {brief(name)}")
        codes = np.array([self._names.setdefault(name, len(self._names)) for name in names], np.int32)
        self._found.append(codes[chosen])
        return self._found[-1]

    def numbered(self) -> tuple[Int32[np.ndarray, "rows"], tuple[str, ...]]:
        """The owner of every row, and the owners' names."""
        names = in_order(self._names)
        renumbered = np.empty(len(names), np.int32)
        renumbered[[self._names[name] for name in names]] = np.arange(len(names))
        return renumbered[np.concatenate(self._found)], tuple(names)


def in_order(names: Iterable[str]) -> list[str]:
    """Names in the order a person expects: numbers by value, before text.

    >>> in_order(["b", "10", "9", "a"])
    ['9', '10', 'a', 'b']
    """
    values = {name: as_number(name) for name in names}
    return sorted(values, key=lambda name: (values[name] is None, values[name] or 0, name))
