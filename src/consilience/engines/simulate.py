"""The engine `simulate`: all agents of a network, and all repetitions of it, in one jitted program over all devices.

The program runs on every device of a mesh, each with its own agents (see `placement`). What crosses devices is what
agents say to each other, and what is measured. What happens in a round is data (see `plan`): a round costs what those
cost that learn, speak and hear in it.
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
from consilience.engines.plan import Plan, plan_of
from consilience.network import Fixed, Network, Schedule
from consilience.network.schedule import IDLE, Turn

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
    data: arrays that draw and measure use; they are given to the program, not built into it.
    steps: how many steps an agent's learning takes in a round, where that is work enough for a core. Such agents are
    spread over all devices and on each device learn one after another, and `batch.between(first, last)` must be the
    batch of some of the steps; agents without steps are light and are computed together.
    """

    agent: Agent
    draw: Callable[[Data, PRNGKeyArray, Int[Array, ""]], Batch]
    hears: Network | Schedule
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
    ...     hears=star(3),
    ...     measure=lambda data, now, n, key: {"b": now.public.moments()[0]},
    ... )
    >>> simulation = Simulation(arm)
    >>> _, measured = simulation.play([0], 1, [5], [True], simulation.start([0]))
    >>> bool((measured["b"] > 0.99).all())
    True
    """

    def __init__(self, arm: Arm, devices: list[Any] | None = None) -> None:
        self.arm = arm
        self.schedule: Schedule = Fixed(arm.hears) if isinstance(arm.hears, Network) else arm.hears
        self.memory = self.schedule.most.age + 1
        together = isinstance(self.schedule, Fixed)
        self.placement = place(self.schedule.agents, arm.steps, devices, cut=together)
        self._data = self.placement.share(arm.data)
        self._numbers = self.placement.spread(jnp.asarray(self.placement.numbers.reshape(-1)))
        self._plans: dict[tuple[int, int], Plan] = {}
        self._said = np.zeros((1, self.schedule.agents), np.int64)  # after each turn so far, from turn 0
        self._play = self._on_every_device(partial(_play, arm, self.placement, self.schedule), donate=True)
        self._start = self._on_every_device(partial(_start, arm, self.memory))

    def start(self, seeds: Sequence[int]) -> Progress:
        """Every agent's initial state, in every repetition, before round 1, in the slots of this simulation."""
        progress: Progress = self._start(self._numbers, jnp.asarray(seeds))
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
        here = Here(self._numbers, self._plan(first, max(max(stops), first)))
        played: tuple[Progress, Metrics] = self._play(here, progress, self._data, *numbers)
        return played

    def _plan(self, first: int, last: int) -> Plan:
        """The turns of these rounds, laid out; a schedule that repeats is laid out once."""
        repeats = self.schedule.repeats
        begin, count = (1, repeats) if repeats else (first, 1 << (last - first).bit_length())
        if (begin, count) not in self._plans:
            turns = [self.schedule.turn(number) for number in range(begin, begin + count if repeats else last + 1)]
            said = self._counts(begin, turns)
            spare = count - len(turns)  # up to a power of two, for few compilations
            turns, said = turns + [IDLE] * spare, np.concatenate([said, np.repeat(said[-1:], spare, axis=0)])
            plan = plan_of(turns, self.placement, self.schedule.most, self.arm.steps or 1, said)
            self._plans = {(begin, count): self.placement.spread(jax.tree.map(jnp.asarray, plan))}
        return self._plans[begin, count]

    def _counts(self, begin: int, turns: Sequence[Turn]) -> Int[np.ndarray, "turns agents"]:
        """How often every agent has published by the end of these turns; counted only where older beliefs are heard."""
        if self.memory == 1:
            return np.zeros((len(turns), self.schedule.agents), np.int64)
        end = begin + len(turns)
        said = np.zeros((max(end, len(self._said)), self.schedule.agents), np.int64)
        said[: len(self._said)] = self._said
        for number in range(len(self._said), end):
            turn = turns[number - begin] if number >= begin else self.schedule.turn(number)
            said[number] = said[number - 1]
            said[number, turn.learners] += 1
        self._said = said
        return said[begin:end]

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
    """What a device knows of its own slots: the agents in them, and what they do in every turn."""

    numbers: Int[Array, "slots"]
    plan: Plan

    def turn(self, number: Int[Array, ""], first: Int[Array, ""], repeats: int | None) -> Any:
        """The plan of one round."""
        turns = self.plan.work.shape[1]
        place_ = (number - 1) % turns if repeats else number - first
        return jax.tree.map(lambda x: lax.dynamic_index_in_dim(x[0], place_, keepdims=False), self.plan)


