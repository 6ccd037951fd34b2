"""A model's parameters as few large arrays: what elementwise updates run over fastest; and as one vector to send."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

Blocks: TypeAlias = tuple[Array, ...]
SMALL = 4096  # leaves below this size share one block: a loop of their own would cost more than their numbers do


class Packing(NamedTuple):
    """How a pytree of parameters is laid out: each large leaf is a block of two axes, all small ones the last block.

    >>> packing = packing_of({"w": jnp.zeros((200, 784)), "c": jnp.zeros(200)})
    >>> [block.shape for block in packing.pack({"w": jnp.ones((200, 784)), "c": jnp.ones(200)})]
    [(200, 784), (1, 200)]
    """

    structure: Any
    shapes: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return sum(math.prod(shape) for shape in self.shapes)

    def pack(self, tree: Any) -> Blocks:
        """A tree of parameters as blocks."""
        leaves = jax.tree.leaves(tree)
        small = [leaf.reshape(-1) for leaf in leaves if leaf.size < SMALL]
        tail = (jnp.concatenate(small)[None],) if small else ()
        return tuple(leaf.reshape(*_two_axes(leaf.shape)) for leaf in leaves if leaf.size >= SMALL) + tail

    def unpack(self, blocks: Blocks) -> Any:
        """Blocks as a tree of parameters."""
        large = iter(blocks)
        leaves: list[Any] = [next(large).reshape(s) if math.prod(s) >= SMALL else None for s in self.shapes]
        start = 0
        for number, shape in enumerate(self.shapes):
            if leaves[number] is None:
                leaves[number] = blocks[-1][0, start : start + math.prod(shape)].reshape(shape)
                start += math.prod(shape)
        return jax.tree.unflatten(self.structure, leaves)

    def flatten(self, blocks: Blocks) -> Float[Array, "size"]:
        """Blocks as one vector."""
        return jnp.concatenate([block.reshape(-1) for block in blocks])

    def split(self, vector: Float[Array, "size"]) -> Blocks:
        """One vector as blocks."""
        return _cut(vector, self.block_shapes())

    def in_order(self) -> Int[np.ndarray, "size"]:
        """Where in the one vector the numbers of a tree are, leaf after leaf, each row by row.

        >>> packing_of({"c": jnp.zeros(2), "w": jnp.zeros((2, 2048))}).in_order()[:4].tolist()
        [4096, 4097, 0, 1]
        """
        small = [math.prod(shape) < SMALL for shape in self.shapes]
        sizes = np.array([math.prod(shape) for shape in self.shapes])
        order = np.argsort(small, kind="stable")  # large leaves come first
        begins = np.empty(len(sizes), np.int64)
        begins[order] = np.cumsum(sizes[order]) - sizes[order]
        return np.concatenate([begin + np.arange(size) for begin, size in zip(begins, sizes, strict=True)])

    def block_shapes(self) -> list[tuple[int, int]]:
        """The shapes of the blocks."""
        small = sum(math.prod(shape) for shape in self.shapes if math.prod(shape) < SMALL)
        large = [_two_axes(shape) for shape in self.shapes if math.prod(shape) >= SMALL]
        return [*large, (1, small)] if small else large


def packing_of(tree: Any) -> Packing:
    """The packing for parameters like these."""
    return Packing(jax.tree.structure(tree), tuple(leaf.shape for leaf in jax.tree.leaves(tree)))


def split_like(blocks: Blocks, vector: Float[Array, "size"]) -> Blocks:
    """One vector as blocks of the shapes that these have."""
    return _cut(vector, [block.shape for block in blocks])


def _cut(vector: Float[Array, "size"], shapes: Sequence[tuple[int, ...]]) -> Blocks:
    blocks, start = [], 0
    for rows, columns in shapes:
        blocks.append(vector[start : start + rows * columns].reshape(rows, columns))
        start += rows * columns
    return tuple(blocks)


def _two_axes(shape: tuple[int, ...]) -> tuple[int, int]:
    rows = shape[0] if len(shape) == 2 else math.prod(shape[:-1])
    return rows, math.prod(shape) // rows
