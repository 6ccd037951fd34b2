"""Assumption 1 as checks: W is row-stochastic, irreducible and aperiodic; what is wrong is said in one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse.csgraph import breadth_first_order, connected_components

from consilience.errors import InputError
from consilience.network.network import Network

TOLERANCE = 1e-8


def check(network: Network) -> None:
    """Refuse a network that breaks assumption 1, naming the row, the components or the period.

    >>> from consilience.network import from_matrix
    >>> check(from_matrix([[0.5, 0.5], [0.2, 0.7]]))
    Traceback (most recent call last):
    consilience.errors.InputError: W: row 1 sums to 0.9, not 1
    """
    check_rows(network)
    check_connected(network)
    repeats = period(network)
    if repeats > 1:
        raise InputError(
            f"W: is periodic with period {repeats}, so beliefs would circulate for ever; "
            "give some agent a weight on itself (laziness does)"
        )


def check_rows(network: Network) -> None:
    """Refuse entries that are not finite or are negative, and rows that do not sum to 1."""
    W = network.W
    for bad, what in ((~np.isfinite(W.data), "finite"), (W.data < 0, "at least 0")):
        if bad.any():
            entry = int(np.argmax(bad))
            row = int(np.searchsorted(W.indptr, entry, side="right")) - 1
            raise InputError(f"W: row {row}, column {W.indices[entry]} must be {what}, got {W.data[entry]:g}")
    with np.errstate(over="ignore"):  # infinity is not 1 either
        sums = W.sum(axis=1)
    wrong = np.flatnonzero(np.abs(sums - 1) > TOLERANCE)
    if wrong.size:
        more = f" (and {wrong.size - 1} more rows do not either)" if wrong.size > 1 else ""
        raise InputError(f"W: row {wrong[0]} sums to {sums[wrong[0]]:.10g}, not 1{more}")


def check_connected(network: Network) -> None:
    """Refuse a graph that is not strongly connected, naming its components."""
    parts = components(network)
    if len(parts) > 1:
        shown = "; ".join(_shortened(part) for part in parts[:4]) + ("; …" if len(parts) > 4 else "")
        raise InputError(f"W: the graph is not strongly connected, it has {len(parts)} components: {shown}")


def components(network: Network) -> list[list[int]]:
    """The strongly connected components, the largest first.

    >>> from consilience.network import from_matrix
    >>> components(from_matrix([[1.0, 0.0], [0.5, 0.5]]))
    [[0], [1]]
    """
    count, label = connected_components(network.W, connection="strong")
    order = np.argsort(label, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(label, minlength=count))[:-1])
    return sorted(([int(i) for i in part] for part in parts), key=lambda part: (-len(part), part[0]))


def period(network: Network) -> int:
    """The greatest common divisor of the lengths of all cycles of a strongly connected graph; 1 means aperiodic.

    With levels from a breadth-first search, every edge i → j closes cycles whose lengths differ by
    level(i) + 1 − level(j), and these differences generate the period.

    >>> from consilience.network import from_matrix
    >>> period(from_matrix([[0.0, 1.0], [1.0, 0.0]]))
    2
    """
    W = network.W
    if W.diagonal().any():
        return 1
    order, parent = breadth_first_order(W, 0)
    level = _levels(order, parent)
    rows = np.repeat(np.arange(network.agents), np.diff(W.indptr))
    return int(np.gcd.reduce(np.abs(level[rows] + 1 - level[W.indices])))


def _levels(order: Any, parent: Any) -> Any:
    level = np.zeros(len(parent), dtype=np.int64)
    for node in order[1:]:
        level[node] = level[parent[node]] + 1
    return level


def _shortened(part: Sequence[int]) -> str:
    inside = ", ".join(map(str, part[:6])) + (f", … {len(part)} agents" if len(part) > 6 else "")
    return "{" + inside + "}"
