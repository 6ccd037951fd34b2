"""The arms of a classification run: one for each network, and one in which nobody talks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from consilience.data import Dataset, Partition, load_dataset
from consilience.data.labels import label_number
from consilience.engines.arm import Arm
from consilience.errors import InputError
from consilience.experiments.images.description import Config
from consilience.experiments.images.measure import MOST_STRANGERS, compare, measure, taken_for
from consilience.machine.memory import require
from consilience.models.likelihoods.categorical import Categorical
from consilience.network import Network, Unheard, check, check_union
from consilience.streams import stream
from consilience.task.consensus import ALONE
from consilience.task.learner import Laplace
from consilience.task.learnt import Learnt
from consilience.task.rule import check_linear
from consilience.task.shared import NOBODY, Examples
from consilience.task.task import Task, arms_of

MOST_CONFUSED = 100  # labels; a row of the record has a column for each pair of them


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
        return Examples(found.inputs, found.labels, found.test_inputs, found.test_labels, strangers_of(config, shape))

    strangers_of(config, shape)
    if isinstance(config.learner, Laplace):
        check_linear(model, shape)
    likelihood = Categorical(dataset.label_names)
    task = Task(load, partitions, None, model, likelihood, config.learner, config.same_start, config.consensus)
    task.check()
    return Setting(dataset, task)


def _check_confusion(names: Sequence[str]) -> None:
    if len(names) > MOST_CONFUSED:
        raise InputError(f"confusion: is for at most {MOST_CONFUSED} labels, there are {len(names)}")
    if len(taken_for(names)) < len(names) ** 2:
        raise InputError("confusion: the labels have names that make two of its columns the same")


def dataset_of(config: Config) -> Dataset:
    """The data, with validation examples in the place of the test set where that is wished."""
    return load_dataset(config.dataset, config.data_dir).held_out(config.validation)


def strangers_of(config: Config, shape: tuple[int, ...]) -> np.ndarray | None:
    """The first test images of another dataset, of the same shape, where there is one."""
    if config.strangers is None:
        return None
    found = load_dataset(config.strangers, field="strangers").test_inputs[:MOST_STRANGERS]
    if found.shape[1:] != shape:
        raise InputError(f"strangers: must have inputs of the shape {shape}, as the dataset, got {found.shape[1:]}")
    return found


def partitions_of(config: Config, dataset: Dataset, agents: int) -> dict[int, Partition]:
    """Who holds what in the repetition of every seed: each draws its own, unless asked otherwise."""
    if config.same_partition:
        return dict.fromkeys(config.seeds(), divided(config, dataset, agents, config.seed))
    return {seed: divided(config, dataset, agents, seed) for seed in config.seeds()}


def divided(config: Config, dataset: Dataset, agents: int, seed: int) -> Partition:
    """Who holds what with this seed; where not all training examples are used, the others are nobody's.

    Which are used is drawn without looking at them.
    """
    whole = len(dataset.labels)
    if not config.training:
        return config.partition.divide(dataset, agents, seed)
    if config.training > whole:
        raise InputError(f"training: must be at most {whole}, as many as there are, got {config.training}")
    used = np.sort(stream("training", seed).permutation(whole)[: config.training])
    part = dataset._replace(inputs=dataset.inputs[used], labels=dataset.labels[used])
    owner = np.full(whole, NOBODY, dtype=np.int64)
    owner[used] = config.partition.divide(part, agents, seed).owner
    return Partition(owner, agents)


def arms(config: Config) -> dict[str, Arm]:
    """One arm for each network, and one in which nobody talks."""
    setting = setting_of(config)
    names = setting.dataset.label_names
    schedules = {name: described.schedule() for name, described in config.networks.items()}
    if config.alone:
        first = next(iter(schedules.values()))
        nobody = Network(sp.eye_array(first.agents), ALONE)
        schedules[ALONE] = nobody if isinstance(first, Network) else Unheard(first)
    measure_by = partial(partial, measure, setting.task, config.samples, names, config.confusion)
    return arms_of(setting.task, schedules, measure_by, config.rounds, partial(compare, len(names)))


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
    counts = divided(config, dataset, agents, config.seed).counts(dataset.labels, len(names))
    return {
        "label_names": list(names),
        "counts": counts.tolist(),
        "input_shape": list(dataset.inputs.shape[1:]),
    }
