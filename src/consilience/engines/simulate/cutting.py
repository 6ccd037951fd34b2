"""Who works where and when in a round: the work of unequal agents, cut evenly over the devices.

Lay the agents of a host on a line, each as long as its work w, and cut the line into pieces of the length
T = max(largest w, total / devices), one a device (McNaughton's wrap-around rule). An agent in which a border falls is
cut: the device right of the border does the first part of its round, x, before anything else, and the device left of
it the rest, w − x, after everything else. One exchange, at a time M that all devices share, is enough wherever all
first parts can be over by then and no rest has to begin before:

    max_c x_c ≤ M ≤ T − max_c (w_c − x_c),   over the cut agents c.

With two devices there is one border, and so there always is such an M. Where there is none, or where whole agents come
out as even, agents stay whole: the longest first, each to the device that has the least to do.

Everything is counted in parts: an agent's round has `steps` of them, and one of the longest agent's is the unit of
time. An agent is cut at a part of its own round, the nearest; for equal agents T is rounded up, so that it is exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from consilience.errors import InputError, brief

ROUNDING = 1.0  # of two borders to the nearest part of an agent's round, each by half a part of the longest at most


class Layout(NamedTuple):
    """Slots, homes, work and cut borders, as `Placement` has them."""

    numbers: Int[np.ndarray, "devices slots"]
    home: Int[np.ndarray, "agents"]
    work: Int[np.ndarray, "devices 2 pieces 3"]
    left: tuple[int, ...]


def relative(work: Sequence[float | int] | None, agents: int) -> Float[np.ndarray, "agents"]:
    """The work of every agent as a part of the largest; 1 for all where nothing is said, or nobody has any.

    >>> relative([800, 100, 0], 3).tolist(), relative(None, 2).tolist()
    ([1.0, 0.125, 0.0], [1.0, 1.0])
    """
    if work is None:
        return np.ones(agents)
    values = np.asarray(work, float)
    if values.shape != (agents,):
        raise InputError(f"work must have one number for each of {agents} agents, got {brief(work)}")
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(wrong):
        raise InputError(f"work of agent {wrong[0]} must be finite and not negative, got {brief(work[wrong[0]])}")
    largest = values.max(initial=0.0)
    return values / largest if largest > 0 else np.ones(agents)


def to_hosts(work: Float[np.ndarray, "agents"], hosts: int) -> list[Int[np.ndarray, "_"]]:
    """Consecutive agents for every host, with about as much work on each; nobody without agents where there are enough.

    An agent goes where the middle of its work lies, so no host has more than its share and one largest agent.

    >>> [mine.tolist() for mine in to_hosts(np.array([1.0, 1.0, 0.5, 0.5, 1.0]), 2)]
    [[0, 1], [2, 3, 4]]
    """
    agents = len(work)
    if _equal(work) or agents <= hosts:
        return np.array_split(np.arange(agents), hosts)
    ends, inner = np.cumsum(work), np.arange(1, hosts)
    borders = np.searchsorted(ends - work / 2, ends[-1] * inner / hosts)
    borders = np.maximum.accumulate(np.maximum(borders - inner, 0)) + inner
    return np.split(np.arange(agents), np.minimum(borders, agents - hosts + inner))


def dealt_out(work: Float[np.ndarray, "agents"], devices: int) -> Layout:
    """Whole agents, for networks that change: turns say who works. Of equal ones, agent a is on device a mod D, so that
    agents with consecutive numbers are spread evenly.
    """
    of_device = _longest_first(work, devices)
    slots = max(map(len, of_device))
    numbers = np.full((devices, slots), len(work) - 1, np.int32)
    home = np.zeros(len(work), np.int32)
    for device, mine in enumerate(of_device):
        numbers[device, : len(mine)] = mine
        home[mine] = device * slots + np.arange(len(mine))
    return Layout(numbers, home, np.zeros((devices, 2, 0, 3), np.int32), ())


def wrap_around(work: Float[np.ndarray, "agents"], steps: int, each: int, hosts: int = 1) -> Layout:
    """The agents of every host over `each` devices, cut where that evens out the work and one exchange is enough."""
    of_host = to_hosts(work, hosts)
    lines = [work[mine] * steps for mine in of_host]
    fair = max(line.sum() for line in lines) / each
    piece = float(math.ceil(fair)) if _equal(work) else max(float(steps), fair)
    borders = [_borders(line, steps, each, piece) for line in lines]
    middle = _exchange(lines, steps, borders, piece)
    if _equal(work):
        most = max(map(len, of_host))
        if most % each == 0 or middle is None:  # whole agents, in order
            piece, middle = float(-(-most // each) * steps), float(steps)
            borders = [_borders(line, steps, each, piece) for line in lines]
    else:
        whole = [_longest_first(line, each) for line in lines]
        most_work = max(line[mine].sum() for line, host in zip(lines, whole, strict=True) for mine in host)
        if most_work <= piece + ROUNDING or middle is None:
            dealt = [mine_of[part] for mine_of, host in zip(of_host, whole, strict=True) for part in host]
            return _arranged([_whole(part.tolist(), len(work) - 1, steps) for part in dealt], len(work), steps)
    shares = [
        _share(mine.tolist() or [len(work) - 1], line, steps, begin, end, middle)
        for mine, line, at in zip(of_host, lines, borders, strict=True)
        for begin, end in pairwise(at.tolist())
    ]
    return _arranged(shares, len(work), steps)


def _equal(work: Float[np.ndarray, "agents"]) -> bool:
    return bool((work == work[0]).all())


def _longest_first(work: Float[np.ndarray, "agents"], devices: int) -> list[Int[np.ndarray, "_"]]:
    """Each agent to the device with the least work so far, of these to the one with the fewest agents."""
    of_device: list[list[int]] = [[] for _ in range(devices)]
    load = [0.0] * devices
    for agent in np.argsort(-work, kind="stable").tolist():
        worth = float(work[agent])
        # Who has no work takes no time, but a slot.
        to = min(range(devices), key=lambda d: (load[d] if worth > 0 else 0.0, len(of_device[d]), d))
        of_device[to].append(agent)
        load[to] += worth
    return [np.array(mine, int) for mine in of_device]


def _borders(line: Float[np.ndarray, "agents"], steps: int, each: int, piece: float) -> Int[np.ndarray, "borders"]:
    """The ends of the devices' pieces, in parts: the a-th agent of the line has those from a·steps to (a+1)·steps."""
    ends, times = np.cumsum(line), np.arange(each + 1) * piece
    agent = np.searchsorted(ends, times, side="right")  # the first that is not over by then
    borders = np.full(each + 1, len(line) * steps)
    inside = agent < len(line)
    its = agent[inside]
    done = np.clip(times[inside] - ends[its] + line[its], 0, line[its])
    borders[inside] = its * steps + np.rint(done / line[its] * steps)
    borders[0], borders[-1] = 0, len(line) * steps  # agents without work at either end, too
    return borders


