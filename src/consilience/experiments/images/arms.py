"""The arms of a classification run: one for each network, and one in which nobody talks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from consilience.data import Dataset, Partition, load_dataset
from consilience.data.labels import label_number
from consilience.data.shuffle import shuffled
from consilience.engines.arm import Arm, Metrics, Progress, agent_key, start_key
from consilience.errors import InputError
from consilience.experiments.images.description import Config, LearnerConfig
from consilience.learners.minibatches import Minibatches
from consilience.learners.packing import packing_of
from consilience.learners.variational import started, variational
from consilience.machine.memory import require
from consilience.models import Model
from consilience.models.likelihoods.categorical import Categorical, confidence_by_label
from consilience.models.scores import confusion, disagreement
from consilience.network import Network, Unheard, check, check_union

ALONE = "alone"
MOST_CONFUSED = 100  # labels; a row of the record has a column for each pair of them
CHOICES = "choices"  # measured of each agent to compare them; not recorded


class Shared(NamedTuple):
    """What draws and evaluations read on a host: the examples of its agents, once, however many, and the test set.

    Agent i holds `size[i]` examples, those with the numbers `order[offset[i]]`, `order[offset[i] + 1]`, …, and makes
    `an_epoch` steps an epoch, as all agents do. The last three have a row a repetition, until it is picked.
    """

    inputs: Any  # NumPy arrays, which become arrays of the program
    labels: Any
    test_inputs: Any
    test_labels: Any
    order: Any
    offset: Any
    size: Any
    an_epoch: Any

    def of_repetition(self, number: Int[Array, ""]) -> Shared:
        """What the repetition with this number sees."""
        return self._replace(offset=self.offset[number], size=self.size[number], an_epoch=self.an_epoch[number])


class Setting(NamedTuple):
    """A configuration made concrete: the data, who holds what, the networks and the model."""

    dataset: Dataset
    partitions: dict[int, Partition]  # of every seed
    networks: dict[str, Network]
    model: Model

    def steps(self, learner: LearnerConfig) -> int:
        """The most steps that an agent makes in a round of any repetition."""
        return learner.epochs * max(_an_epoch(partition, learner) for partition in self.partitions.values())


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
    smallest = min(int(partition.sizes().min()) for partition in partitions.values())
    if smallest < config.learner.batch:
        raise InputError(f"learner.batch: must be at most {smallest}, the smallest share, got {config.learner.batch}")
    shape, labels = dataset.inputs.shape[1:], len(dataset.label_names)
    model = config.model.build(shape, labels)
    width = 4 if config.precision == "float32" else 8
    size = float(min(model.size, 10**300))  # larger whole numbers are no floats
    require(3 * width * size, f"model: {size:.3g} parameters")
    return Setting(dataset, partitions, networks, model)


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
    model, names = setting.model, setting.dataset.label_names
    schedules = {name: described.schedule() for name, described in config.networks.items()}
    if config.alone:
        first = next(iter(schedules.values()))
        nobody = Network(sp.eye_array(first.agents), ALONE)
        schedules[ALONE] = nobody if isinstance(first, Network) else Unheard(first)
    initial = model.init(start_key(config.seed))
    agent = variational(model, initial, config.learner)._replace(init=partial(started, options=config.learner))
    steps = setting.steps(config.learner)
    draw = partial(_draw, config.learner, steps)
    packing = packing_of(initial)

    def apply(weights: Float[Array, "size"], inputs: Array) -> Float[Array, "examples labels"]:
        return model.apply(packing.unpack(packing.split(weights)), inputs)

    measure = partial(_measure, apply, config.samples, names, config.confusion)
    compare = partial(_compare, len(names))
    data = partial(data_of, config, setting.partitions)

    def begins_with(seeds: Sequence[int]) -> Any:
        """Drawn outside of the program, which would round by what else it computes."""
        drawn = [initial if config.same_start else model.init(start_key(int(seed))) for seed in seeds]
        return jax.tree.map(lambda *each: np.stack(each), *drawn)

    return {
        name: Arm(agent, draw, schedule, measure, compare, data, steps, Shared.of_repetition, begins_with)
        for name, schedule in schedules.items()
    }


def data_of(
    config: Config, partitions: dict[int, Partition], agents: Int[np.ndarray, "agents"], seeds: Sequence[int]
) -> Shared:
    """The examples of some agents, and the test set. A host keeps no others: they are read from the files here."""
    dataset = dataset_of(config)
    mine = [partitions[seed] for seed in seeds]
    held = np.stack([np.isin(partition.owner, agents) for partition in mine])  # in each repetition
    kept = np.flatnonzero(held.any(0))
    row_of = np.cumsum(held.any(0)) - 1  # of the examples that are kept
    order, offset, before = [], [], 0
    for partition, here in zip(mine, held, strict=True):
        own = np.flatnonzero(here)
        order.append(row_of[own[np.argsort(partition.owner[own], kind="stable")]])
        sizes = np.where(np.isin(np.arange(partition.agents), agents), partition.sizes(), 0)
        offset.append(before + np.cumsum(sizes) - sizes)
        before += len(own)
    return Shared(
        dataset.inputs[kept],
        dataset.labels[kept],
        dataset.test_inputs,
        dataset.test_labels,
        np.concatenate(order).astype(np.int32),
        np.stack(offset).astype(np.int32),
        np.stack([partition.sizes() for partition in mine]).astype(np.int32),
        np.array([_an_epoch(partition, config.learner) for partition in mine], np.int32),
    )


def _an_epoch(partition: Partition, learner: LearnerConfig) -> int:
    """How many steps an epoch has: what the smallest share allows, for all agents."""
    return int(partition.sizes().min()) // learner.batch


def _draw(learner: LearnerConfig, steps: int, data: Shared, key: PRNGKeyArray, number: Int[Array, ""]) -> Minibatches:
    """E epochs of minibatches, without replacement within an epoch; all agents make the same number of steps."""
    # Some other repetition may have longer epochs than this share allows: those places are not looked at.
    places = jnp.minimum(jnp.arange(steps // learner.epochs * learner.batch), data.size[number] - 1)
    epochs = jax.random.split(agent_key(key, number), learner.epochs)
    shuffles = jax.vmap(lambda own: shuffled(own, places, data.size[number]))(epochs)
    epoch, step = jnp.divmod(jnp.arange(steps), data.an_epoch)
    mine = shuffles[epoch[:, None], step[:, None] * learner.batch + jnp.arange(learner.batch)]
    chosen = data.order[data.offset[number] + mine]
    an_epoch = data.an_epoch * learner.batch
    most = {"own": data.size[number], "drawn": learner.epochs * an_epoch, "used": an_epoch}[learner.evidence]
    samples = jnp.asarray(jnp.minimum(data.size[number], most), jnp.result_type(float))
    return Minibatches(data.inputs, data.labels, chosen, samples, of_round=learner.epochs * data.an_epoch)


def _measure(
    apply: Any,
    samples: int,
    label_names: tuple[str, ...],
    confused: bool,
    data: Shared,
    progress: Progress,
    number: Int[Array, ""],
    key: PRNGKeyArray,
) -> Metrics:
    """Scores of an agent's public belief b_i, as in the paper, and of the pooled q_i beside it."""
    inputs = data.test_inputs
    inputs = inputs / 255.0 if inputs.dtype == jnp.uint8 else inputs
    likelihood = Categorical(label_names)
    public, pooled = (
        likelihood.predictive(apply, belief, inputs, key, samples) for belief in (progress.public, progress.state.prior)
    )
    confidence = confidence_by_label(public, data.test_labels, len(label_names))
    of_pooled = likelihood.scores(pooled, data.test_labels)
    choices = public.probabilities.argmax(-1)
    taken = confusion(choices, data.test_labels, len(label_names)) if confused else None
    return {
        **likelihood.scores(public, data.test_labels),
        CHOICES: choices,
        **{f"confidence_{name}": confidence[k] for k, name in enumerate(label_names)},
        **{f"pooled_{name}": of_pooled[name] for name in ("accuracy", "nll", "brier", "ece")},
        "mean_sd": (1 / jnp.sqrt(progress.public.precision)).mean(),
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


def shares(config: Config) -> dict[str, Any]:
    """What reports need of the data, kept with the run: the labels' names, and who holds how many (first seed)."""
    dataset = dataset_of(config)
    agents = next(iter(config.networks.values())).build().agents
    names = dataset.label_names
    counts = config.partition.divide(dataset, agents, config.seed).counts(dataset.labels, len(names))
    return {"label_names": list(names), "counts": counts.tolist()}
