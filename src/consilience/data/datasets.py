"""Datasets: inputs and labels, for training and for testing, as they are kept in memory."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from consilience.data.idx import read_idx
from consilience.data.own import OWN_FILES, own_examples
from consilience.data.sources import SOURCES, Report, fetch, find, silent
from consilience.errors import InputError, suggestion
from consilience.files.whole import sha256_of
from consilience.streams import stream

FASHION = ("t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle-boot")
EMBEDDED_TEST = 397  # of the 1,797 digits, the last ones, which other people wrote
DIGITS_SHA256 = "ed5d0ee6d5a61b611d6cad96c6bd69386d32550c51b259a59996b65ad132fa6c"  # of its pixels and labels


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


def load_dataset(name: str, folder: Path | None = None, report: Report = silent, field: str = "dataset") -> Dataset:
    """A dataset by its name, or a user's own file (.npz, .csv or .parquet); `field` is where it is named.

    >>> digits = load_dataset("digits")
    >>> digits.inputs.shape, digits.inputs.dtype.name, len(digits.test_labels)
    ((1400, 8, 8), 'uint8', 397)
    """
    if name == "digits":
        return _digits()
    if name in SOURCES:
        return _idx(name, find(name, folder) or fetch(name, report))
    if (file := Path(name)).suffix in OWN_FILES:
        return Dataset(file.stem, *own_examples(file, field))
    neither = f"neither a name nor a file {', '.join(OWN_FILES)}"
    raise InputError(f"{field}: unknown '{name}', {neither}; {suggestion(name, known_datasets())}")


def _digits() -> Dataset:
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    pixels = np.round(images.reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)
    cut = len(pixels) - EMBEDDED_TEST
    names = tuple(map(str, range(10)))
    labels = labels.astype(np.int32)
    if (found := sha256_of(pixels.tobytes() + labels.tobytes())) != DIGITS_SHA256:
        raise InputError(f"dataset: scikit-learn's digits are not the known ones, their sha256 is {found[:12]}…")
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
