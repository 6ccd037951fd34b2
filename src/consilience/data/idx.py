"""The idx format of the MNIST family: arrays of bytes behind a short header."""

from __future__ import annotations

import gzip
import hashlib
import math
import struct
from io import BufferedReader
from pathlib import Path

import numpy as np

from consilience.errors import InputError, brief
from consilience.files.reading import reading

LARGEST = 2**30  # bytes; the largest of the family has 0.55 · 10⁹
GZIP = b"\x1f\x8b"


def read_idx(file: Path, sha256: str | None = None) -> np.ndarray:
    """Read an idx file of bytes, gzipped or not; refuse one that is truncated or whose checksum is another.

    The checksum is that of the uncompressed content, so that it is the same whatever the file came in. No more is
    unpacked than the header promises.
    """
    with reading("data", file), file.open("rb") as packed:
        zipped = packed.read(len(GZIP)) == GZIP
        packed.seek(0)
        with gzip.GzipFile(fileobj=packed) if zipped else packed as stream:
            array = _read(stream, sha256)
    return array


def _read(stream: gzip.GzipFile | BufferedReader, sha256: str | None) -> np.ndarray:
    start = stream.read(4)
    if len(start) < 4 or start[:3] != b"\x00\x00\x08" or start[3] == 0:
        raise InputError("it is not an idx file of bytes")
    axes = start[3]
    lengths = stream.read(4 * axes)
    if len(lengths) < 4 * axes:
        raise InputError("it is truncated, its header is incomplete")
    shape = struct.unpack(f">{axes}I", lengths)
    size = math.prod(shape)
    if not 0 < size <= LARGEST:
        raise InputError(f"must have from 1 to {LARGEST:,} bytes, its header says {brief(shape)}")
    body = stream.read(size + 1)
    if len(body) != size:
        more = "more" if len(body) > size else f"only {len(body)}"
        raise InputError(f"its header says {size} bytes, it has {more}")
    digest = hashlib.sha256(start + lengths)
    digest.update(body)
    if sha256 is not None and (found := digest.hexdigest()) != sha256:
        raise InputError(f"it is damaged or another file: its sha256 is {found[:12]}…, not {sha256[:12]}…")
    return np.frombuffer(body, np.uint8).reshape(shape)
