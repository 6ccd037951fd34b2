"""A task is one value: shares of data, a model, a likelihood, a learner. An engine is given the arms made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from consilience.data import Partition
from consilience.data.shuffle import shuffled
from consilience.engines.arm import Arm, Metrics, Progress, agent_key, start_key
from consilience.errors import InputError
from consilience.learners.minibatches import Minibatches
from consilience.learners.packing import packing_of
from consilience.models import Likelihood, Model
from consilience.network import Network, Schedule
from consilience.task.consensus import Central, ConsensusConfig, FedAvg, Pooling, apart
from consilience.task.learner import AnyLearner
from consilience.task.rule import Rule, held_by_first, nobody_hears, rule_of
from consilience.task.shared import Examples, Shared, room, shared
from consilience.task.traffic import messages_of
from consilience.theory import stationary

Measure = Callable[[Shared, Progress, Int[Array, ""], PRNGKeyArray], Metrics]


class Task(NamedTuple):
    """What is learnt from what.

    load() -> all examples; called on every host, which keeps those of its own agents.
    held, kept: for every seed, who learns from which example, and who is judged by which (None: a test set judges).
    model, likelihood: the network and what its outputs say of a target.
    learner, consensus: the local update, and how everybody's evidence comes together.
    same_start: all seeds begin with the weights of the first.
    together: how many steps an epoch of the one agent has that holds all data, where there is one: everybody's.
    """

    load: Callable[[], Examples]
    held: Mapping[int, Partition]
    kept: Mapping[int, Partition] | None
    model: Model
    likelihood: Likelihood
    learner: AnyLearner
    same_start: bool = False
    consensus: ConsensusConfig = Pooling()
    together: Mapping[int, int] | None = None

    def an_epoch(self, seed: int) -> Int[np.ndarray, "agents"]:
        """How many steps an epoch of each agent has: none without data; for all what the smallest share allows, or own.

        With steps of its own an agent cuts its share into as few and as equal pieces as batches allow.
        """
        sizes, batch = self.held[seed].sizes(), self.learner.batch
        if self.together is not None:
            return np.where(sizes > 0, self.together[seed], 0)
        return -(-sizes // batch) if self.learner.steps == "own" else np.full_like(sizes, sizes.min() // batch)

    def heard(self, by: Network | Schedule) -> Task:
        """The task as it is on this network: with all data at one agent where that is asked for, or nobody heard."""
        if nobody_hears(by):
            return self._replace(consensus=apart(self.consensus))
        if not isinstance(self.consensus, Central):
            return self
        return self._replace(
            held={seed: held_by_first(partition) for seed, partition in self.held.items()},
            together={seed: int(self.an_epoch(seed).sum()) for seed in self.held},
        )

    def rule(self, heard: Network | Schedule) -> Rule:
        """The learner and the consensus as agents on this network."""
        sizes = next(iter(self.held.values())).sizes()
        if len(sizes) != heard.agents:
            raise InputError(f"shares: must be as many as agents of the network, {heard.agents}, got {len(sizes)}")
        if isinstance(self.consensus, FedAvg) and any((each.sizes() != sizes).any() for each in self.held.values()):
            raise InputError(
                "consensus: fedavg weighs agents by their shares, which differ between seeds; play one at a time"
            )
        idle = any((partition.sizes() == 0).any() for partition in self.held.values())
        return rule_of(self.learner, self.consensus, self.model, self.likelihood, sizes, idle)

    def steps(self) -> int:
        """The most steps that an agent makes in a round of any repetition."""
        return self.learner.epochs * max(int(self.an_epoch(seed).max()) for seed in self.held)

    def check(self) -> None:
        """Refuse a learner that these shares do not allow."""
        sizes = [partition.sizes() for partition in self.held.values()]
        smallest = min(int(each.min()) for each in sizes)
        if self.together is None and self.learner.steps == "same" and smallest < self.learner.batch:
            raise InputError(
                f"learner.batch: must be at most {smallest}, the smallest share, got {self.learner.batch}; "
                "learner.steps=own lets everybody go through its own data"
            )
        if not max(int(each.max()) for each in sizes):
            raise InputError("shares: nobody has any data to learn from")

    def data(self, agents: Int[np.ndarray, "agents"], seeds: Sequence[int]) -> Shared:
        """What a host with these agents holds."""
        kept = None if self.kept is None else [self.kept[seed] for seed in seeds]
        held = [self.held[seed] for seed in seeds]
        return shared(self.load(), held, kept, [self.an_epoch(seed) for seed in seeds], agents)


def arms_of(
    task: Task,
    hears: Mapping[str, Network | Schedule],
    measure: Callable[[Rule], Measure],
    rounds: int,
    compare: Callable[[Metrics], Metrics] = lambda measured: measured,
) -> dict[str, Arm]:
    """An arm for each network or schedule, all on the same task; `data.agent` is whom a measure is about.

    `measure(rule)` knows where the rule has its beliefs. `rounds` is how many there will be.
    """
    return {name: _arm(task.heard(heard), heard, measure, rounds, compare) for name, heard in hears.items()}


def _arm(
    task: Task,
    heard: Network | Schedule,
    measure: Callable[[Rule], Measure],
    rounds: int,
    compare: Callable[[Metrics], Metrics],
) -> Arm:
    task.check()
    rule = task.rule(heard)
    hears, sizes = rule.hears(heard, rounds), next(iter(task.held.values())).sizes()
    made = _made(task, rule, counts_alike(task, heard), hears, measure, compare, task.steps())
    return made._replace(messages=partial(messages_of, task.consensus, heard, hears, sizes))


def arm_of_one(task: Task, present: int, measure: Callable[[Rule], Measure]) -> Arm:
    """An arm of which one agent is played, elsewhere than in a simulation, among `present` ones.

    This host has only that agent's data, in arrays with some room, so that programs are the same for many; whom it
    hears is not the arm's business.
    """
    rule = rule_of(task.learner, task.consensus, task.model, task.likelihood, np.zeros(present, np.int64), idle=True)
    agents = next(iter(task.held.values())).agents
    steps = task.learner.epochs * room(task.steps() // task.learner.epochs, least=8)
    alone = Network(sp.eye_array(agents), "one of several")
    made = _made(task, rule, None, alone, measure, lambda found: found, steps)
    return made._replace(data=lambda agents, seeds: task.data(agents, seeds).with_room())


def _made(
    task: Task,
    rule: Rule,
    counts: Float[np.ndarray, "agents"] | None,
    hears: Network | Schedule,
    measure: Callable[[Rule], Measure],
    compare: Callable[[Metrics], Metrics],
    steps: int,
) -> Arm:
    initial = task.model.init(start_key(next(iter(task.held))))

    def begins_with(given: Sequence[int]) -> Any:
        """Drawn outside of the program, which would round by what else it computes."""
        drawn = [initial if task.same_start else task.model.init(start_key(int(seed))) for seed in given]
        return jax.tree.map(lambda *each: np.stack(each), *drawn)

    return Arm(
        rule.agent,
        partial(draw, task.learner, steps, counts),
        hears,
        measure(rule),
        compare,
        task.data,
        steps,
        Shared.of_repetition,
        begins_with,
        work_of(task),
        Shared.of_agent,
    )


def counts_alike(task: Task, heard: Network | Schedule) -> Float[np.ndarray, "agents"] | None:
    """1/(N v): what agents' evidence is multiplied by so that the network counts everybody's alike, where asked for."""
    if not (isinstance(task.consensus, Pooling) and task.consensus.alike):
        return None
    if not isinstance(heard, Network):
        raise InputError(
            "consensus.alike: is for networks that stay the same; sites and tracking count data once in any"
        )
    return 1 / (heard.agents * stationary(heard))


def work_of(task: Task) -> list[float] | None:
    """Everybody's work in a round, where it differs.

    Seeds may have other partitions, but where agents are cut must not depend on which seeds are played together: a
    seed's numbers would round by its company. So unequal work counts only where it is the same for all.
    """
    steps = [task.an_epoch(seed) for seed in task.held]
    if task.learner.steps == "same" or any((each != steps[0]).any() for each in steps):
        return None
    return [float(number) for number in steps[0]]


def flat_apply(model: Model) -> Callable[[Float[Array, "size"], Array], Array]:
    """The model as a function of its parameters as one vector, as beliefs hold them."""
    packing = packing_of(jax.eval_shape(model.init, jax.random.key(0)))

    def apply(weights: Float[Array, "size"], inputs: Array) -> Array:
        return model.apply(packing.unpack(packing.split(weights)), inputs)

    return apply


def draw(
    learner: AnyLearner,
    steps: int,
    counts: Float[np.ndarray, "agents"] | None,
    data: Shared,
    key: PRNGKeyArray,
    number: Int[Array, ""],
) -> Minibatches:
    """E epochs of minibatches, without replacement within an epoch: an agent's own number of steps, or all the same.

    `counts`: how often everybody's evidence counts, where that is not once.
    """
    size, an_epoch = data.held.size[number], data.an_epoch[number]
    # Somebody else may have longer epochs than this share allows: those places are not looked at.
    # Nothing cannot be shuffled, it would take for ever: who has no data draws a row that it does not use.
    held = jnp.maximum(size, 1)
    places = jnp.minimum(jnp.arange(steps // learner.epochs * learner.batch), held - 1)
    epochs = jax.random.split(agent_key(key, number), learner.epochs)
    shuffles = jax.vmap(lambda own: shuffled(own, places, held))(epochs)
    own = learner.steps == "own"
    epoch, step = jnp.divmod(jnp.arange(steps), jnp.maximum(an_epoch, 1))
    # k steps share n examples: the first n mod k have one more than the others.
    each, more = jnp.divmod(size, jnp.maximum(an_epoch, 1)) if own else (learner.batch, 0)
    first = step * each + jnp.minimum(step, more)
    mine = shuffles[epoch[:, None], first[:, None] + jnp.arange(learner.batch)]
    used = size if own else an_epoch * learner.batch
    most = {"own": size, "drawn": learner.epochs * used, "used": used}[learner.evidence]
    samples = jnp.asarray(jnp.minimum(size, most), jnp.result_type(float))
    weight = 1 if counts is None else jnp.asarray(counts, samples.dtype)[number]
    return Minibatches(
        data.inputs,
        data.targets,
        data.held.order[data.held.offset[number] + mine],
        (jnp.maximum(samples, 1) if own else samples) * weight,
        of_round=learner.epochs * an_epoch,
        counts=each + (step < more) if own else None,
        scale=an_epoch / jnp.maximum(samples, 1) if own else None,
    )
