"""What a run tells as a file `NAME.json`: small enough to be kept with the code, and refused where it is damaged."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from consilience.errors import InputError
from consilience.files.sealed import sealed, unsealed
from consilience.files.strict_json import strict_json
from consilience.files.whole import write_atomically
from consilience.paper.told import Told

DIGITS = 6  # significant ones of every number that was measured
EXACT = ("configuration", "facts")  # what a run was to do is compared, to the last digit


def write(told: Told, file: Path) -> None:
    """Write what a run tells, a line for every field."""
    lines = [f"{strict_json(key)}: {strict_json(value, None)}" for key, value in sealed(values_of(told)).items()]
    write_atomically(file, ("{\n" + ",\n".join(lines) + "\n}\n").encode())


def read(file: Path) -> Told:
    """What a run told, as it was written."""
    try:
        known = unsealed(file.read_bytes())
    except OSError as error:
        raise InputError(f"run: cannot read '{file}': {error.strerror}") from None
    if known is None:
        raise InputError(
            f"run: '{file}' is damaged, it does not have its checksum; remove it to have the run told anew"
        )
    try:
        return from_values(known)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError(
            f"run: '{file}' is not what a run tells, or of another version; remove it to have the run told anew"
        ) from None


def values_of(told: Told) -> dict[str, Any]:
    """What a run tells in plain values; what was measured with six digits."""
    return {key: value if key in EXACT else rounded(value) for key, value in told._asdict().items()}


def from_values(known: Mapping[str, Any]) -> Told:
    """What a run told, from plain values."""
    if extra := set(known) - set(Told._fields):
        raise ValueError(extra)
    return Told(
        name=known["name"],
        configuration=dict(known["configuration"]),
        facts=dict(known["facts"]),
        summary=dict(known["summary"]),
        rounds=np.array(known["rounds"], int),
        by_seed=np.array(known["by_seed"], float),
        by_agent=np.array(known["by_agent"], float),
        confidences={
            who: {label: np.array(curve, float) for label, curve in curves.items()}
            for who, curves in known["confidences"].items()
        },
        confusions={who: np.array(matrix, float) for who, matrix in known["confusions"].items()},
        label_names=tuple(known["label_names"]),
        counts=np.array(known["counts"], int),
    )


def rounded(value: Any) -> Any:
    """Arrays as lists, and numbers with as many digits as anybody needs.

    >>> rounded({"accuracy": np.array([0.97549998760])}), rounded(float("inf")), rounded(1234567)
    ({'accuracy': [0.9755]}, None, 1234567)
    """
    if isinstance(value, np.ndarray):
        return rounded(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): rounded(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(inner) for inner in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if isfinite(value) else None
    return value
