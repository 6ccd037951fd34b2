"""The engine `simulate`: all agents of a network, and all repetitions of it, in one jitted program over all devices.

The program runs on every device of a mesh, each with its own agents (see `placement`). What crosses devices is what
agents say to each other, and what is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from consilience.agent import Agent, Batch, Inbox, Message, State
from consilience.beliefs import Edges, pool
from consilience.engines.placement import AXIS, Placement, place

Metrics: TypeAlias = dict[str, Array]
Data: TypeAlias = Any


class Progress(NamedTuple):
    """Where an arm stands: every agent's state and last public belief, with leading axes (seeds, agents)."""

    state: State
    public: Message


class Arm(NamedTuple):
    """One arm of an experiment: who learns, from what, hearing whom, and what is measured.

    draw(data, round key, agent number) -> batch: an agent's private data of a round; `agent_key` makes its own key.
    measure(data, progress, round, key) -> {name: value}: of one agent of one repetition.
    compare(measured) -> {name: one value an agent}: what takes all agents, from what was measured of each.
    data: arrays that draw and measure use; they are given to the program, not built into it.
    steps: how many steps an agent's learning takes in a round, where that is work enough for a core. Such agents are
    spread over all devices and on each device learn one after another, and `batch.between(first, last)` must be the
    batch of some of the steps; agents without steps are light and are computed together.
    """

    agent: Agent
    draw: Callable[[Data, PRNGKeyArray, Int[Array, ""]], Batch]
    hears: Edges
    measure: Callable[[Data, Progress, Int[Array, ""], PRNGKeyArray], Metrics]
    compare: Callable[[Metrics], Metrics] = lambda measured: measured
    data: Data = ()
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


class Simulation:
    """An arm on the devices there are.

    >>> import numpy as np
    >>> from consilience.beliefs import Categorical
    >>> from consilience.learners import exact
    >>> from consilience.network import star
    >>> logs = jnp.log(jnp.array([[0.5, 0.5], [0.9, 0.1]]))  # of two outcomes under two hypotheses
    >>> arm = Arm(
    ...     exact(Categorical.uniform(2), lambda outcome: logs[:, outcome]),
    ...     draw=lambda data, key, agent: jnp.array(1),
    ...     hears=star(3).to_edges(),
    ...     measure=lambda data, now, n, key: {"b": now.public.probabilities()[0]},
    ... )
    >>> simulation = Simulation(arm)
    >>> _, measured = simulation.play([0], 1, [5], [True], simulation.start([0]))
    >>> bool((measured["b"] > 0.99).all())
    True
    """

    def __init__(self, arm: Arm, devices: list[Any] | None = None) -> None:
        self.arm = arm
        self.placement = place(arm.hears.agents, arm.steps, devices)
        self._data = self.placement.share(arm.data)
        self._here = self.placement.spread(_here(self.placement, arm.hears))
        self._play = self._on_every_device(partial(_play, arm, self.placement), donate=True)
        self._start = self._on_every_device(partial(_start, arm))

    def start(self, seeds: Sequence[int]) -> Progress:
        """Every agent's initial state, in every repetition, before round 1, in the slots of this simulation."""
        progress: Progress = self._start(self._here, jnp.asarray(seeds))
        return progress

    def play(
        self, seeds: Sequence[int], first: int, stops: Sequence[int], measured: Sequence[bool], progress: Progress
    ) -> tuple[Progress, Metrics]:
        """Play round `first`, then on to each round in `stops`; measure at those where `measured` is true.

        Metrics come back with axes (stops, seeds, agents), zeros where nothing was measured. The stops are data, not
        program: other rounds do not compile again, only another number of them does. A stop that is not ahead
        (padding) plays nothing. The progress given is used up.
        """
        numbers = jnp.asarray(seeds), jnp.asarray(first), jnp.asarray(stops), jnp.asarray(measured)
        played: tuple[Progress, Metrics] = self._play(self._here, progress, self._data, *numbers)
        return played

    def agents(self, progress: Progress) -> Progress:
        """The progress with one row an agent, in order, as NumPy arrays."""
        ordered: Progress = jax.tree.map(lambda x: np.asarray(x)[:, self.placement.home], progress)
        return ordered

    def slots(self, progress: Progress) -> Progress:
        """The opposite: progress with one row an agent, put into the slots of this simulation."""
        numbers = self.placement.numbers.reshape(-1)
        rows: Progress = jax.tree.map(lambda x: np.asarray(x)[:, numbers], progress)
        return self.placement.spread(rows, leading=1)

    def _on_every_device(self, f: Callable[..., Any], donate: bool = False) -> Callable[..., Any]:
        """f as one program: its first argument has rows for slots, progress has them after the seeds, all else none."""
        rows, progress, whole = PartitionSpec(AXIS), PartitionSpec(None, AXIS), PartitionSpec()

        def program(here: Any, *others: Any) -> Any:
            kinds = (progress, *(whole,) * (len(others) - 1)) if donate else (whole,) * len(others)
            spread: Callable[..., Any] = jax.shard_map(
                f,
                mesh=self.placement.mesh,
                in_specs=(rows, *kinds),
                out_specs=(progress, whole) if donate else progress,
                check_vma=False,
            )
            return spread(here, *others)

        return jax.jit(program, donate_argnums=1 if donate else (), compiler_options=_compiler_options())