def _start(arm: Arm, memory: int, numbers: Int[Array, "slots"], seeds: Int[Array, "seeds"]) -> Progress:
    def one_seed(seed: Int[Array, ""]) -> Progress:
        state = jax.vmap(lambda number: arm.agent.init(agent_key(round_key(seed, 0), number)))(numbers)
        public = jax.vmap(arm.agent.publish)(state)
        if memory == 1:
            return Progress(state, public)
        return Progress(state, public, jax.tree.map(lambda x: jnp.repeat(x[:, None], memory, axis=1), public))

    return jax.vmap(one_seed)(seeds)


def _play(
    arm: Arm,
    placement: Placement,
    schedule: Schedule,
    here: Here,
    progress: Progress,
    data: Data,
    seeds: Int[Array, "seeds"],
    first: Int[Array, ""],
    stops: Int[Array, "stops"],
    measured: Bool[Array, "stops"],
) -> tuple[Progress, Metrics]:
    """What every device does: all repetitions, from stop to stop, its own agents."""
    play_round = _play_heavy_round
    if arm.steps is None:
        play_round = partial(_play_light_round, everybody=isinstance(schedule, Fixed))

    def one_seed(seed: Int[Array, ""], progress: Progress) -> tuple[Progress, Metrics]:
        def measure(now: Progress, stop: Int[Array, ""]) -> Metrics:
            return _measure(arm, placement, here, data, measuring_key(round_key(seed, stop)), stop, now)

        def nothing(now: Progress, stop: Int[Array, ""]) -> Metrics:
            return {k: jnp.zeros(x.shape, x.dtype) for k, x in jax.eval_shape(measure, now, stop).items()}

        def one_round(number: Int[Array, ""], now: Progress) -> Progress:
            turn = here.turn(number, first, schedule.repeats)
            return play_round(arm, placement, here.numbers, turn, data, round_key(seed, number), now)

        def to_next_stop(carry: tuple[Any, Progress], each: tuple[Any, Any]) -> tuple[tuple[Any, Progress], Metrics]:
            (number, now), (stop, wanted) = carry, each
            now = lax.fori_loop(number, stop + 1, one_round, now)
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
        one, metrics = one_seed(seeds[0], jax.tree.map(lambda x: x.reshape(x.shape[1:]), progress))
        return jax.tree.map(lambda x: x[None], one), jax.tree.map(lambda x: x[:, None], metrics)
    shapes = jax.eval_shape(one_seed, seeds[0], jax.tree.map(lambda x: x[0], progress))[1]
    empty = jax.tree.map(lambda x: jnp.zeros((seeds.shape[0], *x.shape), x.dtype), shapes)
    progress, metrics = lax.fori_loop(0, seeds.shape[0], next_seed, (progress, empty))
    return progress, jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), metrics)


