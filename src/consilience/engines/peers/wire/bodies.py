"""Bodies: the arrays of a message as a safetensors file, written and read by a schema that both ends know.

Nothing that somebody else wrote is parsed: a body has the length of the schema, begins with its bytes, and the rest is
numbers. What these may be is checked before anybody computes with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from consilience.engines.peers.wire.frames import Buffer, Pieces, Refused
from consilience.engines.peers.wire.half import halved, on_wire, restored
from consilience.engines.peers.wire.schema import Leaf, Schema

PRECISION = "precision"  # how the names of precisions end
CROOKED = 1e-5  # of its largest entry: by how much the halves of a precision may differ


class Bounds(NamedTuple):
    """Between which values a precision may be: of beliefs more than 0, of sites from 0, of running sums anything.

    Of a full precision, [..., d, d], these are its eigenvalues.
    """

    least: float
    most: float


def encoded(arrays: Mapping[str, Any], schema: Schema, form: str = "exact") -> bytes:
    """The body of a message: these arrays, which are exactly those of the schema, as they are or in half the bytes.

    >>> belief = {"precision": np.full(3, 4.0, np.float32), "precision_mean": np.zeros(3, np.float32)}
    >>> body = encoded(belief, Schema.of(belief))
    >>> decoded(body, Schema.of(belief), Bounds(1e-3, 1e6))["precision"]
    array([4., 4., 4.], dtype=float32)
    """
    return b"".join(laid_out(arrays, schema, form))


def laid_out(arrays: Mapping[str, Any], schema: Schema, form: str = "exact") -> Pieces:
    """The same body where it lies: the schema's own bytes and those of every array, none copied that need not be.

    Until they have been sent, nobody may write to these arrays.
    """
    if set(arrays) != {leaf.name for leaf in schema.leaves}:
        raise ValueError(f"a message of {sorted(leaf.name for leaf in schema.leaves)} was given {sorted(arrays)}")
    values = {leaf.name: _as_described(arrays[leaf.name], leaf) for leaf in schema.leaves}
    sent = on_wire(schema, form)
    if form == "half":
        values = halved(values)
    parts = (np.ascontiguousarray(values[leaf.name], leaf.stored).reshape(-1).view(np.uint8) for leaf in sent.placed)
    return (sent.header, *(part.data for part in parts))


def decoded(body: Buffer, schema: Schema, bounds: Bounds, form: str = "exact") -> dict[str, np.ndarray]:
    """The arrays of a body, in place: not a byte is copied, and none is taken that is not as expected.

    Whatever differs from the schema, is not finite or is a precision out of bounds is refused.
    """
    sent = on_wire(schema, form)
    if len(body) != sent.bytes:
        raise Refused("length", f"a message must have {sent.bytes} bytes, got {len(body)}")
    if memoryview(body)[: len(sent.header)] != sent.header:
        raise Refused("schema", f"a message must hold {_listed(sent)}, and says that it holds something else")
    arrays = {
        leaf.name: np.frombuffer(body, leaf.stored, leaf.size, at).reshape(leaf.shape) for leaf, at in sent.places()
    }
    if form == "half":
        arrays = restored(arrays, schema)
    for leaf in schema.leaves:
        check(leaf.name, arrays[leaf.name], bounds)
    return {leaf.name: arrays[leaf.name] for leaf in schema.leaves}


def check(name: str, array: np.ndarray, bounds: Bounds) -> None:
    """Refuse values that are not finite, and precisions out of bounds."""
    if array.size == 0 or array.dtype.kind != "f":
        return
    low, high = array.min(), array.max()  # both are NaN where any value is
    if not (np.isfinite(low) and np.isfinite(high)):
        raise Refused("finite", f"{name}: every value must be finite")
    if not name.endswith(PRECISION):
        return
    slack = 0.0
    if _is_full(array):
        low, high, slack = _eigenvalues(name, array)
    if not (low >= bounds.least - slack and high <= bounds.most + slack):
        raise Refused("precision", f"{name}: must be from {bounds.least:g} to {bounds.most:g}, got {low:g} to {high:g}")


def _is_full(array: np.ndarray) -> bool:
    return array.ndim >= 2 and array.shape[-1] == array.shape[-2]


def _eigenvalues(name: str, array: np.ndarray) -> tuple[Any, Any, float]:
    """The smallest, the largest, and what of them may be rounding: that of a sum of so many numbers of this type."""
    with np.errstate(all="ignore"):  # numbers near the end of their range: what becomes of them is out of bounds
        largest = float(np.abs(array).max())
        crooked = float(np.abs(array - np.swapaxes(array, -1, -2)).max())
        if not crooked <= CROOKED * largest:
            raise Refused("precision", f"{name}: must be symmetric, its halves differ by {crooked:g}")
        try:
            values = np.linalg.eigvalsh(np.asarray(array, np.float64))
        except np.linalg.LinAlgError:
            values = np.array([np.nan])
        if not np.isfinite(values).all():
            raise Refused("precision", f"{name}: must have eigenvalues, and has none that can be found")
        low, high = values.min(), values.max()
        return low, high, array.shape[-1] * float(np.finfo(array.dtype).eps) * float(max(abs(low), abs(high)))


def _as_described(value: Any, leaf: Leaf) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.name != leaf.dtype or array.shape != leaf.shape:
        must = f"{leaf.dtype}{list(leaf.shape)}"
        raise ValueError(f"{leaf.name} must be {must}, is {array.dtype}{list(array.shape)}")
    return array


def _listed(schema: Schema) -> str:
    leaves = [f"{leaf.name} {leaf.dtype}{list(leaf.shape)}" for leaf in schema.leaves]
    return ", ".join(leaves[:4]) + (f" and {len(leaves) - 4} more" if len(leaves) > 4 else "")
