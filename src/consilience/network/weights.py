"""Weight rules: from who hears whom (a sparse adjacency) to how much (a sparse W)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp

from consilience.errors import InputError

Rule: TypeAlias = Literal["uniform", "metropolis"]


def uniform(heard: Any) -> Any:
    """Equal weights over the neighbours and oneself: W_ij = 1/|N(i)| (Sec. 4.2.2).

    >>> uniform(sp.csr_array([[0, 1], [1, 0]])).toarray().tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    mask = _pattern(heard) + sp.eye_array(heard.shape[0], format="csr")
    mask.data[:] = 1.0
    return sp.csr_array(sp.diags_array(1 / mask.sum(axis=1)) @ mask)


def metropolis(heard: Any) -> Any:
    """Metropolis weights 1/(1 + max degree of the two) on an undirected graph: symmetric, so every agent counts alike.

    >>> metropolis(sp.csr_array([[0, 1, 1], [1, 0, 0], [1, 0, 0]])).toarray().round(2).tolist()
    [[0.33, 0.33, 0.33], [0.33, 0.67, 0.0], [0.33, 0.0, 0.67]]
    """
    links = _pattern(heard)
    links.setdiag(0)
    links.eliminate_zeros()
    if (links != links.T).nnz:
        raise InputError("weights: metropolis needs an undirected graph, got one where some agent is not heard back")
    degree = np.diff(links.indptr)
    links = links.tocoo()
    W = sp.csr_array((1 / (1 + np.maximum(degree[links.row], degree[links.col])), (links.row, links.col)), links.shape)
    return sp.csr_array(W + sp.diags_array(1 - W.sum(axis=1)))


def lazy(W: Any, laziness: float) -> Any:
    """Keep `laziness` of the weight for oneself before listening: aI + (1−a)W. It makes any irreducible W aperiodic.

    >>> lazy(sp.csr_array([[0.0, 1.0], [1.0, 0.0]]), 0.25).toarray().tolist()
    [[0.25, 0.75], [0.75, 0.25]]
    """
    if not 0 <= laziness < 1:
        raise InputError(f"laziness: must be at least 0 and below 1, got {laziness}")
    return sp.csr_array(laziness * sp.eye_array(W.shape[0]) + (1 - laziness) * W)


RULES: dict[Rule, Callable[[Any], Any]] = {"uniform": uniform, "metropolis": metropolis}


def _pattern(heard: Any) -> Any:
    """Ones where there is an edge."""
    mask = sp.csr_array(heard, dtype=np.float64, copy=True)
    mask.eliminate_zeros()
    mask.data[:] = 1.0
    return mask
