"""Checkpoints: arrays in a safetensors file, written atomically, one at a time; no pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import SafetensorError, safe_open

from consilience.errors import InputError

UNFINISHED = ".part"
TYPES = {  # as the format names them
    "bool": "BOOL",
    "uint8": "U8",
    "int32": "I32",
    "uint32": "U32",
    "int64": "I64",
    "float32": "F32",
    "float64": "F64",
}


def write_atomically(file: Path, content: bytes) -> None:
    """Replace a file as a whole: after a crash it holds either what it held before or all of the new content."""
    write_pieces_atomically(file, [content])


def write_pieces_atomically(file: Path, pieces: Iterable[Any]) -> None:
    """The same, with content that is made while it is written."""
    beside = file.with_name(f".{file.name}.{os.getpid()}{UNFINISHED}")
    try:
        with beside.open("wb") as stream:
            for piece in pieces:
                stream.write(piece)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)


def clear_unfinished(folder: Path) -> None:
    """Remove what killed processes were writing; only for who holds the folder alone."""
    for file in folder.glob(f".*{UNFINISHED}"):
        file.unlink(missing_ok=True)


def save_checkpoint(file: Path, like: Any, arrays: Iterable[np.ndarray], position: dict[str, Any]) -> None:
    """Write where the run stands and the arrays of a tree of these shapes, in its order, each as it comes."""
    header: dict[str, Any] = {"__metadata__": {"position": json.dumps(position)}}
    end = 0
    for name, leaf in _named_leaves(like):
        begin, end = end, end + int(np.prod(leaf.shape)) * leaf.dtype.itemsize
        header[name] = {"dtype": TYPES[leaf.dtype.name], "shape": list(leaf.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # so that numbers are aligned

    def pieces() -> Iterator[Any]:
        yield len(text).to_bytes(8, "little") + text
        for (name, leaf), array in zip(_named_leaves(like), arrays, strict=True):
            if array.shape != leaf.shape or array.dtype != leaf.dtype:
                raise ValueError(f"{name} must be {leaf.dtype}{list(leaf.shape)}, is {array.dtype}{list(array.shape)}")
            yield np.ascontiguousarray(array).reshape(-1).view(np.uint8).data

    write_pieces_atomically(file, pieces())


def load_checkpoint(file: Path, like: Any) -> tuple[dict[str, Any], Iterator[np.ndarray]]:
    """Where the run stood, and the arrays of a tree of these shapes and types, in its order, each read when asked."""
    try:
        with safe_open(file, framework="numpy") as content:
            position = json.loads((content.metadata() or {})["position"])
            if not isinstance(position, dict):
                raise ValueError("its position is not a table")
            found = {name: content.get_slice(name) for name in content.keys()}  # noqa: SIM118  (not a dict)
            kinds = {name: (part.get_dtype(), tuple(part.get_shape())) for name, part in found.items()}
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise InputError(f"checkpoint: '{file}' cannot be read: {error}") from None
    for name, leaf in _named_leaves(like):
        if kinds.get(name) != (TYPES[leaf.dtype.name], tuple(leaf.shape)):
            got = f"{kinds[name][0]}{list(kinds[name][1])}" if name in kinds else "nothing"
            raise InputError(f"checkpoint: '{file}' must hold {name} as {leaf.dtype}{list(leaf.shape)}, got {got}")
    return position, _arrays(file, [name for name, _ in _named_leaves(like)])


def _arrays(file: Path, names: list[str]) -> Iterator[np.ndarray]:
    for name in names:
        with safe_open(file, framework="numpy") as content:  # anew each time: what was read can be forgotten
            array: np.ndarray = content.get_tensor(name)
        yield array


def _named_leaves(tree: Any) -> list[tuple[str, Any]]:
    return [(jax.tree_util.keystr(place), leaf) for place, leaf in jax.tree_util.tree_leaves_with_path(tree)]
