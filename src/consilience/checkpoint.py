"""Checkpoints: arrays in a safetensors file, written atomically; no pickle."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from consilience.errors import InputError

Tree = TypeVar("Tree")


def write_atomically(file: Path, content: bytes) -> None:
    """Replace a file as a whole: after a crash it holds either what it held before or all of the new content."""
    beside = file.with_name(f".{file.name}.{os.getpid()}.part")
    with beside.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    beside.replace(file)


def save_checkpoint(file: Path, tree: Any, position: dict[str, Any]) -> None:
    """Write the arrays of a tree and where the run stands."""
    arrays = {name: np.ascontiguousarray(leaf) for name, leaf in _named_leaves(tree)}
    write_atomically(file, save(arrays, metadata={"position": json.dumps(position)}))


def load_checkpoint(file: Path, like: Tree) -> tuple[Tree, dict[str, Any]]:
    """Read a tree of NumPy arrays with the structure, shapes and types of `like`, and where the run stood."""
    try:
        with safe_open(file, framework="numpy") as content:
            position = json.loads((content.metadata() or {})["position"])
            if not isinstance(position, dict):
                raise ValueError("its position is not a table")
            arrays = {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118  (not a dict)
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise InputError(f"checkpoint: '{file}' cannot be read: {error}") from None
    expected = dict(_named_leaves(like))
    for name, leaf in expected.items():
        found = arrays.get(name)
        if found is None or found.shape != tuple(leaf.shape) or found.dtype != leaf.dtype:
            got = "nothing" if found is None else f"{found.dtype}{list(found.shape)}"
            raise InputError(f"checkpoint: '{file}' must hold {name} as {leaf.dtype}{list(leaf.shape)}, got {got}")
    leaves = [arrays[name] for name in expected]
    return jax.tree.unflatten(jax.tree.structure(like), leaves), position


def _named_leaves(tree: Any) -> list[tuple[str, Any]]:
    return [(jax.tree_util.keystr(place), leaf) for place, leaf in jax.tree_util.tree_leaves_with_path(tree)]
