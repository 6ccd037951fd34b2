"""A task is one value: shares of data, a model, a likelihood, a learner. An engine is given the arms made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from consilience.agent import Agent, Batch, Info, State
from consilience.data import Partition
from consilience.data.shuffle import shuffled
from consilience.engines.arm import Arm, Metrics, Progress, agent_key, start_key
from consilience.errors import InputError
from consilience.learners.minibatches import Minibatches
from consilience.learners.packing import packing_of
from consilience.learners.variational import adopted, started, variational
from consilience.models import Likelihood, Model
from consilience.network import Network, Schedule
from consilience.task.learner import LearnerConfig
from consilience.task.shared import Examples, Shared, shared

Measure = Callable[[Shared, Progress, Int[Array, ""], PRNGKeyArray], Metrics]


class Task(NamedTuple):
    """What is learnt from what.

    load() -> all examples; called on every host, which keeps those of its own agents.
    held, kept: for every seed, who learns from which example, and who is judged by which (None: a test set judges).
    model, likelihood: the network and what its outputs say of a target.
    learner: the local update. same_start: all seeds begin with the weights of the first.
    """

    load: Callable[[], Examples]
    held: Mapping[int, Partition]
    kept: Mapping[int, Partition] | None
    model: Model
    likelihood: Likelihood
    learner: LearnerConfig
    same_start: bool = False

    def an_epoch(self, seed: int) -> Int[np.ndarray, "agents"]:
        """How many steps an epoch of each agent has: none without data; for all what the smallest share allows, or own.

        With steps of its own an agent cuts its share into as few and as equal pieces as batches allow.
        """
        sizes, batch = self.held[seed].sizes(), self.learner.batch
        return -(-sizes // batch) if self.learner.steps == "own" else np.full_like(sizes, sizes.min() // batch)

    def steps(self) -> int:
        """The most steps that an agent makes in a round of any repetition."""
        return self.learner.epochs * max(int(self.an_epoch(seed).max()) for seed in self.held)

    def check(self) -> None:
        """Refuse a learner that these shares do not allow."""
        sizes = [partition.sizes() for partition in self.held.values()]
        if self.learner.steps == "same" and (smallest := min(int(each.min()) for each in sizes)) < self.learner.batch:
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
    measure: Measure,
    compare: Callable[[Metrics], Metrics] = lambda measured: measured,
) -> dict[str, Arm]:
    """An arm for each network or schedule, all on the same task; `data.agent` is whom `measure` is about."""
    task.check()
    seeds = list(task.held)
    initial = task.model.init(start_key(seeds[0]))
    agent = variational(task.model, initial, task.learner, task.likelihood.log_density)
    agent = agent._replace(init=partial(started, options=task.learner))
    if any((partition.sizes() == 0).any() for partition in task.held.values()):
        agent = _adopting(agent)
    steps = task.steps()

    def begins_with(given: Sequence[int]) -> Any:
        """Drawn outside of the program, which would round by what else it computes."""
        drawn = [initial if task.same_start else task.model.init(start_key(int(seed))) for seed in given]
        return jax.tree.map(lambda *each: np.stack(each), *drawn)

    return {
        name: Arm(
            agent,
            partial(draw, task.learner, steps),
            schedule,
            measure,
            compare,
            task.data,
            steps,
            Shared.of_repetition,
            begins_with,
            work_of(task),
            Shared.of_agent,
        )
        for name, schedule in hears.items()
    }


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


def draw(learner: LearnerConfig, steps: int, data: Shared, key: PRNGKeyArray, number: Int[Array, ""]) -> Minibatches:
    """E epochs of minibatches, without replacement within an epoch: an agent's own number of steps, or all the same."""
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
    return Minibatches(
        data.inputs,
        data.targets,
        data.held.order[data.held.offset[number] + mine],
        jnp.maximum(samples, 1) if own else samples,
        of_round=learner.epochs * an_epoch,
        counts=each + (step < more) if own else None,
        scale=an_epoch / jnp.maximum(samples, 1) if own else None,
    )


def _adopting(agent: Agent) -> Agent:
    """The same agent; where there is no data to learn from, its belief is what it has pooled."""

    def learn(key: PRNGKeyArray, state: State, batch: Batch) -> tuple[State, Info]:
        learnt, info = agent.learn(key, state, batch)
        nothing = batch.steps == 0
        return jax.tree.map(lambda new, old: jnp.where(nothing, old, new), learnt, adopted(state)), info

    return agent._replace(learn=learn)
