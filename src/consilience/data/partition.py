"""Partitions: every training example has exactly one owner, so shares are disjoint and complete by construction."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from consilience.errors import InputError
from consilience.files.reading import reading, whole
from consilience.streams import stream

LARGEST_ALPHA = 1e100  # proportions are equal long before; the sums of larger ones overflow
SMALLEST_ALPHA = 1e-100  # one has everything long before; logarithms of what smaller ones leave to others overflow


class Partition(NamedTuple):
    """`owner[k]` is the agent that holds training example k; one that nobody holds has the owner −1."""

    owner: Int[np.ndarray, "examples"]
    agents: int

    def share(self, agent: int) -> Int[np.ndarray, "own"]:
        """The numbers of the examples that an agent holds."""
        return np.flatnonzero(self.owner == agent)

    def sizes(self) -> Int[np.ndarray, "agents"]:
        """How many examples each agent holds."""
        return np.bincount(self.owner[self.owner >= 0], minlength=self.agents)

    def counts(self, labels: Int[np.ndarray, "examples"], kinds: int) -> Int[np.ndarray, "agents kinds"]:
        """How many examples of each label each agent holds."""
        held = self.owner >= 0
        pairs = self.owner[held] * kinds + labels[held]
        return np.bincount(pairs, minlength=self.agents * kinds).reshape(self.agents, kinds)


def iid(examples: int, agents: int, seed: int = 0) -> Partition:
    """Shuffled and dealt out evenly.

    >>> sorted(iid(10, 4).sizes().tolist())
    [2, 2, 3, 3]
    """
    _check_agents(agents)
    owner = np.empty(examples, dtype=np.int64)
    owner[stream("partition", seed).permutation(examples)] = np.arange(examples) * agents // max(examples, 1)
    return _checked(owner, agents)


def by_label(
    labels: Int[np.ndarray, "examples"], holders: Mapping[int, Sequence[int]], agents: int, seed: int = 0
) -> Partition:
    """Each label belongs to its holders; the examples of labels with the same holders are shuffled and dealt out.

    >>> labels = np.array([0, 0, 1, 1, 2, 2])
    >>> by_label(labels, {0: [1, 2], 1: [1, 2], 2: [0]}, agents=3).sizes().tolist()
    [2, 2, 2]
    """
    _check_agents(agents)
    for label, who in holders.items():
        if outside := [agent for agent in who if not 0 <= agent < agents]:
            raise InputError(f"partition: label {label} names agent {outside[0]}, there are agents 0 to {agents - 1}")
        if len(set(who)) < len(who):
            twice = next(agent for agent in who if list(who).count(agent) > 1)
            raise InputError(f"partition: agent {twice} is named twice as a holder of label {label}")
    owner = np.full(len(labels), -1, dtype=np.int64)
    rng = stream("partition", seed)
    groups: dict[tuple[int, ...], list[int]] = {}
    for label, who in holders.items():
        if who:
            groups.setdefault(tuple(who), []).append(label)
    for who, held in groups.items():
        mine = rng.permutation(np.flatnonzero(np.isin(labels, held)))
        owner[mine] = np.asarray(who)[np.arange(len(mine)) * len(who) // max(len(mine), 1)]
    if (owner < 0).any():
        raise InputError(f"partition: label {int(labels[owner < 0][0])} has no holder")
    return _checked(owner, agents)


def dirichlet(labels: Int[np.ndarray, "examples"], agents: int, alpha: float, seed: int = 0) -> Partition:
    """Every label is dealt out in proportions drawn from Dirichlet(α, …, α): small α, very different agents.

    Drawn again (at most 1,000 times) until every agent holds something.
    """
    _check_agents(agents)
    if not 0 < alpha <= LARGEST_ALPHA:
        raise InputError(f"partition: alpha must be above 0 and at most {LARGEST_ALPHA:g}, got {alpha:g}")
    if agents > len(labels):
        raise InputError(f"partition: {len(labels)} examples are too few for {agents} agents")
    rng = stream("partition", seed)
    for _ in range(1000):
        owner = np.empty(len(labels), dtype=np.int64)
        for label in np.unique(labels):
            mine = rng.permutation(np.flatnonzero(labels == label))
            cuts = np.cumsum(rng.dirichlet(np.full(agents, alpha)))[:-1]
            owner[mine] = _dealt(cuts, len(mine))
        if (np.bincount(owner, minlength=agents) > 0).all():
            return Partition(owner, agents)
    raise InputError(
        f"partition: Dirichlet({alpha:g}) leaves some of {agents} agents without data; take a larger alpha"
    )


def skewed(
    labels: Int[np.ndarray, "examples"], agents: int, sizes: float = 1.0, classes: float = 0.5, seed: int = 0
) -> Partition:
    """Agents that differ in how much they hold and in what: some may hold next to nothing, or nothing.

    s ~ Dirichlet(sizes, …) over agents and p_k ~ Dirichlet(classes, …) over labels for every agent k; of label c, agent
    k is dealt the share s_k p_kc / Σ_j s_j p_jc.

    >>> skewed(np.repeat(np.arange(3), 40), agents=4).sizes().tolist()
    [2, 1, 0, 117]
    """
    _check_agents(agents)
    for name, alpha in (("sizes", sizes), ("classes", classes)):
        if not SMALLEST_ALPHA <= alpha <= LARGEST_ALPHA:
            limits = f"from {SMALLEST_ALPHA:g} to {LARGEST_ALPHA:g}"
            raise InputError(f"partition: {name} must be {limits}, got {alpha:g}")
    if not len(labels):
        raise InputError("partition: there are no examples to divide")
    rng, kinds = stream("partition", seed), np.unique(labels)
    log_share = _log_dirichlet(rng, sizes, (1, agents)).T + _log_dirichlet(rng, classes, (agents, len(kinds)))
    owner = np.empty(len(labels), dtype=np.int64)
    for label, logs in zip(kinds, log_share.T, strict=True):
        mine = rng.permutation(np.flatnonzero(labels == label))
        shares = np.exp(logs - logs.max())
        owner[mine] = _dealt(np.cumsum(shares / shares.sum())[:-1], len(mine))
    return Partition(owner, agents)


def shards(labels: Int[np.ndarray, "examples"], agents: int, each: int = 2, seed: int = 0) -> Partition:
    """Sorted by label, cut into agents × each pieces, `each` pieces for every agent at random (McMahan et al. 2017)."""
    _check_agents(agents)
    if each < 1:
        raise InputError(f"partition: each must be at least 1, got {each}")
    if agents * each > len(labels):
        raise InputError(f"partition: {len(labels)} examples cannot be cut into {agents} × {each} pieces")
    order = np.argsort(labels, kind="stable")
    piece = np.arange(len(labels)) * (agents * each) // max(len(labels), 1)
    dealt = stream("partition", seed).permutation(agents * each) // each
    owner = np.empty(len(labels), dtype=np.int64)
    owner[order] = dealt[piece]
    return _checked(owner, agents)


def by_feature(inputs: np.ndarray, agents: int, feature: int) -> Partition:
    """Sorted by one feature and cut into equal shares: agents that see different parts of the input space."""
    _check_agents(agents)
    if not len(inputs):
        raise InputError("partition: there are no examples to divide")
    flat = inputs.reshape(len(inputs), -1)
    if not 0 <= feature < flat.shape[1]:
        raise InputError(f"partition: feature must be 0 to {flat.shape[1] - 1}, got {feature}")
    owner = np.empty(len(flat), dtype=np.int64)
    owner[np.argsort(flat[:, feature], kind="stable")] = np.arange(len(flat)) * agents // len(flat)
    return _checked(owner, agents)


def from_file(file: Path, examples: int, agents: int) -> Partition:
    """A text file with the owner of each training example, one number a line; blank lines are left out."""
    with reading("partition", file), file.open(encoding="utf-8-sig") as lines:
        owners = array("q")
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            owner = whole(line.strip(), f"line {number}")
            if not 0 <= owner < agents:
                raise InputError(f"line {number} names agent {owner}, there are agents 0 to {agents - 1}")
            owners.append(owner)
        if len(owners) != examples:
            raise InputError(f"must name an owner for each of {examples} examples, got {len(owners)}")
    return _checked(np.array(owners, dtype=np.int64), agents)


def _dealt(cuts: Float[np.ndarray, "cuts"], examples: int) -> Int[np.ndarray, "examples"]:
    """The owners of so many examples, in order, cut at these places between 0 and 1."""
    owners: np.ndarray = np.searchsorted((cuts * examples).astype(np.int64), np.arange(examples), side="right")
    return owners


def _log_dirichlet(rng: Any, alpha: float, shape: tuple[int, int]) -> Float[np.ndarray, "draws parts"]:
    """Logarithms of draws from Dirichlet(α, …, α), of which none is −∞: for small α most parts are below any float.

    Gamma(α) is Gamma(α + 1) U^(1/α) with U uniform, and −log U is exponential.
    """
    logs = np.log(rng.standard_gamma(alpha + 1, shape)) - rng.standard_exponential(shape) / alpha
    largest = logs.max(axis=1, keepdims=True)
    drawn: np.ndarray = logs - largest - np.log(np.exp(logs - largest).sum(axis=1, keepdims=True))
    return drawn


def _check_agents(agents: int) -> None:
    if agents < 1:
        raise InputError(f"partition: agents must be at least 1, got {agents}")


def _checked(owner: Int[np.ndarray, "examples"], agents: int) -> Partition:
    empty = np.flatnonzero(np.bincount(owner, minlength=agents) == 0)
    if empty.size:
        raise InputError(f"partition: agent {empty[0]} would hold no data")
    return Partition(owner, agents)
