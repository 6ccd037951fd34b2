"""Checkpoints: arrays in a safetensors file, written atomically, one at a time, with checksums; no pickle.

The header's metadata holds the position in the run, the checksum of every array, and a checksum of the header itself:
not a byte of a checkpoint can change unnoticed. The checkpoint before is kept, so that one damaged file ends no run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open

from consilience.errors import InputError
from consilience.files.whole import PIECE, replacing, sha256_of

TYPES = {  # as the format names them
    "bool": "BOOL",
    "uint8": "U8",
    "int32": "I32",
    "uint32": "U32",
    "int64": "I64",
    "float32": "F32",
    "float64": "F64",
}
BLANK = "0" * 64  # in the place of a checksum that is not known yet, or not counted
LONGEST_HEADER = 1 << 26
LARGE = 1 << 24  # bytes of an array whose checksum is worth a thread of its own


class Header(NamedTuple):
    """What a checkpoint says before its arrays: where the run stood, the arrays' checksums, and where each one is."""

    position: dict[str, Any]
    checksums: dict[str, str]
    places: dict[str, tuple[int, int]]  # in the file
    kinds: dict[str, tuple[str, tuple[int, ...]]]


def before(file: Path) -> Path:
    """Where the checkpoint before is kept."""
    return file.with_name(f"{file.stem}-before{file.suffix}")


def save_checkpoint(
    file: Path, like: Any, arrays: Iterable[np.ndarray], position: dict[str, Any], keep: bool = True
) -> None:
    """Write where the run stands and the arrays of a tree of these shapes, in its order, each as it comes.

    `keep`: the one before.
    """
    leaves = _named_leaves(like)
    checksums = {name: BLANK for name, _ in leaves}
    with replacing(file, keep=before(file) if keep else None) as stream, ThreadPoolExecutor(1) as beside:
        stream.write(_header(leaves, position, checksums))
        for (name, leaf), array in zip(leaves, arrays, strict=True):
            if array.shape != leaf.shape or array.dtype != leaf.dtype:
                raise ValueError(f"{name} must be {leaf.dtype}{list(leaf.shape)}, is {array.dtype}{list(array.shape)}")
            content = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
            if len(content) < LARGE:
                stream.write(content)
                checksums[name] = hashlib.sha256(content).hexdigest()
                continue
            counted = beside.submit(hashlib.sha256, content)  # while it is written
            stream.write(content)
            checksums[name] = counted.result().hexdigest()
        stream.seek(0)
        stream.write(_header(leaves, position, checksums))  # of the same length


def load_checkpoint(file: Path, like: Any) -> tuple[dict[str, Any], Iterator[np.ndarray]]:
    """Where the run stood, and the arrays of a tree of these shapes and types, in its order, each read when asked.

    Everything has been checked by then.
    """
    header = read_header(file)
    for name, leaf in _named_leaves(like):
        if header.kinds.get(name) != (TYPES[leaf.dtype.name], tuple(leaf.shape)):
            got = f"{header.kinds[name][0]}{list(header.kinds[name][1])}" if name in header.kinds else "nothing"
            raise InputError(f"checkpoint: '{file}' must hold {name} as {leaf.dtype}{list(leaf.shape)}, got {got}")
    check_arrays(file, header)
    return header.position, _arrays(file, [name for name, _ in _named_leaves(like)])


def read_header(file: Path) -> Header:
    """What a checkpoint says before its arrays, checked."""
    try:
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if not 0 < length <= LONGEST_HEADER:
                raise ValueError("its header has an impossible length")
            text = stream.read(length)
        with safe_open(file, framework="numpy"):  # its own checks: the arrays fill the file
            pass
        content = json.loads(text)
        about = content.pop("__metadata__")
        own = about["header"]
        if len(own) != len(BLANK) or sha256_of(text.replace(own.encode(), BLANK.encode())) != own:
            raise ValueError("its header does not have its checksum")
        position, checksums = json.loads(about["position"]), json.loads(about["checksums"])
        if not (isinstance(position, dict) and isinstance(checksums, dict)):
            raise ValueError("its position or its checksums are no table")
        places = {name: tuple(8 + length + end for end in part["data_offsets"]) for name, part in content.items()}
        kinds = {name: (part["dtype"], tuple(part["shape"])) for name, part in content.items()}
        return Header(position, checksums, places, kinds)
    except (OSError, SafetensorError, KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"checkpoint: '{file}' cannot be read: {why}") from None


def check_arrays(file: Path, header: Header) -> None:
    """Refuse arrays that do not have their checksums."""
    room = memoryview(bytearray(PIECE))
    with file.open("rb", buffering=0) as stream:
        for name, (begin, end) in header.places.items():
            total, left = hashlib.sha256(), end - begin
            stream.seek(begin)
            while left and (got := stream.readinto(room[: min(left, PIECE)])):
                total.update(room[:got])
                left -= got
            if total.hexdigest() != header.checksums.get(name):
                raise InputError(f"checkpoint: '{file}' is damaged: {name} does not have its checksum")


def _arrays(file: Path, names: list[str]) -> Iterator[np.ndarray]:
    for name in names:
        with safe_open(file, framework="numpy") as content:  # anew each time: what was read can be forgotten
            array: np.ndarray = content.get_tensor(name)
        yield array


def _header(leaves: list[tuple[str, Any]], position: dict[str, Any], checksums: dict[str, str]) -> bytes:
    """The header with the length before it; its own checksum is that of the header with a blank in its place."""
    about = {"position": json.dumps(position), "checksums": json.dumps(checksums), "header": BLANK}
    content: dict[str, Any] = {"__metadata__": about}
    end = 0
    for name, leaf in leaves:
        begin, end = end, end + int(np.prod(leaf.shape)) * leaf.dtype.itemsize
        content[name] = {"dtype": TYPES[leaf.dtype.name], "shape": list(leaf.shape), "data_offsets": [begin, end]}
    text = json.dumps(content).encode()
    text += b" " * (-len(text) % 8)  # so that numbers are aligned
    own = f'"header": "{sha256_of(text)}"'.encode()
    return len(text).to_bytes(8, "little") + text.replace(f'"header": "{BLANK}"'.encode(), own)


def _named_leaves(tree: Any) -> list[tuple[str, Any]]:
    import jax  # not before arrays are read or written: a header is read without it

    return [(jax.tree_util.keystr(place), leaf) for place, leaf in jax.tree_util.tree_leaves_with_path(tree)]
