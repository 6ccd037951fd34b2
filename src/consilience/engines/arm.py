"""What an engine runs: an arm of an experiment, where it stands, and the keys from which everything random follows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray

from consilience.agent import Agent, Batch, Message, State
from consilience.network import Network, Schedule

Metrics: TypeAlias = dict[str, Array]
Data: TypeAlias = Any


class Progress(NamedTuple):
    """Where an arm stands: every agent's state and last public belief, with leading axes (seeds, agents).

    Where older beliefs can be heard (`Asynchronous`), `said` is each agent's last few, with one more axis; else None.
    """

    state: State
    public: Message
    said: Message | None = None


class Arm(NamedTuple):
    """One arm of an experiment: who learns, from what, hearing whom, and what is measured.

    draw(data, round key, agent number) -> batch: an agent's private data of a round; `agent_key` makes its own key.
    hears: a network, the same in every round, or a schedule.
    measure(data, progress, round, key) -> {name: value}: of one agent of one repetition.
    compare(measured) -> {name: one value an agent}: what takes all agents, from what was measured of each.
    data(agents, seeds) -> arrays that draw and measure use, on the host that has these agents: each host loads its own.
    They are given to the program, not built into it.
    of_repetition(data, number) -> the data as draw and measure of the repetition with this number among the seeds see
    it, where repetitions differ in who holds what.
    begins_with(seeds) -> what all agents of a repetition share at the start, given to `agent.init`, with a leading axis
    for the seeds; where there is none, init is given the repetition's key.
    steps: how many steps an agent's learning takes in a round, where that is work enough for a core. Such agents are
    spread over all devices and on each device learn one after another, and `batch.between(first, last)` must be the
    batch of some of the steps; agents without steps are light and are computed together.
    """

    agent: Agent
    draw: Callable[[Data, PRNGKeyArray, Int[Array, ""]], Batch]
    hears: Network | Schedule
    measure: Callable[[Data, Progress, Int[Array, ""], PRNGKeyArray], Metrics]
    compare: Callable[[Metrics], Metrics] = lambda measured: measured
    data: Callable[[Int[np.ndarray, "agents"], Sequence[int]], Data] = lambda agents, seeds: ()
    steps: int | None = None
    of_repetition: Callable[[Data, Int[Array, ""]], Data] = lambda data, number: data
    begins_with: Callable[[Sequence[int]], Any] | None = None


def start_key(seed: int | Int[Array, ""]) -> PRNGKeyArray:
    """The key of a repetition's start: the same for all its agents, so that what they begin with is shared.

    Its children by `split` are the keys of rounds, from which no numbers are drawn, only from their descendants.
    """
    return jax.random.key(seed)


def round_key(seed: int | Int[Array, ""], number: int | Int[Array, ""]) -> PRNGKeyArray:
    """The key of a round, from which everything random in it follows, in every engine."""
    return jax.random.fold_in(jax.random.key(seed), number)


def agent_key(key: PRNGKeyArray, agent: int | Int[Array, ""]) -> PRNGKeyArray:
    """An agent's own key in a round: fold(seed, round, agent)."""
    return jax.random.fold_in(key, agent)


def data_key(key: PRNGKeyArray) -> PRNGKeyArray:
    """The round key for drawing data; its number is beyond every agent's, so learning never sees the same stream."""
    return jax.random.fold_in(key, 2**32 - 1)


def measuring_key(key: PRNGKeyArray) -> PRNGKeyArray:
    """The round key for Monte Carlo estimates of what is measured."""
    return jax.random.fold_in(key, 2**32 - 2)
