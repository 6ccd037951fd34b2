"""The engine `simulate`: all agents of a network, and all repetitions of it, in one jitted program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Key, PRNGKeyArray

from consilience.agent import Agent, Batch, Inbox, Message, State
from consilience.beliefs import Edges, pool

Metrics: TypeAlias = dict[str, Array]


class Arm(NamedTuple):
    """One arm of an experiment: who learns, from what, hearing whom, and what is measured.

    draw(round key, agent number) -> batch: the agent's private data of a round; `agent_key` makes the agent's own key.
    measure(messages, round) -> {name: one value an agent}: from the public beliefs b_i, stacked along the agents.
    """

    agent: Agent
    draw: Callable[[PRNGKeyArray, Int[Array, ""]], Batch]
    hears: Edges
    measure: Callable[[Message, Int[Array, ""]], Metrics]


class Progress(NamedTuple):
    """Where an arm stands: every agent's state and last public belief, with leading axes (seeds, agents)."""

    state: State
    public: Message


def start(arm: Arm, seeds: Sequence[int]) -> Progress:
    """Every agent's initial state, in every repetition, before round 1."""

    @jax.jit
    def initialise(seeds: Int[Array, seeds]) -> Progress:
        def one_seed(seed: Int[Array, ""]) -> Progress:
            state = jax.vmap(arm.agent.init)(_agent_keys(round_key(seed, 0), arm))
            return Progress(state, jax.vmap(arm.agent.publish)(state))

        return jax.vmap(one_seed)(seeds)

    progress: Progress = initialise(jnp.asarray(seeds))
    return progress


def round_key(seed: int | Int[Array, ""], number: int | Int[Array, ""]) -> PRNGKeyArray:
    """The key of a round, from which everything random in it follows, in every engine."""
    return jax.random.fold_in(jax.random.key(seed), number)


def agent_key(key: PRNGKeyArray, agent: int | Int[Array, ""]) -> PRNGKeyArray:
    """An agent's own key in a round: fold(seed, round, agent)."""
    return jax.random.fold_in(key, agent)


def data_key(key: PRNGKeyArray) -> PRNGKeyArray:
    """The round key for drawing data; its number is beyond every agent's, so learning never sees the same stream."""
    return jax.random.fold_in(key, 2**32 - 1)


def play_round(arm: Arm, seed: Int[Array, ""], number: Int[Array, ""], before: Progress) -> Progress:
    """One round of every agent: draw, learn, publish, hear, pool (Sec. 2.1)."""
    key = round_key(seed, number)
    batches = jax.vmap(arm.draw, in_axes=(None, 0))(data_key(key), jnp.arange(arm.hears.agents))
    state, _ = jax.vmap(arm.agent.learn)(_agent_keys(key, arm), before.state, batches)
    public = jax.vmap(arm.agent.publish)(state)
    inbox = Inbox(pool(arm.hears, public))
    return Progress(jax.vmap(arm.agent.pool)(state, inbox), public)


def _agent_keys(key: PRNGKeyArray, arm: Arm) -> Key[Array, agents]:
    return jax.vmap(partial(agent_key, key))(jnp.arange(arm.hears.agents))


def play(arm: Arm) -> Callable[[Any, Any, Any, Progress], tuple[Progress, Metrics]]:
    """A jitted function (seeds, first, stops, progress) -> progress, metrics that plays on and measures at every stop.

    It plays round `first`, then on to each round in `stops`. Metrics come back with axes (stops, seeds, agents).
    The stops are data, not program: other rounds do not compile again, only another number of them does. A stop that is
    not ahead (padding) plays nothing.
    """

    def one_seed(
        seed: Int[Array, ""], first: Int[Array, ""], stops: Int[Array, stops], progress: Progress
    ) -> tuple[Progress, Metrics]:
        def to_next_stop(carry: tuple[Any, Progress], stop: Int[Array, ""]) -> tuple[tuple[Any, Progress], Metrics]:
            number, now = carry
            now = jax.lax.fori_loop(number, stop + 1, partial(play_round, arm, seed), now)
            return (jnp.maximum(number, stop + 1), now), arm.measure(now.public, stop)

        (_, progress), metrics = jax.lax.scan(to_next_stop, (first, progress), stops)
        return progress, metrics

    @partial(jax.jit, donate_argnums=3)
    def all_seeds(
        seeds: Int[Array, seeds], first: Int[Array, ""], stops: Int[Array, stops], progress: Progress
    ) -> tuple[Progress, Metrics]:
        return jax.vmap(one_seed, in_axes=(0, None, None, 0), out_axes=(0, 1))(seeds, first, stops, progress)

    return all_seeds
