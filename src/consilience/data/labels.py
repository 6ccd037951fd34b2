"""Labels as they come in files, and as they are kept: a number for each, and a name for each number.

A label's name is part of the name of a column in a record and of a line in a figure, so it is one line of text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Int

from consilience.errors import InputError, brief

LONGEST = 100  # characters of a name
EXACT = 2**53  # below it a float holds every whole number
Place = Callable[[int], str]  # where a label is, for a message


def numbered(
    y: np.ndarray | list[str], y_test: np.ndarray | list[str], place: Place, place_test: Place
) -> tuple[Int[np.ndarray, "examples"], Int[np.ndarray, "tests"], tuple[str, ...]]:
    """The labels' numbers for training and for testing, and their names: text in its order, numbers in theirs."""
    training, testing = _plain(y, place), _plain(y_test, place_test)
    if training.dtype.kind != testing.dtype.kind:
        raise InputError(f"labels must be of one kind, got {_kind(training)} for training and {_kind(testing)} to test")
    distinct, codes = np.unique(np.concatenate([training, testing]), return_inverse=True)
    names = tuple(str(name) for name in distinct)
    told_apart(names)
    codes = codes.astype(np.int32)
    return codes[: len(training)], codes[len(training) :], names


def _plain(labels: np.ndarray | list[str], place: Place) -> np.ndarray:
    """Labels as text, whole numbers or booleans; what is none of them is refused."""
    if isinstance(labels, np.ndarray) and labels.dtype.kind == "S":
        labels = np.char.decode(labels, "utf-8")
    if isinstance(labels, list) or labels.dtype.kind == "U":
        texts = labels if isinstance(labels, list) else labels.tolist()
        for text in dict.fromkeys(texts):
            if rule := unfit(text):
                raise InputError(f"{place(texts.index(text))} {rule}, got {brief(text)}")
        return np.array(texts, np.str_)
    if labels.dtype.kind == "b":
        return labels
    if labels.dtype.kind == "f":
        wrong = ~(np.isfinite(labels) & (labels == np.round(labels)) & (np.abs(labels) <= EXACT))
    elif labels.dtype.kind in "iu":
        wrong = labels > np.iinfo(np.int64).max
    else:
        raise InputError(f"{place(0)} must be text or a whole number, got {_kind(labels)}")
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError(f"{place(row)} must be text or a whole number, held exactly, got {labels[row]}")
    return labels.astype(np.int64)


def unfit(text: str) -> str | None:
    """The rule that a name breaks, if any.

    >>> unfit("benign"), unfit(" benign")
    (None, 'must not begin or end with a space')
    """
    if not text:
        return "must not be empty"
    if len(text) > LONGEST:
        return f"must have at most {LONGEST} characters"
    if text != text.strip():
        return "must not begin or end with a space"
    if not text.isprintable():
        return "must be one line of printable text"
    number = as_number(text)
    return "must not be a missing or infinite number" if number is not None and not math.isfinite(number) else None


def told_apart(names: Sequence[str]) -> None:
    """Refuse names that mean the same number, or share a column of a record (`_se` is a standard error's)."""
    by_value: dict[float, str] = {}
    known = set(names)
    for name in names:
        if f"{name}_se" in known:
            raise InputError(f"labels {brief(name)} and {brief(name + '_se')} would share a column of the record")
        if (value := as_number(name)) is not None and (other := by_value.setdefault(value, name)) != name:
            raise InputError(f"labels {brief(other)} and {brief(name)} are the same number")


def as_number(text: str) -> int | float | None:
    """The number that a label is called by, if any."""
    for kind in (int, float):  # whole numbers beyond 2^53 are told apart only as such
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def values_of(names: Sequence[str]) -> np.ndarray:
    """Labels as they were before they were given names: whole numbers and booleans, where all are called so, else text.

    >>> [values_of(names).tolist() for names in (("2", "10"), ("False", "True"), ("2", "two"), ("07", "8"))]
    [[2, 10], [False, True], ['2', 'two'], ['07', '8']]
    """
    if all(name in ("False", "True") for name in names):
        return np.array([name == "True" for name in names])
    numbers = [as_number(name) for name in names]
    whole = all(isinstance(number, int) and str(number) == name for number, name in zip(numbers, names, strict=True))
    return np.array(numbers, np.int64) if whole else np.array(names)


def _kind(labels: np.ndarray) -> str:
    return {"U": "text", "i": "whole numbers", "b": "booleans"}.get(labels.dtype.kind, str(labels.dtype)[:60])


def label_number(names: Sequence[str], label: int | str, field: str = "label", dataset: str = "the data") -> int:
    """A label's number from its name, or from its number where no label is called like a number."""
    name = label if isinstance(label, str) or abs(label) >= 2**63 else str(label)  # no label is a larger number
    if name in names:
        return names.index(name)
    if isinstance(label, int) and 0 <= label < len(names) and all(as_number(known) is None for known in names):
        return label
    known = ", ".join(names[:12]) + (f", … {len(names)} labels" if len(names) > 12 else "")
    raise InputError(f"{field}: no label {brief(label)} in {dataset}; it has {known}")
