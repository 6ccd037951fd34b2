"""The arms of a user's own task: the agents hearing each other, and perhaps alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jaxtyping import Array, Int, PRNGKeyArray

from consilience.data import Partition
from consilience.data.arrays import numbered_or_numbers, read_arrays
from consilience.engines.arm import Arm, Metrics, Progress
from consilience.errors import InputError, brief, printable
from consilience.experiments.learn.description import Config
from consilience.machine.memory import require
from consilience.models import Likelihood, Model
from consilience.network import Network, Schedule, Unheard, check, check_union
from consilience.runs.record import HELD_OUT_ROWS
from consilience.streams import stream
from consilience.task.columns import Target, features, predicted
from consilience.task.consensus import ALONE
from consilience.task.learner import Laplace
from consilience.task.learnt import Learnt
from consilience.task.rule import Rule, check_linear, doubt, draws
from consilience.task.scaling import unscaled
from consilience.task.shared import NOBODY, Examples, Shared
from consilience.task.shares import Held, divided
from consilience.task.task import Task, arms_of, flat_apply

TOGETHER = "together"
SIZED_BY_CHANCE = ("dirichlet", "shards", "skewed")  # partitions in which the largest share depends on the seed
TEST, HELD_OUT, ROWS = "test", "held_out", HELD_OUT_ROWS


class Setting(NamedTuple):
    """A description made concrete: what everybody holds, the task, and the agents' names."""

    held: Held
    task: Task
    names: tuple[str, ...]


def setting_of(config: Config) -> Setting:
    """Read the data, build and check the rest."""
    schedule = config.network.schedule()
    network = config.network.build()
    if network.agents > 1:
        check(network)
    if not isinstance(schedule, Network):
        check_union(schedule, config.rounds)
    held = tested(config, config.shares.read(config.columns, config.beside, config.likelihood.of_numbers))
    agents = network.agents
    if held.names and len(held.names) != agents:
        raise InputError(f"network: must have an agent for each of the {len(held.names)} shares, got {agents} agents")
    names = held.names or network.names or tuple(f"agent {number}" for number in range(agents))
    _, answer = predicted(config.columns) if config.columns is not None else ("", None)
    likelihood = config.likelihood.build(held.label_names, answer if isinstance(answer, Target) else None)
    _check_targets(config, held)
    given = config.model.build(held.inputs.shape[1:], likelihood.outputs)
    check_outputs(given, held.inputs.shape[1:], likelihood)
    model = likelihood.model(given)
    require(12 * float(min(model.size, 10**300)), f"model: {float(min(model.size, 10**300)):.3g} parameters")
    if held.test is None and config.kept_back(False) == 0:
        raise InputError("held_out: there is no test file, so agents must be judged by rows of their own; got 0")
    parts = {seed: _parted(config, held, agents, seed) for seed in config.seeds()}
    keep = config.kept_back(held.test is not None) > 0
    if held.test is None and any(not kept.sizes().any() for _, kept in parts.values()):
        raise InputError(
            "held_out: nobody has a row to spare, so agents can be judged only by a test file; there is none"
        )
    test_inputs, test_targets = held.test or (None, None)
    task = Task(
        lambda: Examples(held.inputs, held.targets, test_inputs, test_targets),
        {seed: learnt for seed, (learnt, _) in parts.items()},
        {seed: kept for seed, (_, kept) in parts.items()} if keep else None,
        model,
        likelihood,
        config.learner,
        config.same_start,
        config.consensus,
    )
    if isinstance(config.learner, Laplace):
        check_linear(model, held.inputs.shape[1:])
    task.check()
    return Setting(held, task, names)


def _check_targets(config: Config, held: Held) -> None:
    """What is learnt from, and what is predicted of a test set, must be what the likelihood is of."""
    judged = {} if held.test is None else {"test": held.test[1]}
    for where, targets in {"shares": held.targets, **judged}.items():
        if rule := config.likelihood.refuses(targets):
            raise InputError(f"{where}: {rule}")


def check_outputs(model: Model, shape: tuple[int, ...], likelihood: Likelihood) -> None:
    """A model must take such inputs and give the outputs that the likelihood reads."""
    example = jax.ShapeDtypeStruct((2, *shape), jnp.result_type(float))
    try:
        outputs = jax.eval_shape(model.apply, jax.eval_shape(model.init, jax.random.key(0)), example)
    except (TypeError, ValueError) as error:
        said = str(error).strip().splitlines()[0][:120]
        raise InputError(f"model: does not take inputs of shape {shape}: {printable(said)}") from None
    if outputs.shape != (2, likelihood.outputs):
        got = " × ".join(map(str, outputs.shape[1:])) or "none"
        wanted = f"{likelihood.outputs} for {likelihood.name}"
        raise InputError(f"model: must have as many outputs as the likelihood reads ({wanted}), got {got}")


def tested(config: Config, held: Held) -> Held:
    """With the test set, where a file of it is named."""
    if config.test is None:
        return held
    if config.columns is not None:
        from consilience.data.tables import read_rows

        rows = read_rows(config.test, config.columns, field="test")
        assert rows.targets is not None
        return held._replace(test=(rows.inputs, rows.targets))
    found = read_arrays("test", config.test, ("x", "y"))
    if not len(found["y"]):
        raise InputError(f"test: '{config.test}' must have rows, got none")
    y, names = numbered_or_numbers({"test": found["y"]}, "test", config.likelihood.of_numbers)
    if bool(names) != bool(held.label_names):
        kinds = ("labels", "numbers") if names else ("numbers", "labels")
        raise InputError(f"test: '{config.test}' has {kinds[0]} to predict, the shares have {kinds[1]}")
    if unknown := sorted(set(names) - set(held.label_names)):
        raise InputError(f"test: '{config.test}' has a label that no share has, {brief(unknown[0])}")
    if found["x"].shape[1:] != held.inputs.shape[1:] or found["x"].dtype != held.inputs.dtype:
        raise InputError(f"test: '{config.test}' must have inputs like the shares', {held.inputs.shape[1:]}")
    numbers = np.array([held.label_names.index(name) for name in names], np.int32)
    return held._replace(test=(found["x"], numbers[y["test"]] if names else y["test"]))