class Here(NamedTuple):
    """What a device knows of its own slots: the agents in them, whom they hear, and the work of a round."""

    numbers: Int[Array, "slots"]
    hears: Edges
    work: Int[Array, "device halves pieces span"]


def _here(placement: Placement, hears: Edges) -> Here:
    return Here(jnp.asarray(placement.numbers.reshape(-1)), placement.edges(hears), jnp.asarray(placement.work))


def _start(arm: Arm, here: Here, seeds: Int[Array, "seeds"]) -> Progress:
    def one_seed(seed: Int[Array, ""]) -> Progress:
        state = jax.vmap(lambda number: arm.agent.init(agent_key(round_key(seed, 0), number)))(here.numbers)
        return Progress(state, jax.vmap(arm.agent.publish)(state))

    return jax.vmap(one_seed)(seeds)


def _play(
    arm: Arm,
    placement: Placement,
    here: Here,
    progress: Progress,
    data: Data,
    seeds: Int[Array, "seeds"],
    first: Int[Array, ""],
    stops: Int[Array, "stops"],
    measured: Bool[Array, "stops"],
) -> tuple[Progress, Metrics]:
    """What every device does: all repetitions, from stop to stop, its own agents."""

    def one_seed(seed: Int[Array, ""], progress: Progress) -> tuple[Progress, Metrics]:
        def measure(now: Progress, stop: Int[Array, ""]) -> Metrics:
            return _measure(arm, placement, here, data, measuring_key(round_key(seed, stop)), stop, now)

        def nothing(now: Progress, stop: Int[Array, ""]) -> Metrics:
            return {k: jnp.zeros(x.shape, x.dtype) for k, x in jax.eval_shape(measure, now, stop).items()}

        def to_next_stop(carry: tuple[Any, Progress], each: tuple[Any, Any]) -> tuple[tuple[Any, Progress], Metrics]:
            (number, now), (stop, wanted) = carry, each
            play_round = partial(_play_round, arm, placement, here, data, seed)
            now = lax.fori_loop(number, stop + 1, play_round, now)
            return (jnp.maximum(number, stop + 1), now), lax.cond(wanted, measure, nothing, now, stop)

        (_, progress), metrics = lax.scan(to_next_stop, (first, progress), (stops, measured))
        return progress, metrics

    if arm.steps is None:
        played: tuple[Progress, Metrics] = jax.vmap(one_seed, out_axes=(0, 1))(seeds, progress)
        return played

    def next_seed(number: Int[Array, ""], carry: tuple[Progress, Metrics]) -> tuple[Progress, Metrics]:
        progress, metrics = carry
        one, its_metrics = one_seed(seeds[number], _row(progress, number))
        return _with_row(progress, one, number), _with_row(metrics, its_metrics, number)

    if seeds.shape[0] == 1:  # no slicing of states in and out
        one, metrics = one_seed(seeds[0], jax.tree.map(lambda x: x[0], progress))
        return jax.tree.map(lambda x: x[None], one), jax.tree.map(lambda x: x[:, None], metrics)
    shapes = jax.eval_shape(one_seed, seeds[0], jax.tree.map(lambda x: x[0], progress))[1]
    empty = jax.tree.map(lambda x: jnp.zeros((seeds.shape[0], *x.shape), x.dtype), shapes)
    progress, metrics = lax.fori_loop(0, seeds.shape[0], next_seed, (progress, empty))
    return progress, jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), metrics)


