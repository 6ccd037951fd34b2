"""Whether inputs are of about the size that learners expect, which begin with weights of one size for all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

FAR = 10.0  # times the spread that inputs should have


def unscaled(inputs: np.ndarray, names: Sequence[str] = ()) -> str | None:
    """What to say of the input that is farthest from a mean of 0 and a standard deviation of 1, if it is far.

    `names` are those of the columns, where they are described. Images in bytes are scaled when they are used.

    >>> unscaled(np.array([[0.0, 100.0], [1.0, 300.0]]), ["age", "dose"])[:57]
    "'dose' has a mean of 200 and a standard deviation of 100;"
    >>> unscaled(np.array([[0.0], [1.0]]))
    """
    if inputs.dtype == np.uint8 or not inputs.size:
        return None
    rows = inputs.reshape(len(inputs), -1)
    mean = rows.mean(axis=0, dtype=np.float64)
    square = np.einsum("ij,ij->j", rows, rows, dtype=np.float64) / len(rows)
    sd = np.sqrt(np.maximum(square - mean**2, 0))
    size = np.maximum(np.abs(mean), sd)
    if not size.max() > FAR:
        return None
    worst = int(size.argmax())
    place = ", ".join(map(str, np.unravel_index(worst, inputs.shape[1:])))
    name = repr(names[worst]) if names else f"x[:, {place}]"
    how = "centre and scale of its column" if names else "(x - mean) / sd, with the same numbers for everybody"
    return (
        f"{name} has a mean of {mean[worst]:.3g} and a standard deviation of {sd[worst]:.3g}; "
        f"inputs are learnt well only if they are scaled to about 0 and 1: {how}"
    )