def _parted(config: Config, held: Held, agents: int, seed: int) -> tuple[Partition, Partition]:
    """Who learns from which row and who is judged by which, in one repetition.

    Whoever has two rows or more is judged by one at least; whoever has fewer learns from what it has.
    """
    whole = divided(config.shares, held, agents, seed)
    learnt, kept = whole.owner.copy(), np.full_like(whole.owner, NOBODY)
    share = config.kept_back(held.test is not None)
    for agent, size in enumerate(whole.sizes()):
        count = max(1, round(share * size)) if share and size > 1 else 0
        rows = whole.share(agent)[stream("kept back", seed, agent).permutation(size)[:count]]
        learnt[rows], kept[rows] = NOBODY, agent
    return Partition(learnt, agents), Partition(kept, agents)


def hears(config: Config) -> dict[str, Network | Schedule]:
    """Whom agents hear in each arm."""
    schedule = config.network.schedule()
    heard: dict[str, Network | Schedule] = {TOGETHER: schedule}
    if config.alone:
        nobody = Network(sp.eye_array(schedule.agents), ALONE)
        heard[ALONE] = nobody if isinstance(schedule, Network) else Unheard(schedule)
    return heard


def arms(config: Config) -> dict[str, Arm]:
    """All agents hearing each other, and perhaps each alone."""
    held, task, _ = setting_of(config)
    most = max((int(part.sizes().max()) for part in (task.kept or {}).values()), default=0)
    if most and held.owner is None and config.shares.partition.kind in SIZED_BY_CHANCE:  # type: ignore[union-attr]
        # A seed's scores must not round by its company: room for what anybody could hold, whatever the seeds.
        most = round(config.kept_back(held.test is not None) * len(held.targets)) + 1
    return arms_of(task, hears(config), partial(partial, _measure, task, config.samples, most), config.rounds)


def _measure(
    task: Task,
    samples: int,
    most: int,
    rule: Rule,
    data: Shared,
    progress: Progress,
    number: Int[Array, ""],
    key: PRNGKeyArray,
) -> Metrics:
    """Scores of an agent's own belief b_i and of what it has pooled, by the test set and by its own held-out rows."""
    apply, likelihood = flat_apply(task.model), task.likelihood
    own = rule.own(progress)
    beliefs, samples = {"": own, "pooled_": rule.pooled(progress)}, draws(own, samples)
    measured: Metrics = {}
    for word, belief in beliefs.items():
        if data.test_inputs is not None:
            predicted = likelihood.predictive(apply, belief, scaled(data.test_inputs), key, samples)
            scores = likelihood.scores(predicted, data.test_targets)
            measured |= {f"{word}{TEST}_{name}": value for name, value in scores.items()}
        if data.kept is not None:
            size = data.kept.size[data.agent]
            places = data.kept.offset[data.agent] + jnp.minimum(jnp.arange(most), jnp.maximum(size - 1, 0))
            rows = data.kept.order[places]
            weights = (jnp.arange(most) < size).astype(jnp.result_type(float))
            predicted = likelihood.predictive(apply, belief, scaled(data.inputs[rows]), key, samples)
            scores = likelihood.scores(predicted, data.targets[rows], weights)
            measured |= {
                f"{word}{HELD_OUT}_{name}": jnp.where(size > 0, value, jnp.nan) for name, value in scores.items()
            }
            measured[ROWS] = size.astype(jnp.result_type(float))
    return measured | doubt(own, progress.state)


def scaled(inputs: Array) -> Array:
    """Images are kept as bytes and scaled to [0, 1] when they are used."""
    return inputs / 255.0 if inputs.dtype == jnp.uint8 else inputs


def learnt(config: Config, shares: Mapping[str, Any]) -> Learnt:
    """The model and the likelihood, from what was kept of the data."""
    _, answer = predicted(config.columns) if config.columns is not None else ("", None)
    labels, shape = tuple(shares["label_names"]), tuple(shares["input_shape"])
    likelihood = config.likelihood.build(labels, answer if isinstance(answer, Target) else None)
    model = likelihood.model(config.model.build(shape, likelihood.outputs))
    return Learnt(model, likelihood, tuple(shares["agents"]), labels, shape, config.columns)


def shares(config: Config) -> dict[str, Any]:
    """What reports need of the data, kept with the run: names, how many rows everybody holds (first seed)."""
    held, task, names = setting_of(config)
    learnt = task.held[config.seed]
    kinds = len(held.label_names)
    columns = [] if config.columns is None else [feature.name for feature in features(config.columns)]
    return {
        "note": unscaled(held.inputs, columns),
        "agents": list(names),
        "rows": learnt.sizes().tolist(),
        "held_out_rows": None if task.kept is None else task.kept[config.seed].sizes().tolist(),
        "test_rows": None if held.test is None else len(held.test[1]),
        "label_names": list(held.label_names),
        "input_shape": list(held.inputs.shape[1:]),
        "counts": learnt.counts(held.targets, kinds).tolist() if kinds else None,
    }