def _exchange(lines: list[Any], steps: int, borders: list[Any], piece: float) -> float | None:
    """The time M of the exchange, the longest agent's work where that is possible; None where no time is."""
    first, rest = [0.0], [0.0]
    for line, at in zip(lines, borders, strict=True):
        for border in at[at % steps > 0].tolist():
            length = float(line[border // steps])
            rest.append(border % steps / steps * length)
            first.append(length - rest[-1])
    if max(first) + max(rest) > piece + ROUNDING:
        return None
    return min(float(steps), piece - max(rest))


class _Share(NamedTuple):
    """One device's piece of the line: its agents, what it does of them in both halves, and whether its first is cut."""

    agents: list[int]
    halves: tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]  # (place among its agents, first, last)
    cut: bool


def _whole(agents: list[int], spare: int, steps: int) -> _Share:
    """A device with whole agents, or with none."""
    return _Share(agents or [spare], ([(place, 0, steps) for place in range(len(agents))], []), False)


def _share(
    agents: list[int], line: Float[np.ndarray, "agents"], steps: int, begin: int, end: int, middle: float
) -> _Share:
    """The work between two points of the line, before and after the exchange."""
    mine = list(range(begin // steps, -(-end // steps)))
    early: list[tuple[int, int, int]] = []
    late: list[tuple[int, int, int]] = []
    time = 0.0
    for number, agent in enumerate(mine):
        length = float(line[agent])
        doing = min(end, (agent + 1) * steps) - max(begin, agent * steps)
        if agent * steps < begin:  # cut by the left border: its first part
            first, before = 0, doing
        elif end < (agent + 1) * steps:  # cut by the right border: the rest
            first, before = steps - doing, 0
        else:
            first = 0
            before = round(min(max(middle - time, 0.0), length) / length * steps) if length > 0 else doing
        early += [(number, first, first + before)] if before else []
        late += [(number, first + before, first + doing)] if before < doing else []
        time += doing / steps * length
    cut = bool(mine) and mine[0] * steps < begin
    return _Share([agents[place] for place in mine] or [agents[-1]], (early, late), cut)


def _arranged(shares: list[_Share], agents: int, steps: int) -> Layout:
    """The shares of all devices in slots."""
    slots = max(len(share.agents) for share in shares)
    # The last agent of a device always has its last slot, where the neighbour's part of it arrives; spare slots before.
    numbers = np.array([s.agents[:-1] + [s.agents[-1]] * (slots - len(s.agents) + 1) for s in shares], np.int32)
    work = np.zeros((len(shares), 2, max(len(half) for s in shares for half in s.halves), 3), np.int32)
    home = np.zeros(agents, np.int32)
    for device, share in enumerate(shares):
        # … unless it is the only one and the neighbour plays its end: then it is handed over from the first slot.
        slot_of = [*range(len(share.agents) - 1), 0 if share.cut and len(share.agents) == 1 else slots - 1]
        for half, listed in enumerate(share.halves):
            for row, (place, first, last) in enumerate(listed):
                work[device, half, row] = slot_of[place], first, last
                if last == steps:
                    home[share.agents[place]] = device * slots + slot_of[place]
    return Layout(numbers, home, work, tuple(device for device, share in enumerate(shares) if share.cut))
