"""Arrays of examples: checked, made of one kind, and kept in .npz archives without pickles."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from consilience.data.labels import numbered
from consilience.errors import InputError, brief, printable
from consilience.files.reading import reading
from consilience.machine.memory import require

ARCHIVE = b"PK\x03\x04"  # how an .npz begins, as every zip file with something in it


def read_arrays(field: str, file: Path, needed: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """The arrays of an archive, which must have these."""
    with reading(field, file), file.open("rb") as stream:
        if stream.read(len(ARCHIVE)) != ARCHIVE:
            raise InputError("it is not an archive of arrays")
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as archive:
            if missing := [name for name in needed if name not in archive]:
                raise InputError(f"must have the arrays {', '.join(needed)}, it has no {', '.join(missing)}")
            require(2 * sum(member.file_size for member in archive.zip.infolist()), "unpacked")
            arrays = {name: archive[name] for name in archive.files}
    for name in needed:
        if arrays[name].ndim == 0:
            raise InputError(f"{field}: '{file}': {name} must have one entry for each example, got a single value")
    if "x" in needed:
        x, y = check_pair(arrays["x"], arrays["y"], f"{field}: '{file}'")
        arrays |= {"x": x, "y": y}
    return arrays


def as_archive(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Arrays as the content of an .npz, the same for the same arrays."""
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **dict(arrays))
    return content.getvalue()


def check_pair(x: Any, y: Any, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Inputs as they are kept (bytes, or floats of four bytes, all finite), and as many targets.

    >>> check_pair([[1, 2]], [0], "shares[0]")[0].dtype.name
    'float32'
    """
    inputs, targets = check_inputs(x, where), as_text(np.asarray(y))
    if targets.ndim != 1 or len(targets) != len(inputs):
        shape = " × ".join(map(str, targets.shape)) or "a single value"
        raise InputError(f"{where}: y must hold {len(inputs)} targets, one for each row of x, got {shape}")
    return inputs, targets


def check_alike(inputs: Mapping[str, np.ndarray], where: str) -> None:
    """Refuse inputs of different shapes or kinds."""
    first, *others = inputs.items()
    for name, x in others:
        if x.shape[1:] != first[1].shape[1:] or x.dtype != first[1].dtype:
            one, other = (f"{brief(who)} has {each.dtype}{list(each.shape[1:])}" for who, each in (first, (name, x)))
            raise InputError(f"{where}: inputs must be alike, {one}, {other}")


def as_text(array: np.ndarray) -> np.ndarray:
    """Text that was kept as Python objects, as data frames do, as text; anything else as it is."""
    if array.dtype.kind == "O" and array.ndim == 1 and all(isinstance(each, str) for each in array):
        return array.astype(np.str_)
    return array


def check_inputs(x: Any, where: str) -> np.ndarray:
    """Inputs as they are kept: a row for each example, bytes or floats of four bytes, all finite."""
    inputs = np.asarray(x)
    if inputs.ndim < 2:
        raise InputError(f"{where}: x must have a row for each example, its shape is {inputs.shape}")
    if inputs.dtype.kind not in "buif":
        raise InputError(f"{where}: x must hold numbers, it holds {str(inputs.dtype)[:60]}")
    if inputs.dtype == np.uint8:  # images
        return inputs
    with np.errstate(over="ignore"):
        kept = inputs.astype(np.float32)
    if not (finite := np.isfinite(kept)).all():
        at = tuple(int(k) for k in np.unravel_index(finite.argmin(), finite.shape))
        raise InputError(f"{where}: x[{', '.join(map(str, at))}] must be finite and below 3.4e38, got {inputs[at]:g}")
    return kept


def numbered_or_numbers(
    y: Mapping[str, np.ndarray], where: str, of_numbers: bool = False
) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """Targets of all agents: labels (text, booleans, whole numbers) are numbered together; floats stay numbers.

    Where numbers are predicted (`of_numbers`), whole ones are numbers too: counts are.

    >>> numbered_or_numbers({"a": np.array(["x"]), "b": np.array(["y", "x"])}, "shares")[1]
    ('x', 'y')
    """
    some = {name: np.asarray(each) for name, each in y.items() if len(each)}
    if not some:
        raise InputError(f"{where}: nobody has any data")
    floats = [name for name, each in some.items() if each.dtype.kind in ("fiu" if of_numbers else "f")]
    if floats and len(floats) < len(some):
        other = next(name for name in some if name not in floats)
        raise InputError(f"{where}: targets must be of one kind, {brief(floats[0])} has numbers, {brief(other)} labels")
    if floats:
        for name, each in some.items():
            with np.errstate(over="ignore"):
                fits = np.isfinite(each.astype(np.float32))
            if not fits.all():
                row = int(fits.argmin())
                raise InputError(
                    f"{where}.{printable(name)}: y[{row}] must be finite and below 3.4e38, got {each[row]}"
                )
        return {name: np.asarray(each, np.float64) for name, each in y.items()}, ()
    together = np.concatenate(list(some.values()))
    codes, _, names = numbered(together, together[:0], lambda row: f"{where}: y[{row}]", lambda row: "")
    ends = np.cumsum([len(each) for each in some.values()])
    split = dict(zip(some, np.split(codes, ends[:-1]), strict=True))
    return {name: split.get(name, np.zeros(0, np.int32)) for name in y}, names
