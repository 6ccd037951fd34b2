"""The engine `simulate`: all agents of a network, and all repetitions of it, in one jitted program over all devices.

The program runs on every device of a mesh, on one host or many, each with its own agents (see `placement`). What
crosses devices is what agents say to each other, and what is measured. What happens in a round is data (see `plan`): a
round costs what those cost that learn, speak and hear in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from consilience.engines.arm import Arm, Data, Metrics, Progress, agent_key, measuring_key, round_key
from consilience.engines.simulate.lanes import lanes_of, width_for
from consilience.engines.simulate.placement import AXIS, PARTS, Placement, place
from consilience.engines.simulate.plan import Plan, plan_of
from consilience.engines.simulate.rounds import Round, from_all, play_heavy, play_light, row, with_row
from consilience.machine.compiling import compiler_options
from consilience.network import IDLE, Fixed, Network, Schedule, Turn
from consilience.network.schedule import everybody_acts

ROWS, PROGRESS, WHOLE = PartitionSpec(AXIS), PartitionSpec(None, AXIS), PartitionSpec()  # where slots are in arrays


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
    >>> simulation = Simulation(arm, seeds=[0])
    >>> _, measured = simulation.play(1, [5], [True], simulation.start())
    >>> bool((measured["b"] > 0.99).all())
    True
    """

    def __init__(self, arm: Arm, seeds: Sequence[int] = (0,), devices: list[Any] | None = None) -> None:
        self.arm = arm
        self.schedule: Schedule = Fixed(arm.hears) if isinstance(arm.hears, Network) else arm.hears
        self.memory = self.schedule.most.age + 1
        together = everybody_acts(self.schedule)
        self._parts = PARTS if arm.steps is not None else None
        self.placement = place(self.schedule.agents, self._parts, devices, cut=together, work=arm.work)
        self._width = width_for(arm, self.schedule.agents)
        self._seed(seeds)
        self._numbers: Any = self.placement.spread(self.placement.numbers.reshape(-1))
        self._plans: dict[tuple[int, int], Plan] = {}
        self._said = np.zeros((1, self.schedule.agents), np.int64)  # after each turn so far, from turn 0
        self._start = self._program(partial(_start, arm, self.memory), (ROWS, WHOLE), PROGRESS)
        self._play = self._program(
            partial(_play, arm, self.placement, self.schedule.repeats, together, self._width),
            (PROGRESS, ROWS, ROWS, WHOLE, WHOLE, WHOLE, WHOLE, WHOLE),
            (PROGRESS, WHOLE),
            donated=0,
        )

    def of_seeds(self, seeds: Sequence[int]) -> Simulation:
        """The same with other seeds; what has been compiled serves both where there are as many of them."""
        other = copy(self)
        other._seed(seeds)
        return other

    def _seed(self, seeds: Sequence[int]) -> None:
        self.seeds = list(seeds)
        self.lanes = lanes_of(self.seeds, self._width)
        self._data = self.placement.give(self.arm.data(self.placement.here(), self.seeds))

    def start(self) -> Progress:
        """Every agent's initial state, in every repetition, before round 1, in the slots of this simulation."""
        progress: Progress = self._start(self._numbers, self._given())
        return progress

    def _given(self) -> Any:
        """What every lane starts from: what its agents share, or its seed."""
        begins_with = self.arm.begins_with
        return self.lanes.seeds if begins_with is None else begins_with(self.lanes.seeds.tolist())

    def play(
        self, first: int, stops: Sequence[int], measured: Sequence[bool], progress: Progress
    ) -> tuple[Progress, dict[str, np.ndarray]]:
        """Play round `first`, then on to each round in `stops`; measure at those where `measured` is true.

        Metrics come back with axes (stops, seeds, agents), zeros where nothing was measured. The stops are data, not
        program: other rounds do not compile again, only another number of them does. A stop that is not ahead
        (padding) plays nothing. The progress given is used up.
        """
        rounds = np.asarray(first), np.asarray(stops), np.asarray(measured)
        here = Here(self._numbers, self._plan(first, max(max(stops), first)))
        lanes = self.lanes.seeds, self.lanes.repetition
        progress, metrics = self._play(progress, here, self._data, *lanes, *rounds)
        return progress, {name: np.asarray(values)[:, self.lanes.place] for name, values in metrics.items()}

    def shapes(self) -> Progress:
        """What `agents` gives, without the numbers: shapes and types, with one row an agent."""

        def of(x: Any) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct((len(self.seeds), self.schedule.agents, *x.shape[2:]), x.dtype)

        shapes: Progress = jax.tree.map(of, jax.eval_shape(self._start, self._numbers, self._given()))
        return shapes

    def agents(self, progress: Any) -> Any:
        """The progress, or any array of it, with one row an agent, in order, as NumPy arrays; at the first host."""
        rows = np.ix_(self.lanes.place, self.placement.home)
        return jax.tree.map(lambda x: self.placement.gather(x)[rows], progress)

    def slots(self, progress: Any) -> Any:
        """The opposite: progress with one row an agent, put into the slots of this simulation."""
        rows = np.ix_(self.lanes.repetition, self.placement.numbers.reshape(-1))
        return self.placement.spread(jax.tree.map(lambda x: np.asarray(x)[rows], progress), leading=1)

    def _plan(self, first: int, last: int) -> Plan:
        """The turns of these rounds, laid out; a schedule that repeats is laid out once."""
        repeats = self.schedule.repeats
        begin, count = (1, repeats) if repeats else (first, 1 << (last - first).bit_length())
        if (begin, count) not in self._plans:
            turns = [self.schedule.turn(number) for number in range(begin, begin + count if repeats else last + 1)]
            said = self._counts(begin, turns)
            spare = count - len(turns)  # up to a power of two, for few compilations
            turns, said = turns + [IDLE] * spare, np.concatenate([said, np.repeat(said[-1:], spare, axis=0)])
            plan = plan_of(turns, self.placement, self.schedule.most, self._parts or 1, said, always=bool(repeats))
            self._plans = {(begin, count): self.placement.spread(plan)}
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

    def _program(
        self, f: Callable[..., Any], inputs: Any, outputs: Any, donated: int | tuple[int, ...] = ()
    ) -> Callable[..., Any]:
        """f on every device, as one program; inputs and outputs say which of their arrays have rows for slots."""
        spread = jax.shard_map(f, mesh=self.placement.mesh, in_specs=inputs, out_specs=outputs, check_vma=False)
        return jax.jit(spread, donate_argnums=donated, compiler_options=compiler_options())


