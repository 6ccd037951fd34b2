"""The arms of a classification run: one for each network, and one in which nobody talks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import jax.numpy as jnp
import scipy.sparse as sp
from jaxtyping import Array, Int, PRNGKeyArray

from consilience.data import Dataset, Partition, load_dataset
from consilience.data.labels import label_number
from consilience.engines.arm import Arm, Metrics, Progress
from consilience.errors import InputError
from consilience.experiments.images.description import Config
from consilience.machine.memory import require
from consilience.models.likelihoods.categorical import Categorical, confidence_by_label
from consilience.models.scores import confusion, disagreement
from consilience.network import Network, Unheard, check, check_union
from consilience.task.consensus import ALONE
from consilience.task.learner import Laplace
from consilience.task.learnt import Learnt
from consilience.task.rule import Rule, check_linear, doubt, draws
from consilience.task.shared import Examples, Shared
from consilience.task.task import Task, arms_of, flat_apply

MOST_CONFUSED = 100  # labels; a row of the record has a column for each pair of them
CHOICES = "choices"  # measured of each agent to compare them; not recorded


class Setting(NamedTuple):
    """A configuration made concrete: the data and the task, its partitions being those of every seed."""

    dataset: Dataset
    task: Task

    @property
    def partitions(self) -> Mapping[int, Partition]:
        """Who holds what, for every seed."""
        return self.task.held


def setting_of(config: Config) -> Setting:
    """Load the data, build and check the rest."""
    networks = {name: description.build() for name, description in config.networks.items()}
    for name, network in networks.items():
        check(network)
        if not isinstance(schedule := config.networks[name].schedule(), Network):
            check_union(schedule, config.rounds)
    sizes = {network.agents for network in networks.values()}
    if len(sizes) > 1:
        raise InputError(f"networks: must all have the same number of agents, got {', '.join(map(str, sorted(sizes)))}")
    if ALONE in networks and config.alone:
        raise InputError("networks: 'alone' is the name of the arm in which nobody talks")
    dataset = dataset_of(config)
    for label in config.watched:
        label_number(dataset.label_names, label, "watched", dataset.name)
    if config.confusion:
        _check_confusion(dataset.label_names)
    partitions = partitions_of(config, dataset, sizes.pop())
    shape, labels = dataset.inputs.shape[1:], len(dataset.label_names)
    model = config.model.build(shape, labels)
    width = 4 if config.precision == "float32" else 8
    size = float(min(model.size, 10**300))  # larger whole numbers are no floats
    require(3 * width * size, f"model: {size:.3g} parameters")

    def load() -> Examples:
        """From the files, on every host."""
        found = dataset_of(config)
        return Examples(found.inputs, found.labels, found.test_inputs, found.test_labels)

    if isinstance(config.learner, Laplace):
        check_linear(model, shape)
    likelihood = Categorical(dataset.label_names)
    task = Task(load, partitions, None, model, likelihood, config.learner, config.same_start, config.consensus)
    task.check()
    return Setting(dataset, task)


def dataset_of(config: Config) -> Dataset:
    """The data, with validation examples in the place of the test set where that is wished."""
    return load_dataset(config.dataset, config.data_dir).held_out(config.validation)


def partitions_of(config: Config, dataset: Dataset, agents: int) -> dict[int, Partition]:
    """Who holds what in the repetition of every seed: each draws its own, unless asked otherwise."""
    if config.same_partition:
        return dict.fromkeys(config.seeds(), config.partition.divide(dataset, agents, config.seed))
    return {seed: config.partition.divide(dataset, agents, seed) for seed in config.seeds()}


def arms(config: Config) -> dict[str, Arm]:
    """One arm for each network, and one in which nobody talks."""
    setting = setting_of(config)
    names = setting.dataset.label_names
    schedules = {name: described.schedule() for name, described in config.networks.items()}
    if config.alone:
        first = next(iter(schedules.values()))
        nobody = Network(sp.eye_array(first.agents), ALONE)
        schedules[ALONE] = nobody if isinstance(first, Network) else Unheard(first)
    measure = partial(partial, _measure, setting.task, config.samples, names, config.confusion)
    return arms_of(setting.task, schedules, measure, config.rounds, partial(_compare, len(names)))


def _measure(
    task: Task,
    samples: int,
    label_names: tuple[str, ...],
    confused: bool,
    rule: Rule,
    data: Shared,
    progress: Progress,
    number: Int[Array, ""],
    key: PRNGKeyArray,
) -> Metrics:
    """Scores of an agent's public belief b_i, as in the paper, and of the pooled q_i beside it."""
    inputs = data.test_inputs
    inputs = inputs / 255.0 if inputs.dtype == jnp.uint8 else inputs
    likelihood, apply = task.likelihood, flat_apply(task.model)
    own, q = rule.own(progress), rule.pooled(progress)
    public = likelihood.predictive(apply, own, inputs, key, draws(own, samples))
    pooled = public if q is own else likelihood.predictive(apply, q, inputs, key, draws(q, samples))
    confidence = confidence_by_label(public, data.test_targets, len(label_names))
    of_pooled = likelihood.scores(pooled, data.test_targets)
    choices = public.probabilities.argmax(-1)
    taken = confusion(choices, data.test_targets, len(label_names)) if confused else None
    return {
        **likelihood.scores(public, data.test_targets),
        CHOICES: choices,
        **{f"confidence_{name}": confidence[k] for k, name in enumerate(label_names)},
        **{f"pooled_{name}": of_pooled[name] for name in ("accuracy", "nll", "brier", "ece")},
        **doubt(own, progress.state),
        **({} if taken is None else {name: taken[pair] for name, pair in taken_for(label_names).items()}),
    }


def _check_confusion(names: Sequence[str]) -> None:
    if len(names) > MOST_CONFUSED:
        raise InputError(f"confusion: is for at most {MOST_CONFUSED} labels, there are {len(names)}")
    if len(taken_for(names)) < len(names) ** 2:
        raise InputError("confusion: the labels have names that make two of its columns the same")


def taken_for(label_names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """The columns of a recorded confusion matrix: what a label is taken for."""
    pairs = product(enumerate(label_names), repeat=2)
    return {f"{true}_taken_for_{chosen}": (row, column) for (row, true), (column, chosen) in pairs}


def _compare(kinds: int, measured: Metrics) -> Metrics:
    """How often agents choose differently, in place of what they chose."""
    choices = measured.pop(CHOICES)
    return {**measured, "disagreement": disagreement(choices, kinds)}


def learnt(config: Config, shares: Mapping[str, Any]) -> Learnt:
    """The model and the likelihood, from what was kept of the data."""
    if "input_shape" not in shares:
        raise InputError("run: was begun by an older version, which did not keep the shape of inputs")
    names, shape = tuple(shares["label_names"]), tuple(shares["input_shape"])
    agents = tuple(f"agent {number}" for number in range(len(shares["counts"])))
    return Learnt(config.model.build(shape, len(names)), Categorical(names), agents, names, shape)


def shares(config: Config) -> dict[str, Any]:
    """What reports need of the data, kept with the run: the labels' names, and who holds how many (first seed)."""
    dataset = dataset_of(config)
    agents = next(iter(config.networks.values())).build().agents
    names = dataset.label_names
    counts = config.partition.divide(dataset, agents, config.seed).counts(dataset.labels, len(names))
    return {
        "label_names": list(names),
        "counts": counts.tolist(),
        "input_shape": list(dataset.inputs.shape[1:]),
    }
