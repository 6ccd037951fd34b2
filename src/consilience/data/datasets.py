"""Datasets: inputs and labels, for training and for testing, as they are kept in memory."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile

import numpy as np

from consilience.data.idx import read_idx
from consilience.data.sources import SOURCES, Report, fetch, find, silent
from consilience.errors import InputError, suggestion
from consilience.streams import stream

FASHION = ("t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle-boot")
OWN_FILES = (".npz", ".csv", ".parquet")
EMBEDDED_TEST = 397  # of the 1,797 digits, the last ones, which other people wrote


class Dataset(NamedTuple):
    """Training and test examples. Images are bytes and are scaled to [0, 1] only where they are used."""

    name: str
    inputs: np.ndarray
    labels: np.ndarray
    test_inputs: np.ndarray
    test_labels: np.ndarray
    label_names: tuple[str, ...]

    def held_out(self, count: int, seed: int = 0) -> Dataset:
        """Training examples in the place of the test set: to choose settings without looking at the test set.

        >>> digits = load_dataset("digits").held_out(200)
        >>> len(digits.labels), len(digits.test_labels)
        (1200, 200)
        """
        if not 0 <= count < len(self.labels):
            raise InputError(f"validation: must be from 0 to {len(self.labels) - 1}, got {count}")
        if count == 0:
            return self
        shuffled = stream("held out", seed).permutation(len(self.labels))
        out, kept = shuffled[:count], np.sort(shuffled[count:])
        return self._replace(
            inputs=self.inputs[kept],
            labels=self.labels[kept],
            test_inputs=self.inputs[out],
            test_labels=self.labels[out],
        )


def known_datasets() -> dict[str, str]:
    """The datasets by name, and what they are."""
    return {
        "digits": "1,797 handwritten digits of 8 × 8 pixels, embedded (scikit-learn)",
        "mnist": "70,000 handwritten digits of 28 × 28 pixels",
        "fashion-mnist": "70,000 pictures of clothes of 28 × 28 pixels",
    }


def load_dataset(name: str, folder: Path | None = None, report: Report = silent) -> Dataset:
    """A dataset by its name, or a user's own file (.npz, .csv or .parquet).

    >>> digits = load_dataset("digits")
    >>> digits.inputs.shape, digits.inputs.dtype.name, len(digits.test_labels)
    ((1400, 8, 8), 'uint8', 397)
    """
    if name == "digits":
        return _digits()
    if name in SOURCES:
        return _idx(name, find(name, folder) or fetch(name, report))
    if name.endswith(OWN_FILES):
        return _own(Path(name))
    raise InputError(
        f"dataset: unknown '{name}'; {suggestion(name, known_datasets())}, or a file {', '.join(OWN_FILES)}"
    )


def _digits() -> Dataset:
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    pixels = np.round(images.reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)
    cut = len(pixels) - EMBEDDED_TEST
    names = tuple(map(str, range(10)))
    labels = labels.astype(np.int32)
    return Dataset("digits", pixels[:cut], labels[:cut], pixels[cut:], labels[cut:], names)


def _idx(name: str, files: dict[str, Path]) -> Dataset:
    arrays = {file: read_idx(path, SOURCES[name].files[file]) for file, path in files.items()}
    return Dataset(
        name,
        arrays["train-images-idx3-ubyte"],
        arrays["train-labels-idx1-ubyte"].astype(np.int32),
        arrays["t10k-images-idx3-ubyte"],
        arrays["t10k-labels-idx1-ubyte"].astype(np.int32),
        FASHION if name == "fashion-mnist" else tuple(map(str, range(10))),
    )


def _own(file: Path) -> Dataset:
    """A user's file: npz with x, y, x_test, y_test; or a table with a column `label`, and perhaps `test` (0 or 1)."""
    try:
        if file.suffix == ".npz":
            with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
                parts = [arrays[key] for key in ("x", "y", "x_test", "y_test")]
            return _checked(file, *parts)
        columns = _csv_columns(file) if file.suffix == ".csv" else _parquet_columns(file)
    except KeyError as error:
        raise InputError(f"dataset: '{file}' must have x, y, x_test and y_test, {error} is missing") from None
    except (OSError, ValueError, BadZipFile, EOFError) as error:
        raise InputError(f"dataset: cannot read '{file}': {next(iter(str(error).splitlines()), 'damaged')}") from None
    if "label" not in columns:
        raise InputError(f"dataset: '{file}' must have a column 'label', got {', '.join(list(columns)[:6])}")
    labels = columns.pop("label")
    held_out = columns.pop("test", (np.arange(len(labels)) % 5 == 4).astype(float)) > 0  # else every fifth row
    inputs = np.stack(list(columns.values()), axis=1)
    return _checked(file, inputs[~held_out], labels[~held_out], inputs[held_out], labels[held_out])


def _checked(file: Path, x: np.ndarray, y: np.ndarray, x_test: np.ndarray, y_test: np.ndarray) -> Dataset:
    inputs = [part if part.dtype == np.uint8 else part.astype(np.float32) for part in (x, x_test)]
    for part, labels, what in zip(inputs, (y, y_test), ("training", "test"), strict=True):
        if len(part) == 0 or len(part) != len(labels):
            raise InputError(f"dataset: '{file}' has {len(part)} {what} inputs and {len(labels)} labels")
        if not np.isfinite(part).all():
            row = int(np.argwhere(~np.isfinite(part))[0][0])
            raise InputError(f"dataset: '{file}' has a value that is not finite in {what} row {row}")
    names, codes = np.unique(np.concatenate([y, y_test]), return_inverse=True)
    codes = codes.astype(np.int32)
    return Dataset(
        file.stem, inputs[0], codes[: len(y)], inputs[1], codes[len(y) :], tuple(str(name) for name in names)
    )


def _csv_columns(file: Path) -> dict[str, np.ndarray]:
    rows = list(csv.reader(file.read_text(encoding="utf-8").splitlines()))
    if not rows:
        raise ValueError("it is empty")
    header, body = rows[0], rows[1:]
    for number, row in enumerate(body, start=2):
        if len(row) != len(header):
            raise ValueError(f"line {number} has {len(row)} values, the header has {len(header)}")
    values = dict(zip(header, zip(*body, strict=True), strict=True))
    return {key: np.array(column) if key == "label" else np.array(column, float) for key, column in values.items()}


def _parquet_columns(file: Path) -> dict[str, np.ndarray]:
    try:
        import pyarrow.parquet
    except ImportError:
        raise InputError("dataset: reading .parquet needs pyarrow: pip install 'consilience[parquet]'") from None
    table = pyarrow.parquet.read_table(file)
    return {key: table[key].to_numpy() for key in table.column_names}
