"""A turn: what happens in one round, as a value, and the rule for what does not arrive."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float, Int

from consilience.errors import InputError

TOLERANCE = 1e-8


class Turn(NamedTuple):
    """One round.

    learners: the agents that learn from their data and publish, in order.
    receivers, senders, weights: the rows of W_t of those that pool, sorted by receiver; without a row a belief stays.
    ages: how many publications of the sender ago the belief was current that is heard; 0 is the newest.
    time: on the simulated clock, at the end of the turn.
    """

    learners: Int[np.ndarray, "learners"]
    receivers: Int[np.ndarray, "edges"]
    senders: Int[np.ndarray, "edges"]
    weights: Float[np.ndarray, "edges"]
    ages: Int[np.ndarray, "edges"]
    time: float

    def matrix(self, agents: int) -> Any:
        """W_t as a sparse matrix: who does not pool has 1 on its diagonal."""
        idle = np.setdiff1d(np.arange(agents), self.receivers)
        rows, columns = (np.concatenate([part, idle]) for part in (self.receivers, self.senders))
        return sp.csr_array(
            (np.concatenate([self.weights, np.ones(len(idle))]), (rows, columns)), shape=(agents, agents)
        )


_NOBODY = np.zeros(0, np.int32)
IDLE = Turn(_NOBODY, _NOBODY, _NOBODY, np.zeros(0), _NOBODY, 0.0)  # nobody does anything


def rows_of(W: Any) -> tuple[Any, Any, Any, Any]:
    """Receivers, senders, weights and ages (all new) of a matrix's nonzero entries."""
    receivers = np.repeat(np.arange(W.shape[0], dtype=np.int32), np.diff(W.indptr))
    return receivers, W.indices.astype(np.int32), W.data, np.zeros(W.nnz, np.int32)


def with_arrived(turn: Turn, arrived: Any) -> Turn:
    """The turn in which only some messages arrive: the others' weight returns to the receiver itself (design, rule 4).

    >>> both = np.array([0, 0], np.int32), np.array([0, 1], np.int32), np.array([0.3, 0.7]), np.array([0, 0], np.int32)
    >>> with_arrived(Turn(np.array([0], np.int32), *both, 1.0), np.array([True, False])).weights.tolist()
    [1.0]
    """
    own = turn.receivers == turn.senders
    hearing, place = np.unique(turn.receivers, return_inverse=True)
    lost = np.bincount(place, np.where(own | arrived, 0.0, turn.weights), minlength=len(hearing))
    missing = np.setdiff1d(hearing, turn.receivers[own])
    kept = own | arrived
    weights = turn.weights + np.where(own, lost[place], 0.0)
    # Who has no edge to itself gets one for what is lost.
    extra = missing[lost[np.searchsorted(hearing, missing)] > 0].astype(np.int32)
    receivers = np.concatenate([turn.receivers[kept], extra])
    order = np.argsort(receivers, kind="stable")
    return Turn(
        turn.learners,
        receivers[order],
        np.concatenate([turn.senders[kept], extra])[order],
        np.concatenate([weights[kept], lost[np.searchsorted(hearing, extra)]])[order],
        np.concatenate([turn.ages[kept], np.zeros(len(extra), np.int32)])[order],
        turn.time,
    )


def check_turn(turn: Turn, agents: int, number: int) -> None:
    """Refuse agents that are not there or heard twice, weights that are not a distribution, and rows out of order."""
    where = f"schedule: round {number}"
    for what, part in (("learner", turn.learners), ("receiver", turn.receivers), ("sender", turn.senders)):
        if len(wrong := part[(part < 0) | (part >= agents)]):
            raise InputError(f"{where} names {what} {wrong[0]}, there are agents 0 to {agents - 1}")
    in_order = np.sort(turn.learners)
    if len(twice := in_order[:-1][np.diff(in_order) == 0]):
        raise InputError(f"{where} has agent {twice[0]} learn twice")
    if not (np.isfinite(turn.weights) & (turn.weights >= 0)).all():
        raise InputError(f"{where} has a weight that is negative or not finite")
    if (np.diff(turn.receivers) < 0).any():
        raise InputError(f"{where} must be sorted by receiver")
    pairs = np.sort(turn.receivers.astype(np.int64) * agents + turn.senders)
    if len(twice := pairs[:-1][np.diff(pairs) == 0]):
        raise InputError(f"{where} has agent {twice[0] // agents} hear agent {twice[0] % agents} twice")
    if (turn.ages < 0).any():
        raise InputError(f"{where} has a negative age")
    sums = np.bincount(turn.receivers, turn.weights, minlength=agents)
    wrong_rows = np.flatnonzero((np.abs(sums - 1) > TOLERANCE) & np.isin(np.arange(agents), turn.receivers))
    if len(wrong_rows):
        row = wrong_rows[0]
        more = "above" if sums[row] > 1 else "below"
        raise InputError(f"{where}: the weights of agent {row} sum to {sums[row]:.10g}, {more} 1")