class Here(NamedTuple):
    """What a device knows of its own slots: the agents in them, and what they do in every turn."""

    numbers: Int[Array, "slots"]
    plan: Plan

    def turn(self, number: Int[Array, ""], first: Int[Array, ""], repeats: int | None) -> Any:
        """The plan of one round."""
        turns = self.plan.work.shape[1]
        place_ = (number - 1) % turns if repeats else number - first
        return jax.tree.map(lambda x: lax.dynamic_index_in_dim(x[0], place_, keepdims=False), self.plan)


def _start(arm: Arm, memory: int, numbers: Int[Array, "slots"], given: Any) -> Progress:
    """Everybody's initial state in every lane, from a seed or from what the lane's agents share."""

    def one_lane(its: Any) -> Progress:
        def init(number: Int[Array, ""]) -> Any:
            return arm.agent.init(agent_key(round_key(its, 0), number) if arm.begins_with is None else its)

        state = jax.vmap(init)(numbers)
        public = jax.vmap(arm.agent.publish)(state)
        if memory == 1:
            return Progress(state, public)
        return Progress(state, public, jax.tree.map(lambda x: jnp.repeat(x[:, None], memory, axis=1), public))

    return jax.vmap(one_lane)(given)


def _play(
    arm: Arm,
    placement: Placement,
    repeats: int | None,
    together: bool,
    width: int,
    progress: Progress,
    here: Here,
    data: Data,
    seeds: Int[Array, "lanes"],
    repetitions: Int[Array, "lanes"],
    first: Int[Array, ""],
    stops: Int[Array, "stops"],
    measured: Bool[Array, "stops"],
) -> tuple[Progress, Metrics]:
    """What every device does: all repetitions, a block of lanes after another, from stop to stop, its own agents."""
    play = play_heavy if arm.steps is not None else partial(play_light, everybody=together)
    everything = jax.tree.map(lambda x: x[0], data)  # its row of what the hosts gave

    def one_seed(seed: Int[Array, ""], repetition: Int[Array, ""], progress: Progress) -> tuple[Progress, Metrics]:
        data = arm.of_repetition(everything, repetition)

        def measure(now: Progress, stop: Int[Array, ""]) -> Metrics:
            return _measure(arm, placement, here, data, measuring_key(round_key(seed, stop)), stop, now)

        def nothing(now: Progress, stop: Int[Array, ""]) -> Metrics:
            return {k: jnp.zeros(x.shape, x.dtype) for k, x in jax.eval_shape(measure, now, stop).items()}

        def one_round(number: Int[Array, ""], now: Progress) -> Progress:
            turn = here.turn(number, first, repeats)
            return play(Round(arm, placement, here.numbers, turn, data, round_key(seed, number)), now)

        def to_next_stop(carry: tuple[Any, Progress], each: tuple[Any, Any]) -> tuple[tuple[Any, Progress], Metrics]:
            (number, now), (stop, wanted) = carry, each
            now = lax.fori_loop(number, stop + 1, one_round, now)
            return (jnp.maximum(number, stop + 1), now), lax.cond(wanted, measure, nothing, now, stop)

        (_, progress), metrics = lax.scan(to_next_stop, (first, progress), (stops, measured))
        return progress, metrics

    def one_block(seeds: Any, repetitions: Any, progress: Progress) -> tuple[Progress, Metrics]:
        if width > 1:
            together: tuple[Progress, Metrics] = jax.vmap(one_seed, out_axes=(0, 1))(seeds, repetitions, progress)
            return together
        one, metrics = one_seed(seeds[0], repetitions[0], jax.tree.map(lambda x: x.reshape(x.shape[1:]), progress))
        return jax.tree.map(lambda x: x[None], one), jax.tree.map(lambda x: x[:, None], metrics)

    blocks = seeds.shape[0] // width
    if blocks == 1:  # no slicing of states in and out
        return one_block(seeds, repetitions, progress)

    def in_blocks(tree: Any) -> Any:
        return jax.tree.map(lambda x: x.reshape(blocks, width, *x.shape[1:]), tree)

    def next_of(number: Any, progress: Progress) -> tuple[Progress, Metrics]:
        its_seeds, its_repetitions = row(in_blocks((seeds, repetitions)), number)
        return one_block(its_seeds, its_repetitions, row(progress, number))

    def next_block(number: Int[Array, ""], carry: tuple[Progress, Metrics]) -> tuple[Progress, Metrics]:
        progress, metrics = carry
        one, its_metrics = next_of(number, progress)
        return with_row(progress, one, number), with_row(metrics, its_metrics, number)

    progress = in_blocks(progress)
    shapes = jax.eval_shape(next_of, 0, progress)[1]
    empty = jax.tree.map(lambda x: jnp.zeros((blocks, *x.shape), x.dtype), shapes)
    progress, metrics = lax.fori_loop(0, blocks, next_block, (progress, empty))
    return (
        jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), progress),
        jax.tree.map(lambda x: jnp.moveaxis(x, 0, 1).reshape(x.shape[1], -1, *x.shape[3:]), metrics),
    )


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
        return arm.measure(arm.of_agent(data, agent), its, number, agent_key(key, agent))

    if arm.steps is None:
        mine = jax.vmap(one)(here.numbers, progress)
    else:
        mine = lax.map(lambda each: one(*each), (here.numbers, progress))
    return arm.compare(jax.tree.map(lambda x: x[placement.home], from_all(placement, mine)))
