"""The idx format of the MNIST family: arrays of bytes behind a short header."""

from __future__ import annotations

import gzip
import hashlib
import struct
import zlib
from pathlib import Path

import numpy as np

from consilience.errors import InputError


def read_idx(file: Path, sha256: str | None = None) -> np.ndarray:
    """Read an idx file of bytes, gzipped or not; refuse one that is truncated or whose checksum is another.

    The checksum is that of the uncompressed content, so that it is the same whatever the file came in.
    """
    try:
        content = file.read_bytes()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"data: cannot read '{file}': {error}") from None
    if sha256 is not None and (found := hashlib.sha256(content).hexdigest()) != sha256:
        raise InputError(f"data: '{file}' is damaged or another file: its sha256 is {found[:12]}…, not {sha256[:12]}…")
    if len(content) < 4 or content[:3] != b"\x00\x00\x08":
        raise InputError(f"data: '{file}' is not an idx file of bytes")
    axes = content[3]
    if len(content) < 4 + 4 * axes:
        raise InputError(f"data: '{file}' is truncated, its header is incomplete")
    shape = struct.unpack(f">{axes}I", content[4 : 4 + 4 * axes])
    body = np.frombuffer(content, np.uint8, offset=4 + 4 * axes)
    if body.size != np.prod(shape, dtype=np.int64):
        raise InputError(f"data: '{file}' is truncated, it has {body.size} of {np.prod(shape, dtype=np.int64)} bytes")
    return body.reshape(shape)
