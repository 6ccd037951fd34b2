"""Agents taken out of a network one after another, without a subtraction (Grassmann, Taksar and Heyman).

A network watched only while evidence is with some of its agents is again a network: what goes out to agent k comes back
where k sends it, W_ij + W_ik W_kj / Σ_{l≠k} W_kl. No number here is ever a difference, so that even the smallest
entries of v keep all their digits. Agents that do not hear each other are taken out at once, by a sparse product, those
of few links first; what is left when links abound is treated as a dense matrix.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float, Int
from scipy.linalg import solve_triangular

from consilience.errors import InputError
from consilience.streams import stream

SMALL = 600  # agents that are treated as a dense matrix at once, in their own order
CORE = 5000  # agents that are left when links abound, at most: a dense matrix of 200 MB
BLOCK = 64
SMALLEST = 1e-280  # numbers above this have all their digits, and nothing that is lost below 1e-308 adds up to them


class Level(NamedTuple):
    """Agents that were taken out at once, and those that stayed; what they hear of each other, the former's leaving."""

    gone: Any
    stay: Any
    into: Any  # W_ik / leaving_k, stay × gone
    back: Any  # W_kj, gone × stay
    leaving: Any  # Σ_{l≠k} W_kl

    def joined(self, gone: Any, stay: Any) -> Any:
        """Values of both in the order of the network they come from."""
        both = np.empty((len(self.gone) + len(self.stay), *stay.shape[1:]))
        both[self.gone], both[self.stay] = gone, stay
        return both


class Eliminated(NamedTuple):
    """A network without its agents, taken out level by level and then, from the dense core, one by one.

    order: the agents of the core; the first is the one that is left.
    core: above the diagonal W_ik / leaving_k, below it W_ki, of the network at the time when k was taken out.
    """

    levels: list[Level]
    order: Int[np.ndarray, "core"]
    core: Float[np.ndarray, "core core"]
    leaving: Float[np.ndarray, "core"]

    def stationary(self) -> Float[np.ndarray, "agents"]:
        """v, in the opposite order: v_k = Σ_i v_i W_ik / leaving_k over those who were there with k."""
        v, leaving = np.empty_like(self.leaving), np.empty_like(self.leaving)
        with np.errstate(all="ignore"):
            first = np.eye(len(self.core), 1)[:, 0]
            v[self.order] = solve_triangular(-self.core, first, trans="T", unit_diagonal=True, check_finite=False)
            leaving[self.order] = self.leaving
            for level in reversed(self.levels):
                v, leaving = level.joined(v @ level.into, v), level.joined(level.leaving, leaving)
            v = v / v.max()
            v = v / v.sum()
            # What came to k, v_k leaving_k, is a sum of products; those too small for numbers must not matter in it.
            if not (v * leaving > SMALLEST).all():
                raise InputError("W: some agents count less than 1e-280 times others, beyond the range of numbers")
        return np.asarray(v)

    def solve(self, values: Float[np.ndarray, "agents columns"]) -> Float[np.ndarray, "agents columns"]:
        """The x with (Id − W)x = values and x = 0 for the last agent, whose own equation is not looked at."""
        kept = []
        for level in self.levels:
            kept.append(values[level.gone])
            values = values[level.stay] + level.into @ values[level.gone]
        signed = -self.core
        values = solve_triangular(signed, values[self.order], unit_diagonal=True, check_finite=False)
        values[0] = 0.0
        np.fill_diagonal(signed, self.leaving)
        x = np.empty_like(values)
        x[self.order] = solve_triangular(signed, values, lower=True, check_finite=False)
        for level, its in zip(reversed(self.levels), reversed(kept), strict=True):
            x = level.joined((its + level.back @ x) / level.leaving[:, None], x)
        return np.asarray(x)


def eliminate(W: Any, last: int = 0) -> Eliminated | None:
    """Take out all agents but one; None where links abound among too many.

    >>> W = sp.csr_array([[0.5, 0.5], [0.25, 0.75]])
    >>> eliminate(W).stationary().round(4).tolist()
    [0.3333, 0.6667]
    """
    W, levels = _without_diagonal(sp.csr_array(W)), []
    with np.errstate(all="ignore"):  # what is too small for numbers is looked at in the end
        while (n := W.shape[0]) > SMALL:
            chosen = _independent(W, last)
            fill = W.nnz + _fill(W)[chosen].sum()
            if (len(chosen) < n / 50 or fill > n**2 / 8) and n <= CORE:
                break
            if len(chosen) < n / 500 or fill > CORE**2:
                return None
            level, W = _take_out(W, chosen)
            last = int(np.searchsorted(level.stay, last))
            levels.append(level)
        order = np.concatenate([[last], np.delete(np.arange(n), last)])
        return Eliminated(levels, order, *_dense(W.toarray()[np.ix_(order, order)]))


def _fill(W: Any) -> Any:
    """How many links there are, at most, when an agent is taken out and those who heard it hear those it heard."""
    return np.diff(W.indptr).astype(np.int64) * np.bincount(W.indices, minlength=W.shape[0])


def _independent(W: Any, last: int) -> Any:
    """Agents of few links, no two of which hear each other: those that come before all their neighbours."""
    n = W.shape[0]
    rank = np.empty(n, np.int64)
    rank[np.lexsort((stream("order of elimination", n).random(n), _fill(W)))] = np.arange(n)
    rank[last] = n
    both = sp.csr_array(W + W.T)
    return np.flatnonzero((rank <= n // 2) & (rank < np.minimum.reduceat(rank[both.indices], both.indptr[:-1])))


def _take_out(W: Any, gone: Any) -> tuple[Level, Any]:
    stay = np.setdiff1d(np.arange(W.shape[0]), gone)
    back, heard = W[gone][:, stay], W[stay]
    leaving = back.sum(axis=1)
    into = sp.csc_array(heard[:, gone])
    into = sp.csc_array((into.data / np.repeat(leaving, np.diff(into.indptr)), into.indices, into.indptr), into.shape)
    return Level(gone, stay, into, back, leaving), _without_diagonal(heard[:, stay] + sp.csr_array(into) @ back)


def _without_diagonal(W: Any) -> Any:
    rows = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
    others = rows != W.indices
    return sp.csr_array((W.data[others], (rows[others], W.indices[others])), W.shape)


def _dense(A: Float[np.ndarray, "core core"]) -> tuple[Float[np.ndarray, "core core"], Float[np.ndarray, "core"]]:
    """The same one by one from the last to the second, in blocks: what is before a block waits for all of it."""
    leaving = np.ones(len(A))
    for end in range(len(A), 1, -BLOCK):
        begin = max(end - BLOCK, 0)
        for k in range(end - 1, max(begin, 1) - 1, -1):
            A[k, :begin] += A[k, k + 1 : end] @ A[k + 1 : end, :begin]
            A[:begin, k] += A[:begin, k + 1 : end] @ A[k + 1 : end, k]
            leaving[k] = A[k, :k].sum()
            A[:k, k] /= leaving[k]
            A[begin:k, begin:k] += np.outer(A[begin:k, k], A[k, begin:k])
        A[:begin, :begin] += A[:begin, begin:end] @ A[begin:end, :begin]
    return A, leaving
