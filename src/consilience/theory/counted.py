"""Theory of evidence that counts once: how many of everybody's batches are in everybody's belief, turn after turn.

Where every turn brings new data, a site is all that an agent has learnt from so far, and the log ratio of agent i is a
sum of batches, Σ_j c_ij of agent j's. Its mean is Σ_j c_ij I_j, whatever the turns are. Under sites c_ij is the version
of j's site that i holds. Under tracking it is N z_ij / ω_i: its part of j's batches over its part of the agents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from jaxtyping import Float, Int

from consilience.network.flows import Flows
from consilience.network.schedule import Schedule
from consilience.network.tables import Tables
from consilience.theory.changing import Shares

Counts = Float[np.ndarray, "agents agents"]


def learnt_at(schedule: Schedule, rounds: Sequence[int]) -> list[Int[np.ndarray, "agents"]]:
    """How often everybody has learnt after each of these turns: n_j, of which nothing that is held can be more.

    >>> from consilience.network import RotatingStar
    >>> learnt_at(RotatingStar(edges=4, at_once=2), [3])[0].tolist()
    [3, 2, 2, 1, 1]
    """

    def after_turns() -> Iterator[Int[np.ndarray, "agents"]]:
        learnt = np.zeros(schedule.agents, np.int64)
        for number in range(1, max(rounds) + 1):
            learnt[schedule.turn(number).learners] += 1
            yield learnt

    return _at(rounds, after_turns)


def counted_by_sites(tables: Tables, rounds: Sequence[int]) -> list[Counts]:
    """The version of j's site that agent i holds after each of these turns, which is how many of its batches count.

    >>> from consilience.network import path
    >>> counted_by_sites(Tables(path(3), 5), [5])[0].tolist()  # who is two steps away is heard a turn later
    [[5.0, 5.0, 4.0], [5.0, 5.0, 5.0], [4.0, 5.0, 5.0]]
    """

    def after_turns() -> Iterator[Counts]:
        said, counts = np.zeros(tables.agents, np.int64), np.zeros((tables.agents, tables.agents))
        for number in range(1, max(rounds) + 1):
            turn = tables.turn(number)
            said[turn.learners] += 1
            counts[turn.receivers, turn.senders] = np.maximum(said[turn.senders] - turn.ages, 0)
            yield counts

    return _at(rounds, after_turns)


def counted_by_tracking(flows: Flows, rounds: Sequence[int]) -> list[Counts]:
    """N z_ij / ω_i after each of these turns: how often agent j's batches count, as parts that were given and taken.

    >>> from consilience.network import complete
    >>> counted_by_tracking(Flows(complete(3), 5), [5])[0].round(9).tolist()
    [[5.0, 5.0, 5.0], [5.0, 5.0, 5.0], [5.0, 5.0, 5.0]]
    """
    N = flows.agents

    def after_turns() -> Iterator[Counts]:
        # A column for each agent's batches, and one for the number of agents, of which everybody begins with itself.
        sums = Shares(np.zeros((N, N + 1)), np.zeros((flows.most.age + 1, N, N + 1)))
        sums.held[:, N] = 1
        for number in range(1, max(rounds) + 1):
            turn = flows.turn(number)
            sums.held[turn.learners, turn.learners] += 1
            sums.play(turn, given_away=True)
            yield N * sums.held[:, :N] / sums.held[:, N:]

    return _at(rounds, after_turns)


def _at(rounds: Sequence[int], after_turns: Callable[[], Iterator[np.ndarray]]) -> list[np.ndarray]:
    """What is followed, as it was after each of these turns."""
    wanted = {number: now.copy() for number, now in enumerate(after_turns(), start=1) if number in rounds}
    return [wanted[number] for number in rounds]