def _play_light_round(
    arm: Arm,
    placement: Placement,
    numbers: Int[Array, "slots"],
    turn: Any,
    data: Data,
    key: PRNGKeyArray,
    before: Progress,
    everybody: bool,
) -> Progress:
    """One round (Sec. 2.1) of agents that are computed all at once; who does not take part keeps what it has."""

    def learn(agent: Int[Array, ""], state: State) -> State:
        return arm.agent.learn(agent_key(key, agent), state, arm.draw(data, data_key(key), agent))[0]

    def where(mask: Bool[Array, "slots"], new: Any, old: Any) -> Any:
        if everybody:
            return new
        return jax.tree.map(lambda x, y: jnp.where(mask.reshape(-1, *(1,) * (x.ndim - 1)), x, y), new, old)

    state = where(turn.learns, jax.vmap(learn)(numbers, before.state), before.state)
    public = where(turn.learns, jax.vmap(arm.agent.publish)(state), before.public)
    said = before.said
    if said is not None:
        slots = jnp.arange(len(numbers))
        said = jax.tree.map(lambda x, new: x.at[slots, turn.position].set(new), said, public)
    heard = _from_all(placement, _spoken(public, said, turn.speaking))
    edges = Edges(turn.weights, turn.senders, turn.receivers, len(numbers))
    inbox = Inbox(pool(edges, heard))
    return Progress(where(turn.hears, jax.vmap(arm.agent.pool)(state, inbox), state), public, said)


def _play_heavy_round(
    arm: Arm,
    placement: Placement,
    numbers: Int[Array, "slots"],
    turn: Any,
    data: Data,
    key: PRNGKeyArray,
    before: Progress,
) -> Progress:
    """One round (Sec. 2.1) of agents that learn one after another, in place; the others are not touched."""

    def piece(half: int, number: Int[Array, ""], now: Progress) -> Progress:
        slot, first, last = turn.work[half, number]
        agent, state = numbers[slot], _row(now.state, slot)
        batch = arm.draw(data, data_key(key), agent).between(first, last)
        learnt, _ = arm.agent.learn(agent_key(key, agent), state, batch)
        now = now._replace(state=_with_row(now.state, learnt, slot, state))
        return now._replace(public=_with_row(now.public, arm.agent.publish(learnt), slot))

    def remember(number: Int[Array, ""], said: Any) -> Any:
        slot = turn.work[0, number, 0]

        def put(x: Array, new: Array) -> Array:
            its = lax.dynamic_update_index_in_dim(_row(x, slot), _row(new, slot), turn.position[slot], 0)
            return jnp.asarray(lax.dynamic_update_index_in_dim(x, its, slot, 0))

        return jax.tree.map(put, said, now.public)

    def hear(number: Int[Array, ""], states: State) -> State:
        slot, begin, end = turn.hearers[number], turn.begins[number], turn.begins[number + 1]

        def add(edge: Int[Array, ""], total: Any) -> Any:
            weight, belief = turn.weights[edge], _row(heard, turn.senders[edge])
            return jax.tree.map(lambda x, eta: x + weight.astype(eta.dtype) * eta, total, belief)

        nothing = jax.tree.map(lambda x: jnp.zeros(x.shape[1:], x.dtype), heard)
        inbox = Inbox(lax.fori_loop(begin, end, add, nothing))
        state = _row(states, slot)
        return _with_row(states, arm.agent.pool(state, inbox), slot, state)

    now = lax.fori_loop(0, turn.pieces[0], partial(piece, 0), before)
    if placement.left:
        now = now._replace(state=_move(placement, now.state, from_first=True))
        now = lax.fori_loop(0, turn.pieces[1], partial(piece, 1), now)
        now = now._replace(state=_move(placement, now.state, from_first=False))
    if now.said is not None:
        now = now._replace(said=lax.fori_loop(0, turn.pieces[0], remember, now.said))
    heard = _from_all(placement, _spoken(now.public, now.said, turn.speaking))
    return Progress(lax.fori_loop(0, turn.hearing, hear, now.state), now.public, now.said)


def _spoken(public: Message, said: Message | None, speaking: Int[Array, "speaking"]) -> Message:
    """The beliefs that are heard in a turn: the newest, or older ones from what was said."""
    if said is None:
        return jax.tree.map(lambda x: x[speaking], public)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[speaking], said)


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