def _play_round(
    arm: Arm,
    placement: Placement,
    here: Here,
    data: Data,
    seed: Int[Array, ""],
    number: Int[Array, ""],
    before: Progress,
) -> Progress:
    """One round of every agent: draw, learn, publish, hear, pool (Sec. 2.1)."""
    key = round_key(seed, number)

    def learn(agent: Int[Array, ""], state: State, span: tuple[Any, Any] | None = None) -> State:
        batch = arm.draw(data, data_key(key), agent)
        return arm.agent.learn(agent_key(key, agent), state, batch.between(*span) if span else batch)[0]

    state = before.state
    if arm.steps is None:
        state = jax.vmap(learn)(here.numbers, state)
    else:
        state = _one_after_another(learn, here, 0, state)
        state = _move(placement, state, from_first=True)
        state = _one_after_another(learn, here, 1, state)
        state = _move(placement, state, from_first=False)
    public = jax.vmap(arm.agent.publish)(state)
    inbox = Inbox(pool(here.hears, _from_all(placement, public)))
    return Progress(jax.vmap(arm.agent.pool)(state, inbox), public)


def _one_after_another(learn: Callable[..., State], here: Here, half: int, states: State) -> State:
    """A device's work in one half of a round, piece by piece, in place."""

    def piece(number: Int[Array, ""], states: State) -> State:
        slot, first, last = here.work[0, half, number]

        def do(states: State) -> State:
            before = _row(states, slot)
            return _with_row(states, learn(here.numbers[slot], before, (first, last)), slot, before)

        return lax.cond(last > first, do, lambda states: states, states)

    return lax.fori_loop(0, here.work.shape[2], piece, states)


def _move(placement: Placement, states: State, from_first: bool) -> State:
    """Hand cut agents over: from a device's first slot to the last slot of the one before, or back."""
    if not placement.left:
        return states
    pairs = [(device, device - 1) if from_first else (device - 1, device) for device in placement.left]
    source, target = (0, -1) if from_first else (-1, 0)
    takes = jnp.isin(lax.axis_index(AXIS), jnp.array([to for _, to in pairs]))

    def handed(x: Array) -> Array:
        return x.at[target].set(jnp.where(takes, lax.ppermute(x[source], AXIS, pairs), x[target]))

    return jax.tree.map(handed, states)


def _measure(
    arm: Arm,
    placement: Placement,
    here: Here,
    data: Data,
    key: PRNGKeyArray,
    number: Int[Array, ""],
    progress: Progress,
) -> Metrics:
    def one(agent: Int[Array, ""], its: Progress) -> Metrics:
        return arm.measure(data, its, number, agent_key(key, agent))

    if arm.steps is None:
        mine = jax.vmap(one)(here.numbers, progress)
    else:
        mine = lax.map(lambda each: one(*each), (here.numbers, progress))
    return arm.compare(jax.tree.map(lambda x: x[placement.home], _from_all(placement, mine)))


def _from_all(placement: Placement, tree: Any) -> Any:
    """The slots of all devices, on every device."""
    if placement.mesh.size == 1:
        return tree
    return jax.tree.map(lambda x: lax.all_gather(x, AXIS, tiled=True), tree)


def _row(tree: Any, number: Any) -> Any:
    return jax.tree.map(lambda x: lax.dynamic_index_in_dim(x, number, keepdims=False), tree)


def _with_row(tree: Any, row: Any, number: Any, before: Any = None) -> Any:
    """The tree with this row; what is the very array that was there before (a prior, unchanged) is not written."""

    def put(x: Array, new: Array, old: Array | None) -> Array:
        return x if new is old else lax.dynamic_update_index_in_dim(x, new, number, 0)

    if before is None:
        return jax.tree.map(partial(put, old=None), tree, row)
    return jax.tree.map(put, tree, row, before)


def _compiler_options() -> dict[str, Any]:
    """Full width vectors: XLA prefers half of what AVX-512 has, a fifth slower for the variational step."""
    return {"xla_cpu_prefer_vector_width": 512} if jax.default_backend() == "cpu" else {}
