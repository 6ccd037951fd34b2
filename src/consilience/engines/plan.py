"""The turns of a schedule as arrays for a program: what every device does in each of them.

All turns of a plan have the same shape, with room for the largest, so that other turns are other data for the same
program; how much of it is used is in the counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from consilience.engines.placement import Placement
from consilience.network.schedule import Most
from consilience.network.turns import Turn


class Plan(NamedTuple):
    """For every device and turn.

    pieces, work: how many (slot, first step, last step) are played one after another in both halves.
    learns, hears: which slots learn and publish, and which pool.
    position: where in its memory of what it said a slot that learns stores what it says now.
    speaking: what is sent to all devices: slot × memory + position.
    hearers, begins: the slots that pool, and where each one's edges begin; `hearing` says how many there are.
    receivers, senders, weights: the edges; a sender is a row of what all devices have sent.
    """

    pieces: Int[np.ndarray, "devices turns 2"]
    work: Int[np.ndarray, "devices turns 2 pieces 3"]
    learns: Bool[np.ndarray, "devices turns slots"]
    hears: Bool[np.ndarray, "devices turns slots"]
    position: Int[np.ndarray, "devices turns slots"]
    speaking: Int[np.ndarray, "devices turns speaking"]
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
    edges = _edges_a_device(turns, placement) if always else most.edges
    plan = Plan(
        np.zeros((devices, count, 2), np.int32),
        np.zeros((devices, count, 2, pieces, 3), np.int32),
        np.zeros((devices, count, slots), bool),
        np.zeros((devices, count, slots), bool),
        np.zeros((devices, count, slots), np.int32),
        np.zeros((devices, count, max(min(slots * memory, most.edges), 1)), np.int32),
        np.zeros((devices, count), np.int32),
        np.zeros((devices, count, hearers), np.int32),
        np.zeros((devices, count, hearers + 1), np.int32),
        np.full((devices, count, max(edges, 1)), slots - 1, np.int32),
        np.zeros((devices, count, max(edges, 1)), np.int32),
        np.zeros((devices, count, max(edges, 1))),
    )
    for number, turn in enumerate(turns):
        _lay_out(plan, number, turn, placement, memory, steps, said[number])
    return plan


def _edges_a_device(turns: Sequence[Turn], placement: Placement) -> int:
    """The most edges into one device's slots in any turn."""
    agents = len(placement.home)
    of_agents = [np.bincount(turn.receivers, minlength=agents) for turn in turns]
    return max(int(edges[numbers].sum()) for edges in of_agents for numbers in placement.numbers)


def _lay_out(
    plan: Plan, number: int, turn: Turn, placement: Placement, memory: int, steps: int, said: Int[np.ndarray, "agents"]
) -> None:
    devices, slots = placement.numbers.shape
    learning = np.zeros(len(placement.home), bool)
    learning[turn.learners] = True
    plan.learns[:, number] = learning[placement.numbers]
    plan.position[:, number] = said[placement.numbers] % memory
    if placement.left:  # agents are cut only where all of them learn in every turn
        plan.work[:, number] = placement.work
        plan.pieces[:, number] = (placement.work[..., 2] > placement.work[..., 1]).sum(2)
    else:
        where = np.sort(placement.home[turn.learners])
        for device in range(devices):
            mine = where[where // slots == device] % slots
            plan.work[device, number, 0, : len(mine)] = np.stack(
                [mine, np.zeros_like(mine), np.full_like(mine, steps)], axis=1
            )
            plan.pieces[device, number, 0] = len(mine)
    # Every belief that somebody hears is sent once to all devices, by the device where its owner is at home.
    key = placement.home[turn.senders].astype(np.int64) * memory + (said[turn.senders] - turn.ages) % memory
    heard, entry = np.unique(key, return_inverse=True)
    owner = heard // (slots * memory)
    order = np.arange(len(heard)) - np.searchsorted(owner, owner)  # among those of the same device
    plan.speaking[owner, number, order] = heard % (slots * memory)
    row = (owner * plan.speaking.shape[2] + order)[entry]
    begin = np.searchsorted(turn.receivers, np.arange(len(placement.home) + 1))
    degree = np.diff(begin)
    for device, numbers in enumerate(placement.numbers):
        into = np.flatnonzero(degree[numbers] > 0)
        plan.hears[device, number, into] = True
        plan.hearing[device, number] = len(into)
        plan.hearers[device, number, : len(into)] = into
        edges = _ranges(begin[numbers[into]], degree[numbers[into]])
        ends = np.cumsum(degree[numbers[into]])
        plan.begins[device, number, 1 : len(into) + 1] = ends
        plan.begins[device, number, len(into) + 1 :] = ends[-1] if len(ends) else 0
        plan.receivers[device, number, : len(edges)] = np.repeat(into, degree[numbers[into]])
        plan.senders[device, number, : len(edges)] = row[edges]
        plan.weights[device, number, : len(edges)] = turn.weights[edges]


def _ranges(begin: Any, length: Any) -> Any:
    """begin[0] … begin[0] + length[0] − 1, begin[1] …, one after another."""
    total = int(length.sum())
    starts = np.cumsum(length) - length
    return np.arange(total) - np.repeat(starts, length) + np.repeat(begin, length)
