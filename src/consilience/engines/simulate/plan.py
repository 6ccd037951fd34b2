"""The turns of a schedule as arrays for a program: what every device does in each of them.

All turns of a plan have the same shape, with room for the largest, so that other turns are other data for the same
program; how much of it is used is in the counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from consilience.engines.simulate.placement import Placement
from consilience.network.schedule import Most
from consilience.network.turns import Turn


class Plan(NamedTuple):
    """For every device and turn.

    pieces, work: how many (slot, first part, last part) are played one after another in both halves.
    learns, hears: which slots learn and publish, and which pool.
    position: where in its memory of what it said a slot that learns stores what it says now.
    speaking: what is sent to each other device: slot × memory + position.
    hearers, begins: the slots that pool, and where each one's edges begin; `hearing` says how many there are.
    receivers, senders, weights: the edges; a sender is a row of what the device's own slots have said (slot × memory +
    position) or, after these, of what the devices have sent it, each as much as `speaking` has room for.
    """

    pieces: Int[np.ndarray, "devices turns 2"]
    work: Int[np.ndarray, "devices turns 2 pieces 3"]
    learns: Bool[np.ndarray, "devices turns slots"]
    hears: Bool[np.ndarray, "devices turns slots"]
    position: Int[np.ndarray, "devices turns slots"]
    speaking: Int[np.ndarray, "devices turns devices speaking"]
    hearing: Int[np.ndarray, "devices turns"]
    hearers: Int[np.ndarray, "devices turns hearers"]
    begins: Int[np.ndarray, "devices turns begins"]
    receivers: Int[np.ndarray, "devices turns edges"]
    senders: Int[np.ndarray, "devices turns edges"]
    weights: Float[np.ndarray, "devices turns edges"]


def plan_of(
    turns: Sequence[Turn],
    placement: Placement,
    most: Most,
    steps: int,
    said: Int[np.ndarray, "turns agents"],
    always: bool = False,
) -> Plan:
    """Lay turns out over the devices. `said` is how often each agent has published by the end of each turn.

    always: these are all turns there ever are, so that there need be no room for larger ones.
    """
    devices, slots = placement.numbers.shape
    memory, count = most.age + 1, len(turns)
    pieces = placement.work.shape[2] if placement.left else max(min(slots, most.learners), 1)
    hearers = min(slots, most.receivers + devices)  # a cut agent pools on both its devices
    wanted = [
        [_wanted(turn, placement, memory, said[n], device) for device in range(devices)] for n, turn in enumerate(turns)
    ]
    edges, speaking = most.edges, min(slots * memory, most.edges)
    if always:
        edges = max(len(here.edges) for turn in wanted for here in turn)
        speaking = max(int(np.bincount(here.owners).max(initial=0)) for turn in wanted for here in turn)
    plan = Plan(
        np.zeros((devices, count, 2), np.int32),
        np.zeros((devices, count, 2, pieces, 3), np.int32),
        np.zeros((devices, count, slots), bool),
        np.zeros((devices, count, slots), bool),
        np.zeros((devices, count, slots), np.int32),
        np.zeros((devices, count, devices, max(speaking, 1)), np.int32),
        np.zeros((devices, count), np.int32),
        np.zeros((devices, count, hearers), np.int32),
        np.zeros((devices, count, hearers + 1), np.int32),
        np.full((devices, count, max(edges, 1)), slots - 1, np.int32),
        np.zeros((devices, count, max(edges, 1)), np.int32),
        np.zeros((devices, count, max(edges, 1))),
    )
    for number, turn in enumerate(turns):
        _lay_out_learning(plan, number, turn, placement, steps)
        plan.position[:, number] = said[number][placement.numbers] % memory
        for device in range(devices):
            _lay_out_hearing(plan, number, turn, device, wanted[number][device], slots * memory)
    return plan


class _Wanted(NamedTuple):
    """What a device needs in a turn: its hearing slots and how many edges each has, the edges, and whom it asks.

    local: for every edge, the row of what its own slots have said; −1 where another device has it.
    remote: for every other edge, which of the rows that are asked for; these are rows (`rows`) of other devices
    (`owners`), the `order`-th that this device asks of them.
    """

    hearers: Any
    degrees: Any
    edges: Any
    local: Any
    remote: Any
    owners: Any
    rows: Any
    order: Any


def _wanted(turn: Turn, placement: Placement, memory: int, said: Int[np.ndarray, "agents"], device: int) -> _Wanted:
    own = placement.numbers.shape[1] * memory
    numbers = placement.numbers[device]
    begin = np.searchsorted(turn.receivers, np.arange(len(placement.home) + 1))
    degree = np.diff(begin)[numbers]
    hearers = np.flatnonzero(degree > 0)
    edges = _ranges(begin[numbers[hearers]], degree[hearers])
    senders = turn.senders[edges]
    # A belief is heard from the device where its owner is at home.
    key = placement.home[senders].astype(np.int64) * memory + (said[senders] - turn.ages[edges]) % memory
    here = key // own == device
    asked, remote = np.unique(key[~here], return_inverse=True)
    owners = asked // own
    order = np.arange(len(asked)) - np.searchsorted(owners, owners)
    local = np.where(here, key % own, -1)
    return _Wanted(hearers, degree[hearers], edges, local, remote, owners, asked % own, order)


def _lay_out_hearing(plan: Plan, number: int, turn: Turn, device: int, wanted: _Wanted, own: int) -> None:
    """Who pools on a device, from which rows, and what the other devices send it for that."""
    room, count = plan.speaking.shape[3], len(wanted.hearers)
    plan.speaking[wanted.owners, number, device, wanted.order] = wanted.rows
    senders = wanted.local.copy()
    senders[senders < 0] = (own + wanted.owners * room + wanted.order)[wanted.remote]
    ends = np.cumsum(wanted.degrees)
    plan.hears[device, number, wanted.hearers] = True
    plan.hearing[device, number] = count
    plan.hearers[device, number, :count] = wanted.hearers
    plan.begins[device, number, 1 : count + 1] = ends
    plan.begins[device, number, count + 1 :] = ends[-1] if count else 0
    used = slice(0, len(wanted.edges))
    plan.receivers[device, number, used] = np.repeat(wanted.hearers, wanted.degrees)
    plan.senders[device, number, used] = senders
    plan.weights[device, number, used] = turn.weights[wanted.edges]


def _lay_out_learning(plan: Plan, number: int, turn: Turn, placement: Placement, steps: int) -> None:
    """Who learns where, in which pieces."""
    devices, slots = placement.numbers.shape
    learning = np.zeros(len(placement.home), bool)
    learning[turn.learners] = True
    plan.learns[:, number] = learning[placement.numbers]
    if placement.left:  # agents are cut only where all of them learn in every turn
        plan.work[:, number] = placement.work
        plan.pieces[:, number] = (placement.work[..., 2] > placement.work[..., 1]).sum(2)
        return
    where = np.sort(placement.home[turn.learners])
    for device in range(devices):
        mine = where[where // slots == device] % slots
        plan.work[device, number, 0, : len(mine)] = np.stack(
            [mine, np.zeros_like(mine), np.full_like(mine, steps)], axis=1
        )
        plan.pieces[device, number, 0] = len(mine)


def _ranges(begin: Any, length: Any) -> Any:
    """begin[0] … begin[0] + length[0] − 1, begin[1] …, one after another."""
    total = int(length.sum())
    starts = np.cumsum(length) - length
    return np.arange(total) - np.repeat(starts, length) + np.repeat(begin, length)
