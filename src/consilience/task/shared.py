"""What a host holds of a task's data while it is learnt: its own agents' examples once, and who has which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Int

from consilience.data import Partition

NOBODY = -1  # the owner of an example that is not learnt from


class Examples(NamedTuple):
    """Inputs and targets of all agents; and those of a test set that is nobody's, where there is one.

    strangers: inputs of another kind, to be told from those of the test set.
    """

    inputs: np.ndarray
    targets: np.ndarray
    test_inputs: np.ndarray | None = None
    test_targets: np.ndarray | None = None
    strangers: np.ndarray | None = None


class Holding(NamedTuple):
    """Who has which examples: agent i those with the numbers order[offset[i]], order[offset[i] + 1], …, size[i] many.

    The last two have a row a repetition, until it is picked.
    """

    order: Any  # NumPy arrays, which become arrays of the program
    offset: Any
    size: Any

    def of_repetition(self, number: Int[Array, ""]) -> Holding:
        """Who has what in the repetition with this number."""
        return self._replace(offset=self.offset[number], size=self.size[number])

    def with_room(self, rows: int) -> Holding:
        """The same in arrays for so many examples."""
        return self._replace(order=_padded(self.order, rows + 1))


class Shared(NamedTuple):
    """What draws and evaluations read on a host: the examples of its agents, once, however many, and the test set.

    held: who learns from which of them. kept: who is judged by which of them, where agents keep some back for that.
    an_epoch: how many steps an agent makes an epoch, with a row a repetition.
    """

    inputs: Any
    targets: Any
    test_inputs: Any
    test_targets: Any
    held: Holding
    kept: Holding | None
    an_epoch: Any
    strangers: Any = None
    agent: Any = None  # whose evaluation it is

    def of_agent(self, number: Int[Array, ""]) -> Shared:
        """What the evaluation of one agent sees."""
        return self._replace(agent=number)

    def of_repetition(self, number: Int[Array, ""]) -> Shared:
        """What the repetition with this number sees."""
        kept = None if self.kept is None else self.kept.of_repetition(number)
        return self._replace(held=self.held.of_repetition(number), kept=kept, an_epoch=self.an_epoch[number])

    def with_room(self) -> Shared:
        """The same in arrays with room for a few more examples, which nobody has (`room`)."""
        rows = room(len(self.targets))
        return self._replace(
            inputs=_padded(self.inputs, rows),
            targets=_padded(self.targets, rows),
            held=self.held.with_room(rows),
            kept=None if self.kept is None else self.kept.with_room(rows),
        )


def room(size: int, least: int = 64) -> int:
    """The next number up that many sizes share: a multiple of `least`, or of about a thirtieth of it.

    Arrays of one size are one program, which a host compiles once for all whose data nearly have that size.

    >>> [room(size) for size in (1, 64, 65, 1722, 60_000)], room(3, least=8)
    ([64, 64, 128, 1728, 60416], 8)
    """
    step = max(least, 1 << max(size.bit_length() - 6, 0))
    return max(-(-size // step), 1) * step


def _padded(array: np.ndarray, rows: int) -> np.ndarray:
    """The same with zeros behind, or the whole of it where it is longer."""
    more = max(rows - len(array), 0)
    return np.concatenate([array, np.zeros((more, *array.shape[1:]), array.dtype)]) if more else array


def shared(
    examples: Examples,
    held: Sequence[Partition],
    kept: Sequence[Partition] | None,
    an_epoch: Sequence[Int[np.ndarray, "agents"]],
    agents: Int[np.ndarray, "here"],
) -> Shared:
    """The examples of some agents, and the test set; `held` and `kept` have a partition for each repetition.

    Examples of other agents, or of nobody, are left out.
    """
    everything = [*held, *(kept or [])]
    used = np.zeros(len(examples.targets), bool)
    for partition in everything:
        used |= np.isin(partition.owner, agents)
    row_of = np.cumsum(used) - 1
    rows = np.flatnonzero(used)
    return Shared(
        examples.inputs[rows],
        examples.targets[rows],
        examples.test_inputs,
        examples.test_targets,
        _holding(held, agents, row_of),
        None if kept is None else _holding(kept, agents, row_of),
        np.stack(an_epoch).astype(np.int32),
        examples.strangers,
    )


def _holding(
    partitions: Sequence[Partition], agents: Int[np.ndarray, "agents"], row_of: Int[np.ndarray, "examples"]
) -> Holding:
    """Who has what in every repetition, in the rows that are kept."""
    order, offset, before = [], [], 0
    for partition in partitions:
        own = np.flatnonzero(np.isin(partition.owner, agents))
        order.append(row_of[own[np.argsort(partition.owner[own], kind="stable")]])
        sizes = np.where(np.isin(np.arange(partition.agents), agents), partition.sizes(), 0)
        offset.append(before + np.cumsum(sizes) - sizes)
        before += len(own)
    return Holding(
        np.concatenate([*order, [0]]).astype(np.int32),  # never empty, also where nobody has any
        np.stack(offset).astype(np.int32),
        np.stack([partition.sizes() for partition in partitions]).astype(np.int32),
    )
