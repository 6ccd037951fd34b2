"""The rule and the schedules written plainly, to hold the package to: agents with mailboxes, one after another.

Nothing here is imported from the package, and nothing is fast. Time is exact (fractions), so that no rounding decides
who has finished and what has arrived.
"""

from fractions import Fraction
from typing import NamedTuple

import numpy as np


class Turn(NamedTuple):
    """Who learns; for everybody who hears, its row: (sender, how many publications ago, weight); the time."""

    learners: list
    rows: dict
    time: float


def play(initial, turns, learn, first=1):
    """After each turn: what everybody holds, and what everybody said last. learn(round, agent, belief) -> belief."""
    held = [np.asarray(belief, float) for belief in initial]
    mail = [[belief] for belief in held]  # all that everybody ever said; before that, what it began with
    for number, turn in enumerate(turns, first):
        for agent in turn.learners:
            held[agent] = learn(number, agent, held[agent])
            mail[agent].append(held[agent])
        for agent, row in turn.rows.items():
            held[agent] = sum(weight * mail[sender][max(len(mail[sender]) - 1 - age, 0)] for sender, age, weight in row)
        yield np.array(held), np.array([said[-1] for said in mail])


def counts(agents, turns):
    """How often agent j's evidence counts in agent i's belief: everybody's evidence is its own direction."""
    *_, (held, _) = play(
        np.zeros((agents, agents)), turns, lambda number, agent, belief: belief + np.eye(agents)[agent]
    )
    return held


def contraction(agents, turns):
    """How much of a difference between initial beliefs can be left: nobody learns anything new."""
    *_, (held, _) = play(np.eye(agents), turns, lambda number, agent, belief: belief)
    return max(np.abs(one - other).sum() / 2 for one in held for other in held)


def fixed(W, number):
    everybody = range(len(W))
    return Turn([*everybody], {i: [(j, 0, W[i, j]) for j in everybody if W[i, j] > 0] for i in everybody}, number)


def rotating_star(edges, at_once, trust, number):
    group = [1 + ((number - 1) * at_once + k) % edges for k in range(at_once)]
    rows = {0: [(i, 0, 1 / (at_once + 1)) for i in [0, *group]]}
    return Turn([0, *group], rows | {i: [(0, 0, trust), (i, 0, 1 - trust)] for i in group}, number)


def gossip(pairs, number):
    rows = {i: [(i, 0, 0.5), (j, 0, 0.5)] for pair in pairs for i, j in (pair, pair[::-1])}
    return Turn(sorted(rows), rows, number)


def clocks(W, durations, delay, staleness, tick, there, turns):
    """Turn by turn, clocks are read: who has finished a round of its own since the last reading, and is there, acts."""
    everybody = range(len(W))
    finished = [0 for _ in everybody]
    published = [[] for _ in everybody]  # when
    for number in range(1, turns + 1):
        now, before = number * tick, finished
        finished = [now // durations[i] for i in everybody]
        acting = [i for i in everybody if finished[i] > before[i] and there[number][i]]
        for i in acting:
            published[i].append(now)
        rows = {i: [] for i in acting}
        for i in acting:
            for j in np.flatnonzero(W[i]):
                arrived = [when for when in published[j] if when + (delay[j][i] if i != j else 0) <= now]
                if arrived and now - arrived[-1] <= staleness:
                    rows[i].append((j, len(published[j]) - len(arrived), W[i, j]))
            if (kept := 1 - sum(weight for _, _, weight in rows[i])) > 1e-12:
                rows[i].append((i, 0, kept))
        yield Turn(acting, rows, float(now))


def lossy(turn, arrived):
    """Weight that did not arrive returns to the agent itself. arrived: for every message, row after row."""
    rows, arrived = {}, iter(arrived)
    for agent, row in turn.rows.items():
        came = [next(arrived) or sender == agent for sender, _, _ in row]
        lost = sum(message[2] for message, here in zip(row, came, strict=True) if not here)
        own = next((age for sender, age, _ in row if sender == agent), 0)
        rows[agent] = [message for message, here in zip(row, came, strict=True) if here] + [(agent, own, lost)]
    return turn._replace(rows=rows)


def churn(turns, there):
    """Who is away does not learn, hear or speak, and what it would have said is not heard later either."""
    said = [[True] for _ in there[0]]  # whether it happened, for everything that everybody was to say
    for number, turn in enumerate(turns, 1):
        here = there[number]
        for agent in turn.learners:
            said[agent].append(here[agent])
        rows, arrived = {agent: [] for agent in turn.rows if here[agent]}, []
        for agent, row in rows.items():
            for sender, age, weight in turn.rows[agent]:
                meant = max(len(said[sender]) - 1 - age, 0)
                row.append((sender, sum(said[sender][meant + 1 :]), weight))
                arrived.append(here[sender] and said[sender][meant])
        yield lossy(Turn([agent for agent in turn.learners if here[agent]], rows, turn.time), arrived)


def unheard(turn):
    """Who would hear others hears itself."""
    return turn._replace(rows={i: [(i, 0, 1.0)] for i in turn.rows})


def plain(turn):
    """A turn of the package, its messages in the same order."""
    rows = {}
    for receiver, sender, age, weight in zip(turn.receivers, turn.senders, turn.ages, turn.weights, strict=True):
        rows.setdefault(int(receiver), []).append((int(sender), int(age), float(weight)))
    return Turn(turn.learners.tolist(), rows, turn.time)


def differences(one, other):
    """What two turns do not have in common, in words; nothing where they are the same."""
    if one.learners != other.learners:
        yield f"learners {one.learners} and {other.learners}"
    if one.rows.keys() != other.rows.keys():
        yield f"receivers {sorted(one.rows)} and {sorted(other.rows)}"
    if abs(one.time - other.time) > 1e-9 * max(1, abs(other.time)):
        yield f"time {one.time} and {other.time}"
    for agent in one.rows.keys() & other.rows.keys():
        weights = {}
        for row, sign in ((one.rows[agent], 1), (other.rows[agent], -1)):
            for sender, age, weight in row:
                weights[sender, age] = weights.get((sender, age), 0) + sign * weight
        for (sender, age), weight in weights.items():
            if abs(weight) > 1e-9:
                yield f"agent {agent} hears {sender}, age {age}, with {weight:+g}"


def as_fractions(numbers):
    """Decimal fractions as they are written, not as they are stored."""
    return np.vectorize(lambda x: Fraction(str(x)), otypes=[object])(np.asarray(numbers))
