"""What is taken for what: the confusion matrices that a record ends with."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from consilience.experiments.images.measure import taken_for
from consilience.runs.record import Record


def at_the_end(record: Record, centre: int) -> dict[str, Float[np.ndarray, "true chosen"]]:
    """How often each label is taken for each other one by the centre, and by the edges on average, in the first arm.

    A run records it with `confusion = true`.
    """
    arm, columns = record.arms()[0], taken_for(record.shares["label_names"])
    labels, agents = len(record.shares["label_names"]), record.select(arm, "accuracy").shape[1]
    taken = np.zeros((labels, labels, agents))
    for name, pair in columns.items():
        taken[pair] = record.select(arm, name)[-1]
    edges = np.delete(taken, centre, axis=2)
    return {"centre": taken[:, :, centre], **({"edges": edges.mean(2)} if edges.size else {})}
