"""The engine `simulate`: all agents of a network, and all repetitions of it, in one jitted program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, PartitionSpec
from jaxtyping import Array, Bool, Int, Key, PRNGKeyArray

from consilience.agent import Agent, Batch, Inbox, Message, State
from consilience.beliefs import Edges, pool

Metrics: TypeAlias = dict[str, Array]
Data: TypeAlias = Any
AXIS = "agents"


class Progress(NamedTuple):
    """Where an arm stands: every agent's state and last public belief, with leading axes (seeds, agents)."""

    state: State
    public: Message


class Arm(NamedTuple):
    """One arm of an experiment: who learns, from what, hearing whom, and what is measured.

    draw(data, round key, agent number) -> batch: an agent's private data of a round; `agent_key` makes its own key.
    measure(data, progress, round, key) -> {name: one value an agent}: of one repetition, stacked along the agents.
    data: arrays that both use; they are given to the program, not built into it.
    heavy: an agent's step is work enough for a core. Such agents are spread over all devices and on each device learn
    one after another; light ones are computed together.
    """

    agent: Agent
    draw: Callable[[Data, PRNGKeyArray, Int[Array, ""]], Batch]
    hears: Edges
    measure: Callable[[Data, Progress, Int[Array, ""], PRNGKeyArray], Metrics]
    data: Data = ()
    heavy: bool = False


def start(arm: Arm, seeds: Sequence[int]) -> Progress:
    """Every agent's initial state, in every repetition, before round 1."""

    @jax.jit
    def initialise(seeds: Int[Array, "seeds"]) -> Progress:
        def one_seed(seed: Int[Array, ""]) -> Progress:
            state = jax.vmap(arm.agent.init)(_agent_keys(round_key(seed, 0), arm.hears.agents))
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


def measuring_key(key: PRNGKeyArray) -> PRNGKeyArray:
    """The round key for Monte Carlo estimates of what is measured."""
    return jax.random.fold_in(key, 2**32 - 2)


def play_round(arm: Arm, data: Data, seed: Int[Array, ""], number: Int[Array, ""], before: Progress) -> Progress:
    """One round of every agent: draw, learn, publish, hear, pool (Sec. 2.1)."""
    agents = arm.hears.agents
    key = round_key(seed, number)
    batches = jax.vmap(partial(arm.draw, data, data_key(key)))(jnp.arange(agents))
    state, _ = each_agent(arm.agent.learn, arm.heavy, _agent_keys(key, agents), before.state, batches)
    public = jax.vmap(arm.agent.publish)(state)
    inbox = Inbox(pool(arm.hears, public))
    return Progress(jax.vmap(arm.agent.pool)(state, inbox), public)


def each_agent(f: Callable[..., Any], heavy: bool, *stacked: Any) -> Any:
    """f applied to every agent's slice of the arguments, and the results stacked.

    Heavy work is spread over the mesh of all devices (cores, GPUs), one agent at a time on each. Where the agents do
    not divide evenly, some are computed twice and the copies dropped.
    """
    if not heavy:
        return jax.vmap(f)(*stacked)
    agents = jax.tree.leaves(stacked)[0].shape[0]
    devices = min(jax.device_count(), agents)
    spare = -agents % devices
    mesh = jax.make_mesh((devices,), (AXIS,), axis_types=(AxisType.Auto,), devices=jax.devices()[:devices])
    padded = jax.tree.map(lambda x: jnp.concatenate([x, x[:spare]]) if spare else x, stacked)
    spread: Callable[..., Any] = jax.shard_map(
        lambda *mine: jax.lax.map(lambda one: f(*one), mine),
        mesh=mesh,
        in_specs=PartitionSpec(AXIS),
        out_specs=PartitionSpec(AXIS),
        check_vma=False,
    )
    results: Any = spread(*padded)
    return jax.tree.map(lambda x: x[:agents], results)


def play(arm: Arm) -> Callable[[Any, Any, Any, Any, Progress], tuple[Progress, Metrics]]:
    """A jitted function (seeds, first, stops, measured, progress) -> progress, metrics that plays on from stop to stop.

    It plays round `first`, then on to each round in `stops`, and measures at those where `measured` is true (the others
    give zeros). Metrics come back with axes (stops, seeds, agents). The stops are data, not program: other rounds do
    not compile again, only another number of them does. A stop that is not ahead (padding) plays nothing.
    """

    def one_seed(
        data: Data,
        first: Int[Array, ""],
        stops: Int[Array, "stops"],
        measured: Bool[Array, "stops"],
        seed: Int[Array, ""],
        progress: Progress,
    ) -> tuple[Progress, Metrics]:
        def measure(now: Progress, stop: Int[Array, ""]) -> Metrics:
            return arm.measure(data, now, stop, measuring_key(round_key(seed, stop)))

        def nothing(now: Progress, stop: Int[Array, ""]) -> Metrics:
            return {k: jnp.zeros(x.shape, x.dtype) for k, x in jax.eval_shape(measure, now, stop).items()}

        def to_next_stop(carry: tuple[Any, Progress], each: tuple[Any, Any]) -> tuple[tuple[Any, Progress], Metrics]:
            (number, now), (stop, wanted) = carry, each
            now = jax.lax.fori_loop(number, stop + 1, partial(play_round, arm, data, seed), now)
            return (jnp.maximum(number, stop + 1), now), jax.lax.cond(wanted, measure, nothing, now, stop)

        (_, progress), metrics = jax.lax.scan(to_next_stop, (first, progress), (stops, measured))
        return progress, metrics

    @partial(jax.jit, donate_argnums=5, compiler_options=_compiler_options())
    def all_seeds(
        data: Data,
        seeds: Int[Array, "seeds"],
        first: Int[Array, ""] | int,
        stops: Int[Array, "stops"],
        measured: Bool[Array, "stops"],
        progress: Progress,
    ) -> tuple[Progress, Metrics]:
        play_one = partial(one_seed, data, jnp.asarray(first), stops, measured)
        if not arm.heavy:
            return jax.vmap(play_one, out_axes=(0, 1))(seeds, progress)
        progress, metrics = jax.lax.map(lambda each: play_one(*each), (seeds, progress))
        return progress, jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), metrics)

    return partial(all_seeds, arm.data)


def _agent_keys(key: PRNGKeyArray, agents: int) -> Key[Array, "agents"]:
    return jax.vmap(partial(agent_key, key))(jnp.arange(agents))


def _compiler_options() -> dict[str, Any]:
    """Full width vectors: XLA prefers half of what AVX-512 has, a fifth slower for the variational step."""
    return {"xla_cpu_prefer_vector_width": 512} if jax.default_backend() == "cpu" else {}
