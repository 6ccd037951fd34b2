"""A user's own examples from a file, .npz, .csv or .parquet; what does not fit is named by its place and the rule."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from consilience.data.columns import Labels, Table, read_csv, read_parquet
from consilience.data.labels import numbered
from consilience.errors import InputError, brief
from consilience.files.reading import reading
from consilience.machine.memory import require

ARCHIVE = b"PK\x03\x04"  # how an .npz begins, as every zip file with something in it
ARRAYS = ("x", "y", "x_test", "y_test")
TEST = "test"
EVERY = 5  # without a column that says which rows are for testing, every fifth one is
TABLES = {".csv": read_csv, ".parquet": read_parquet}
OWN_FILES = (".npz", *TABLES)


class Examples(NamedTuple):
    """Inputs and labels for training and testing, and the labels' names."""

    inputs: np.ndarray
    labels: np.ndarray
    test_inputs: np.ndarray
    test_labels: np.ndarray
    label_names: tuple[str, ...]


def own_examples(file: Path, field: str = "dataset") -> Examples:
    """Read an npz with x, y, x_test and y_test; or a table with a column `label`, and perhaps `test` (0 or 1)."""
    with reading(field, file):
        found = _from_arrays(*_arrays(file)) if file.suffix == ".npz" else _from_table(TABLES[file.suffix](file))
    return found


def _arrays(file: Path) -> list[np.ndarray]:
    with file.open("rb") as stream:
        if stream.read(len(ARCHIVE)) != ARCHIVE:
            raise InputError(f"it is not an archive of the arrays {', '.join(ARRAYS)}")
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as archive:
            if missing := [name for name in ARRAYS if name not in archive]:
                raise InputError(f"must have {', '.join(ARRAYS)}, it has no {', '.join(missing)}")
            if len(set(archive.files)) < len(archive.files):
                raise InputError(f"must have each array once, it has {brief(', '.join(archive.files))}")
            # Unpacked, and once more as they are kept: a small archive can hold more than there is memory.
            require(2 * sum(member.file_size for member in archive.zip.infolist()), "unpacked")
            arrays = [archive[name] for name in ARRAYS]
    for name, part in zip(ARRAYS, arrays, strict=True):
        if not isinstance(part, np.ndarray) or part.ndim == 0:
            raise InputError(f"{name} must be an array with one entry for each example, got a single value")
        if len(part) == 0:
            raise InputError(f"{name} must have at least one example, got none")
    return arrays


def _from_arrays(x: np.ndarray, y: np.ndarray, x_test: np.ndarray, y_test: np.ndarray) -> Examples:
    for name, inputs, labels in (("", x, y), ("_test", x_test, y_test)):
        if labels.ndim != 1 or len(labels) != len(inputs):
            shape = " × ".join(map(str, labels.shape))
            raise InputError(f"y{name} must hold {len(inputs)} labels, one for each example in x{name}, got {shape}")
        if inputs.dtype.kind not in "buif":
            raise InputError(f"x{name} must hold numbers, it holds {str(inputs.dtype)[:60]}")
        if not inputs.size:
            raise InputError(f"x{name} must have no empty axis, its shape is {inputs.shape}")
    if x.shape[1:] != x_test.shape[1:]:
        shapes = [" × ".join(map(str, part.shape[1:])) or "single numbers" for part in (x, x_test)]
        raise InputError(f"x and x_test must have examples of one shape, got {shapes[0]} and {shapes[1]}")
    if (x.dtype == np.uint8) != (x_test.dtype == np.uint8):  # bytes are scaled to [0, 1], other numbers are not
        raise InputError(f"x and x_test must both be bytes or neither, got {x.dtype} and {x_test.dtype}")
    codes, test_codes, names = numbered(y, y_test, lambda row: f"y[{row}]", lambda row: f"y_test[{row}]")
    inputs, test_inputs = (
        _fitting(part, lambda *at, name=name: f"{name}[{', '.join(map(str, at))}]")
        for name, part in (("x", x), ("x_test", x_test))
    )
    return Examples(inputs, codes, test_inputs, test_codes, names)


def _from_table(table: Table) -> Examples:
    features = {name: column for name, column in table.columns.items() if name != TEST}
    if not features:
        raise InputError(f"must have a column of inputs, besides 'label' and '{TEST}'")
    if not len(table.labels):
        raise InputError("must have rows, got none below the names")
    names = list(features)
    inputs = _fitting(np.stack(list(features.values()), axis=1), lambda row, k: table.place(row, names[k]))
    held_out = _held_out(table)
    training, testing = np.flatnonzero(~held_out), np.flatnonzero(held_out)
    codes, test_codes, label_names = numbered(
        _taken(table.labels, training),
        _taken(table.labels, testing),
        lambda row: table.place(int(training[row]), "label"),
        lambda row: table.place(int(testing[row]), "label"),
    )
    return Examples(inputs[training], codes, inputs[testing], test_codes, label_names)


def _held_out(table: Table) -> np.ndarray:
    """Which rows are for testing."""
    rows = len(table.labels)
    if TEST not in table.columns:
        if rows < EVERY:
            raise InputError(f"must have {EVERY} rows, one of them to test on, or a column '{TEST}'; got {rows} rows")
        return np.asarray(np.arange(rows) % EVERY == EVERY - 1)
    marks = table.columns[TEST]
    wrong = (marks != 0) & (marks != 1)
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError(f"{table.place(row, TEST)} must be 0 or 1, got {marks[row]:g}")
    if marks.min() == marks.max():
        what = "training" if marks[0] else "testing"
        raise InputError(f"column '{TEST}' is {int(marks[0])} in every row, so there is none for {what}")
    return np.asarray(marks == 1)


def _taken(labels: Labels, rows: np.ndarray) -> Labels:
    return [labels[row] for row in rows] if isinstance(labels, list) else labels[rows]


def _fitting(values: np.ndarray, place: Callable[..., str]) -> np.ndarray:
    """Inputs as they are kept: bytes, or else floats of four bytes, all of them finite."""
    if values.dtype == np.uint8:
        return values
    with np.errstate(over="ignore"):
        kept = values.astype(np.float32)
    finite = np.isfinite(kept)
    if not finite.all():
        at = tuple(int(k) for k in np.unravel_index(finite.argmin(), finite.shape))
        rule = f"at most {np.finfo(np.float32).max:.2g} in size" if np.isfinite(values[at]) else "finite"
        raise InputError(f"{place(*at)} must be {rule}, got {values[at]:g}")
    return kept
