"""The union graph: whether everybody hears from everybody, over a window of turns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from consilience.errors import InputError
from consilience.machine import memory
from consilience.network.schedule import Schedule
from consilience.network.turns import Turn

A_LINE = 100  # bytes of who learns or hears whom, where turns are looked at and written out


def check_union(schedule: Schedule, window: int) -> None:
    """Refuse a schedule whose turns, taken together over a window, do not let everybody hear from everybody.

    >>> from consilience.network import Fixed, from_matrix
    >>> check_union(Fixed(from_matrix([[1.0, 0.0], [0.5, 0.5]])), window=3)
    Traceback (most recent call last):
    consilience.errors.InputError: schedule: over 3 rounds agent 0 never hears from agent 1, not even through others
    """
    lines = float(window) * (schedule.most.learners + schedule.most.edges)
    memory.require(A_LINE * lines, f"rounds: a file of {window:,} turns of a network that changes")
    union = union_of((schedule.turn(number) for number in range(1, window + 1)), schedule.agents)
    count, label = connected_components(union, connection="strong")
    if count == 1:
        return
    # Components in which nobody hears anybody outside: what happens elsewhere never reaches them.
    rows = np.repeat(np.arange(schedule.agents), np.diff(union.indptr))
    hears_outside = np.zeros(count, bool)
    hears_outside[label[rows[label[rows] != label[union.indices]]]] = True
    deaf = int(np.argmin(hears_outside))
    inside = np.flatnonzero(label == deaf)
    outside = np.flatnonzero(label != deaf)
    raise InputError(
        f"schedule: over {window} rounds {_agents(inside)} never hear{'s' * (len(inside) == 1)} from "
        f"{_agents(outside)}, not even through others"
    )


def union_of(turns: Iterable[Turn], agents: int) -> Any:
    """The graph of everybody who is heard by somebody in any of the turns."""
    pairs = [np.stack([turn.receivers, turn.senders]) for turn in turns]
    receivers, senders = np.concatenate(pairs, axis=1) if pairs else np.zeros((2, 0), int)
    return sp.csr_array((np.ones(len(receivers)), (receivers, senders)), shape=(agents, agents))


def _agents(numbers: Any) -> str:
    if len(numbers) == 1:
        return f"agent {numbers[0]}"
    shown = ", ".join(map(str, numbers[:6]))
    return f"agents {shown}" + (f", … ({len(numbers)} in all)" if len(numbers) > 6 else "")
