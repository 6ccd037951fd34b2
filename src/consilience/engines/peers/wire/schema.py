"""What a message holds: exactly these arrays, of these types and shapes, at these places of its body.

A body is a safetensors file. Its header follows from the schema, so who knows the schema knows the first bytes of
every body, and need not read any header that somebody else wrote.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from consilience.files.whole import sha256_of
from consilience.runs.checkpoint import TYPES

ON_WIRE = {**TYPES, "float16": "F16"}
OWNED = "/"  # between whose it is and what it is, in the names of arrays of several owners


class Leaf(NamedTuple):
    """One array: its name, type and shape."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)

    @property
    def stored(self) -> np.dtype[Any]:
        """Its type as it is sent: the lowest byte first, whatever this machine does."""
        return np.dtype(self.dtype).newbyteorder("<")


@dataclass(frozen=True)
class Schema:
    """The arrays of a message, in order.

    >>> belief = Schema.of({"precision": np.ones(3, np.float32), "precision_mean": np.zeros(3, np.float32)})
    >>> belief.leaves[0], belief.bytes
    (Leaf(name='precision', dtype='float32', shape=(3,)), 168)
    """

    leaves: tuple[Leaf, ...]

    def __post_init__(self) -> None:
        names = [leaf.name for leaf in self.leaves]
        if len(set(names)) < len(names) or "__metadata__" in names or not names:
            raise ValueError(f"arrays of a message need a name each, got {names}")
        if odd := [leaf.name for leaf in self.leaves if leaf.dtype not in ON_WIRE or min(leaf.shape, default=1) < 0]:
            raise ValueError(f"arrays of these types or shapes are not sent: {', '.join(odd)}")

    @classmethod
    def of(cls, tree: Any) -> Schema:
        """Of a tree of arrays, or of what stands for them: shapes with types. Names are the places in the tree."""
        leaves = named(tree).items()
        return cls(tuple(Leaf(name, np.dtype(leaf.dtype).name, tuple(leaf.shape)) for name, leaf in leaves))

    def of_each(self, owners: Sequence[str]) -> Schema:
        """The same arrays of each of several owners: what a message of sites holds.

        >>> [leaf.name for leaf in Schema((Leaf("precision", "float32", (3,)),)).of_each(["0", "4"]).leaves]
        ['0/precision', '4/precision']
        """
        each = (leaf._replace(name=f"{owner}{OWNED}{leaf.name}") for owner in owners for leaf in self.leaves)
        return Schema(tuple(each))

    @cached_property
    def header(self) -> bytes:
        """The first bytes of every body: the length of what follows, and where which array is."""
        end, content = 0, {}
        for leaf in self.placed:
            begin, end = end, end + leaf.size * leaf.stored.itemsize
            content[leaf.name] = {
                "dtype": ON_WIRE[leaf.dtype],
                "shape": list(leaf.shape),
                "data_offsets": [begin, end],
            }
        text = json.dumps(content, separators=(",", ":")).encode("ascii")
        text += b" " * (-len(text) % 8)
        return len(text).to_bytes(8, "little") + text

    @cached_property
    def hash(self) -> str:
        """The name of the schema: two that differ in anything have different ones."""
        return sha256_of(self.header)

    @cached_property
    def bytes(self) -> int:
        """How long a body is."""
        return len(self.header) + sum(leaf.size * leaf.stored.itemsize for leaf in self.leaves)

    @cached_property
    def placed(self) -> tuple[Leaf, ...]:
        """The arrays in the order of a body: large types first, so that every number is aligned."""
        return tuple(sorted(self.leaves, key=lambda leaf: -leaf.stored.itemsize))

    def places(self) -> Iterator[tuple[Leaf, int]]:
        """Each array, and where in a body it begins."""
        at = len(self.header)
        for leaf in self.placed:
            yield leaf, at
            at += leaf.size * leaf.stored.itemsize


def named(tree: Any) -> dict[str, Any]:
    """The arrays of a tree by name: a table of arrays as it is, anything else by the places in it."""
    if isinstance(tree, Mapping) and all(isinstance(k, str) and hasattr(v, "dtype") for k, v in tree.items()):
        return dict(tree)
    import jax  # not before a tree is looked at: most of the wire needs none of it

    return {jax.tree_util.keystr(place): leaf for place, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def by_owner(arrays: Mapping[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """The arrays of each owner, of a message that holds those of several.

    >>> by_owner({"0/precision": np.ones(1), "4/precision": np.ones(1)})["4"]
    {'precision': array([1.])}
    """
    found: dict[str, dict[str, np.ndarray]] = {}
    for name, array in arrays.items():
        owner, _, what = name.partition(OWNED)
        found.setdefault(owner, {})[what] = array
    return found
