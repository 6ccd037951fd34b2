"""What an engine runs: an arm of an experiment, where it stands, and the keys from which everything random follows.

The law of keys: no two purposes draw bits from the same key, and bits are drawn from leaves only, never from a key from
which others are made. A round's key and its data and measuring keys are never drawn from, only what is folded into
them: agents, then epochs, steps, samples. This matters because JAX splits as it folds, split(key)[i] = fold_in(key, i):
a model's initial weights, made from the seed's key layer by layer, come from keys that are round keys as well. They are
the one exception to leaves, and the law is why no bit of theirs is ever drawn again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import jax
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray

from consilience.agent import Agent, Batch, Message, State
from consilience.machine import memory
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
    of_agent(data, number) -> the data as measure of the agent with this number sees it, where agents are judged by
    examples of their own.
    begins_with(seeds) -> what all agents of a repetition share at the start, given to `agent.init`, with a leading axis
    for the seeds; where there is none, init is given the agent's own key, fold(seed, 0, agent).
    steps: how many steps an agent's learning takes in a round, at most, where that is work enough for a core. Such
    agents are spread over all devices and on each device learn one after another; `batch.steps` must be how many it is
    and `batch.between(first, last)` the batch of some of them. Agents without steps are light and computed together.
    work: how much each agent with steps has to do in a round, relative to the others, such as its own number of steps;
    the same for all where nothing is said. By it agents are laid out over the devices, and where one is cut its numbers
    may round otherwise. So it must not depend on which seeds are played; `batch.steps` may. It may be 0.
    messages(rounds) -> how many messages agents send each other in each of so many rounds, each what one publishes;
    where that is told.
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
    work: Sequence[float] | None = None
    of_agent: Callable[[Data, Int[Array, ""]], Data] = lambda data, number: data
    messages: Callable[[int], Int[np.ndarray, "rounds"]] | None = None


@runtime_checkable
class Playing(Protocol):
    """An arm in the hands of an engine, with its seeds: what a run needs to begin, go on, save and take up again."""

    arm: Arm
    schedule: Schedule

    def start(self) -> Progress:
        """Everybody's state before round 1."""
        ...

    def play(
        self, first: int, stops: Sequence[int], measured: Sequence[bool], progress: Progress
    ) -> tuple[Progress, dict[str, np.ndarray]]:
        """Play on from round `first` to each of the stops; what was measured has axes (stops, seeds, agents)."""
        ...

    def shapes(self) -> Progress:
        """Shapes and types of what `agents` gives."""
        ...

    def agents(self, progress: Any) -> Any:
        """The progress, or any array of it, with one row an agent, in order."""
        ...

    def slots(self, progress: Any) -> Any:
        """The opposite."""
        ...


Engine: TypeAlias = Callable[[Arm, Sequence[int]], Playing]


def start_key(seed: int | Int[Array, ""]) -> PRNGKeyArray:
    """The key of a repetition's start, for what all its agents begin with.

    Its children by `split` are the keys of rounds, from which no numbers are drawn, only from their descendants.
    """
    return jax.random.key(seed)


def require_memory(arms: Mapping[str, Arm], replicates: int, hosts: int = 1) -> None:
    """Refuse arms whose agents do not fit into the memory of this host, one of several that share them."""
    sizes = {name: state_bytes(arm, replicates) / hosts for name, arm in arms.items()}
    largest = max(sizes, key=lambda name: sizes[name])
    agents = f"{arms[largest].hears.agents:,} agents × {replicates:,} replicates"
    memory.require(sum(sizes.values()), f"run: {agents} (arm '{largest}')")


def state_bytes(arm: Arm, replicates: int) -> float:
    """Bytes that an arm takes while it is played: states, public beliefs, older ones where they can be heard.

    Light agents are computed together: beside the old states there are the new ones, and everybody's data of a round.
    """
    key, number = jax.eval_shape(lambda: jax.random.key(0)), jax.ShapeDtypeStruct((), np.int32)
    older = 0 if isinstance(arm.hears, Network) else arm.hears.most.age
    an_agent = _bytes(state_shapes(arm)) + message_bytes(arm) * (1 + (older + 1 if older else 0))
    if arm.steps is None:
        an_agent = 2 * an_agent + _bytes(jax.eval_shape(partial(arm.draw, ()), key, number))
    return float(arm.hears.agents) * replicates * an_agent


def message_bytes(arm: Arm) -> int:
    """Bytes of one message: what an agent publishes."""
    return _bytes(jax.eval_shape(arm.agent.publish, state_shapes(arm)))


def state_shapes(arm: Arm) -> State:
    """The shapes and types of one agent's state."""
    given = start_key(0) if arm.begins_with is None else jax.tree.map(lambda x: x[0], arm.begins_with([0]))
    return jax.eval_shape(arm.agent.init, given)


def _bytes(shapes: Any) -> int:
    return sum(math.prod(x.shape) * x.dtype.itemsize for x in jax.tree.leaves(shapes))


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
