"""What an engine runs: an arm of an experiment, where it stands, and the keys from which everything random follows.

The law of keys: no two purposes draw bits from the same key, and bits are drawn from leaves only, never from a key from
which others are made. A round's key and its data and measuring keys are never drawn from, only what is folded into
them: agents, then epochs, steps, samples. This matters because JAX splits as it folds, split(key)[i] = fold_in(key, i):
a model's initial weights, made from the seed's key layer by layer, come from keys that are round keys as well. They are
the one exception to leaves, and the law is why no bit of theirs is ever drawn again.
"""

from __future__ import annotations

from collections.abc import Callable
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
    data(agents) -> arrays that draw and measure use, on the host that has these agents: each host loads its own. They
    are given to the program, not built into it.
    steps: how many steps an agent's learning takes in a round, where that is work enough for a core. Such agents are
    spread over all devices and on each device learn one after another, and `batch.between(first, last)` must be the
    batch of some of the steps; agents without steps are light and are computed together.
    """

    agent: Agent
    draw: Callable[[Data, PRNGKeyArray, Int[Array, ""]], Batch]
    hears: Network | Schedule
    measure: Callable[[Data, Progress, Int[Array, ""], PRNGKeyArray], Metrics]
    compare: Callable[[Metrics], Metrics] = lambda measured: measured
    data: Callable[[Int[np.ndarray, "agents"]], Data] = lambda agents: ()
    steps: int | None = None


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
