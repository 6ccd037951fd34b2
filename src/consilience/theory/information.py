"""I_j(θ*, θ): what one round of agent j's data says, on average, against θ and for θ*."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from consilience.errors import InputError


def check_likelihoods(tables: Float[np.ndarray, "agents hypotheses outcomes"]) -> None:
    """Refuse tables that are not positive distributions (assumption 3), naming the agent, hypothesis and outcome."""
    bad = ~(np.isfinite(tables) & (tables > 0))
    if bad.any():
        j, k, y = (int(i) for i in np.argwhere(bad)[0])
        place = f"agent {j}, hypothesis {k}, outcome {y}"
        raise InputError(f"likelihoods: {place} must be greater than 0, got {tables[j, k, y]:g}")
    off = np.abs(tables.sum(-1) - 1) > 1e-8
    if off.any():
        j, k = (int(i) for i in np.argwhere(off)[0])
        raise InputError(f"likelihoods: agent {j}, hypothesis {k} sums to {tables[j, k].sum():.10g}, not 1")


def finite_information(likelihoods: ArrayLike, truth: int, samples: int = 1) -> Float[np.ndarray, "agents hypotheses"]:
    """I_j(θ*, θ) for tables ℓ_j(y | θ) in the realizable case: M · KL(ℓ_j(· | θ*) ‖ ℓ_j(· | θ)).

    `likelihoods` has shape agents × hypotheses × outcomes, `truth` is the number of θ*, `samples` is M.

    >>> finite_information([[[0.5, 0.5], [0.9, 0.1]]], truth=0).round(4).tolist()
    [[0.0, 0.5108]]
    """
    tables = np.asarray(likelihoods, dtype=np.float64)
    if tables.ndim != 3 or not tables.size:
        shape = " × ".join(map(str, tables.shape)) or "one number"
        raise InputError(f"likelihoods: must be agents × hypotheses × outcomes, some of each, got {shape}")
    check_likelihoods(tables)
    if not 0 <= truth < tables.shape[1]:
        raise InputError(f"truth: must be a hypothesis from 0 to {tables.shape[1] - 1}, got {truth}")
    true = tables[:, [truth], :]
    divergence = np.sum(true * (np.log(true) - np.log(tables)), axis=-1)
    return np.asarray(samples * np.maximum(divergence, 0.0))  # rows sum to 1 but for rounding


def gaussian_information(
    second_moments: ArrayLike, noise: float, offset: ArrayLike, samples: int = 1
) -> Float[np.ndarray, "agents"]:
    """I_j(θ*, θ) for y = θᵀφ + N(0, α²): M · dᵀE_j[φφᵀ]d / 2α² with d = θ − θ*.

    `second_moments` holds E_j[φφᵀ], of shape agents × d × d.

    >>> gaussian_information([[[2.0]]], noise=1.0, offset=[3.0]).tolist()
    [9.0]
    """
    d = np.asarray(offset, dtype=np.float64)
    with np.errstate(all="ignore"):
        told = samples * np.einsum("a,jab,b->j", d, np.asarray(second_moments), d) / (2 * np.float64(noise) ** 2)
    if not np.isfinite(told).all():
        raise InputError(
            f"noise: {noise:g} is too small, or the moments too large, for an information that is a number"
        )
    return np.asarray(told)


def hardest_direction(v: Float[np.ndarray, "agents"], second_moments: ArrayLike) -> Float[np.ndarray, "d"]:
    """The unit direction in which a linear model is learned most slowly: the last eigenvector of Σ_j v_j E_j[φφᵀ].

    >>> hardest_direction(np.array([0.5, 0.5]), [np.diag([1.0, 0.0]), np.diag([0.0, 3.0])]).tolist()
    [1.0, 0.0]
    """
    direction = np.linalg.eigh(np.tensordot(v, np.asarray(second_moments), axes=1))[1][:, 0]
    return np.asarray(direction * np.sign(direction[np.argmax(np.abs(direction))]))
