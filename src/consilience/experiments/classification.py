"""Image classification over a graph with Bayesian networks (Sec. 4.2): agents recognise labels they never saw."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jaxtyping import Array, Float, Int, PRNGKeyArray
from pydantic import Field, PositiveFloat

from consilience.config import ArmName, RunConfig
from consilience.data import Dataset, Partition, by_feature, by_label, dirichlet, from_file, iid, load_dataset, shards
from consilience.data.labels import as_number
from consilience.data.shuffle import shuffled
from consilience.described import Described, naming
from consilience.engines.arm import Arm, Metrics, Progress, agent_key, start_key
from consilience.errors import InputError, brief
from consilience.evaluate import confidence_by_label, confusion, disagreement, predictive, scores
from consilience.learners.packing import packing_of
from consilience.learners.variational import Minibatches, Options, started, variational
from consilience.memory import require
from consilience.models import Model, cnn, mlp
from consilience.network import Network, Unheard, check, check_union
from consilience.network_config import NetworkConfig
from consilience.record import Record

ALONE = "alone"
AVERAGES = (
    "pooled_accuracy",
    "nll",
    "brier",
    "ece",
    "epistemic",
    "disagreement",
    "mean_sd",
)  # over agents, told of arms
MOST_CONFUSED = 100  # labels; a row of the record has a column for each pair of them
CHOICES = "choices"  # measured of each agent to compare them; not recorded


class Group(Described):
    """Labels and the agents that share their examples."""

    labels: list[int | str] = Field(min_length=1)
    agents: list[int] = Field(min_length=1)


class ByLabel(Described):
    """Every label belongs to one group of agents."""

    kind: Literal["labels"] = "labels"
    groups: list[Group] = Field(min_length=1)


class Iid(Described):
    """Shuffled and dealt out."""

    kind: Literal["iid"] = "iid"


class Dirichlet(Described):
    """Label proportions from a Dirichlet distribution."""

    kind: Literal["dirichlet"] = "dirichlet"
    alpha: PositiveFloat = 0.5


class Shards(Described):
    """Sorted by label and dealt out in pieces."""

    kind: Literal["shards"] = "shards"
    each: int = Field(2, ge=1)


class ByFeature(Described):
    """Ranges of one feature."""

    kind: Literal["feature"] = "feature"
    feature: int = Field(0, ge=0)


class ByFile(Described):
    """Owners in a file."""

    kind: Literal["file"] = "file"
    file: Path = naming("file", description="the owner of each training example, a number a line")


PartitionConfig = Annotated[
    ByLabel | Iid | Dirichlet | Shards | ByFeature | ByFile,
    Field(discriminator="kind"),
]


class Mlp(Described):
    """Fully connected, ReLU; no hidden layer is logistic regression."""

    kind: Literal["mlp"] = "mlp"
    hidden: list[Annotated[int, Field(ge=1)]] = Field([200, 200])


class Cnn(Described):
    """A small convolutional network."""

    kind: Literal["cnn"] = "cnn"
    channels: list[Annotated[int, Field(ge=1)]] = Field([8, 16], min_length=1)
    hidden: int = Field(64, ge=1)


ModelConfig = Annotated[Mlp | Cnn, Field(discriminator="kind")]


class LearnerConfig(Described):
    """The local update; see `learners.variational.Options` for what the paper leaves open."""

    epochs: int = Field(5, ge=1, description="E: passes over the local data a round")
    batch: int = Field(50, ge=1, description="B: examples a step")
    learning_rate: PositiveFloat = 1e-3
    decay: float = Field(0.99, gt=0, le=1, description="factor on the learning rate a round")
    initial_sd: PositiveFloat = Field(0.05, description="of every weight at the start")
    prior_sd: PositiveFloat = Field(0.05, description="of the first prior, around the shared initial weights")
    kl_weight: float = Field(1.0, ge=0, description="factor on the KL term; 1 is Bayes' rule")
    kl_growth: float = Field(
        1.0, gt=0, description="factor on kl_weight a round; above 1 reused data counts less and less"
    )
    sd_rate: float = Field(10.0, ge=0, description="learning rate of log σ as a multiple of that of μ")
    start: Literal["own", "pooled"] = Field("pooled", description="where a round's minimisation starts")
    moments: Literal["keep", "reset"] = Field("keep", description="Adam's moments between rounds")
    estimator: Literal["weights", "outputs"] = Field("weights", description="what is drawn for a gradient")
    evidence: Literal["own", "drawn", "used"] = Field(
        "own", description="n in KL/n: all own examples, those drawn in a round, or those used in an epoch"
    )


class Config(RunConfig):
    """A classification run; the built-in experiments are values for it."""

    experiment: str
    rounds: int = Field(800, ge=1)
    record_every: int = Field(25, ge=1)
    checkpoint_every: int = Field(25, ge=1)
    precision: Literal["float32", "float64"] = "float32"
    dataset: str = naming("file", "mnist", description="a dataset's name, or a file .npz, .csv or .parquet")
    data_dir: Path | None = naming("folder", None, description="where a dataset's files are")
    per_seed: bool = Field(True, description="where there are several seeds, a row for each in the place of means")
    validation: int = Field(0, ge=0, description="training examples to test on, to choose settings; 0: the test set")
    partition: PartitionConfig = Iid()
    networks: dict[ArmName, NetworkConfig] = Field(min_length=1, description="one arm for each")
    alone: bool = Field(False, description="also run the agents of the first network without hearing each other")
    model: ModelConfig = Mlp()
    learner: LearnerConfig = LearnerConfig()
    samples: int = Field(6, ge=1, description="L: Monte Carlo draws for predictions")
    same_partition: bool = Field(False, description="all repetitions have the partition of the first seed")
    same_start: bool = Field(False, description="all repetitions begin with the weights of the first seed")
    watched: list[int | str] = Field([], description="labels whose confidence is drawn")
    confusion: bool = Field(False, description="also record how often each label is taken for each other one")


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
    if isinstance(config.model, Cnn):
        model = cnn(shape, labels, config.model.channels, config.model.hidden)
    else:
        model = mlp(shape, labels, config.model.hidden)
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
        return dict.fromkeys(config.seeds(), partition_of(config, dataset, agents, config.seed))
    return {seed: partition_of(config, dataset, agents, seed) for seed in config.seeds()}


def partition_of(config: Config, dataset: Dataset, agents: int, seed: int) -> Partition:
    """Who holds what, drawn with a seed."""
    described, labels = config.partition, dataset.labels
    if isinstance(described, ByLabel):
        holders: dict[int, list[int]] = {}
        for group in described.groups:
            if wrong := [agent for agent in group.agents if not 0 <= agent < agents]:
                raise InputError(f"partition: names agent {wrong[0]}, there are agents 0 to {agents - 1}")
            for label in group.labels:
                number = label_number(dataset.label_names, label, "partition", dataset.name)
                if number in holders:
                    raise InputError(f"partition: label {brief(label)} is named twice, its holders belong together")
                holders[number] = group.agents
        return by_label(labels, holders, agents, seed)
    if isinstance(described, Dirichlet):
        return dirichlet(labels, agents, described.alpha, seed)
    if isinstance(described, Shards):
        return shards(labels, agents, described.each, seed)
    if isinstance(described, ByFeature):
        return by_feature(dataset.inputs, agents, described.feature)
    if isinstance(described, ByFile):
        return from_file(described.file, len(labels), agents)
    return iid(len(labels), agents, seed)


def label_number(names: Sequence[str], label: int | str, field: str = "label", dataset: str = "the data") -> int:
    """A label's number from its name, or from its number where no label is called like a number."""
    name = label if isinstance(label, str) or abs(label) >= 2**63 else str(label)  # no label is a larger number
    if name in names:
        return names.index(name)
    if isinstance(label, int) and 0 <= label < len(names) and all(as_number(known) is None for known in names):
        return label
    known = ", ".join(names[:12]) + (f", … {len(names)} labels" if len(names) > 12 else "")
    raise InputError(f"{field}: no label {brief(label)} in {dataset}; it has {known}")


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
    options = Options(**config.learner.model_dump(include=set(Options._fields)))
    agent = variational(model, initial, options)._replace(init=partial(started, options=options))
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
    public, pooled = (
        predictive(apply, belief, inputs, key, samples) for belief in (progress.public, progress.state.prior)
    )
    confidence = confidence_by_label(public, data.test_labels, len(label_names))
    of_pooled = scores(pooled, data.test_labels)
    choices = public.probabilities.argmax(-1)
    taken = confusion(choices, data.test_labels, len(label_names)) if confused else None
    return {
        **scores(public, data.test_labels),
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
    counts = partition_of(config, dataset, agents, config.seed).counts(dataset.labels, len(names))
    return {"label_names": list(names), "counts": counts.tolist()}


def summarise(config: Config, record: Record) -> dict[str, Any]:
    """Each arm at its last recorded round: average, centre (the best informed agent) and edges."""
    held = (np.array(record.shares["counts"]) > 0).sum(1)
    centre = int(held.argmax())
    rows: dict[str, dict[str, Any]] = {}
    for arm in record.arms():
        last = {name: record.select(arm, name)[-1] for name in record.metrics()}
        edges = np.delete(last["accuracy"], centre)
        rows[arm] = {
            "rounds": int(record.rounds(arm)[-1]),
            "average_accuracy": float(last["accuracy"].mean()),
            "center_accuracy": float(last["accuracy"][centre]),
            "edge_accuracy": float(edges.mean()) if edges.size else None,
            **{name: float(last[name].mean()) for name in AVERAGES},
        }
        if (error := record.error_of_average(arm, "accuracy")) is not None:
            rows[arm]["average_accuracy_se"] = float(error[-1])
    first = rows[record.arms()[0]]
    return {
        "dataset": config.dataset,
        "tested_on": f"{config.validation} held-out training examples" if config.validation else "test set",
        "rounds": first["rounds"],
        "replicates": config.replicates,
        "center": centre,
        "labels_held": held.tolist(),
        **{name: first[name] for name in ("average_accuracy", "center_accuracy", "nll", "ece")},
        "arms": rows,
    }
