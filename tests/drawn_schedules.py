"""Random schedules, each as the package has it and as the reference understands it."""

from fractions import Fraction

import numpy as np
import reference

from consilience.network import (
    Asynchronous,
    Churn,
    Fixed,
    Gossip,
    Lossy,
    Presence,
    Replay,
    RotatingStar,
    Turn,
    Unheard,
    from_matrix,
)
from consilience.network.schedule import Most, within
from consilience.streams import stream


def random_network(rng, agents):
    """Rows of random weights over random senders: directed, perhaps in pieces, perhaps without weight on oneself."""
    W = np.zeros((agents, agents))
    for row in W:
        heard = rng.choice(agents, rng.integers(1, agents + 1), replace=False)
        row[heard] = rng.dirichlet(np.ones(len(heard)))
    return W


def draw_schedule(rng, agents, turns, room):
    """A schedule that fits into the room, with the reference's turns; where chance finds none, turns made by hand."""
    for _ in range(20):
        drawn = _draw(rng, agents, turns, room)
        if drawn is not None and np.less_equal(drawn[0].most, room).all():
            return drawn
    return _wild(rng, agents, turns, room)


def _draw(rng, agents, turns, room):
    kind = rng.choice([_fixed, _star, _gossip, _clocks, _wild])
    drawn = kind(rng, agents, turns, room)
    for wrap in rng.choice([_lossy, _churn, _unheard, _replay], rng.integers(0, 3)):
        if drawn is not None:
            drawn = wrap(rng, *drawn)
    return drawn


def _fixed(rng, agents, turns, room):
    W = random_network(rng, agents)
    return Fixed(from_matrix(W)), [reference.fixed(W, number) for number in range(1, turns + 1)]


def _star(rng, agents, turns, room):
    if agents == 1:
        return None
    at_once = int(rng.choice([n for n in range(1, agents) if (agents - 1) % n == 0]))
    star = agents - 1, at_once, float(rng.uniform(0.1, 0.9))
    return RotatingStar(*star), [reference.rotating_star(*star, number) for number in range(1, turns + 1)]


def _gossip(rng, agents, turns, room):
    W = random_network(rng, agents)
    linked = (W + W.T > 0) & ~np.eye(agents, dtype=bool)
    if not linked.any():
        return None
    schedule = Gossip(from_matrix(W), bool(rng.integers(2)), int(rng.integers(100)))
    understood = []
    for number in range(1, turns + 1):
        heard = reference.plain(schedule.turn(number)).rows
        pairs = [(i, j) for i, row in heard.items() for j, _, _ in row if i < j]  # who wakes is chance
        free = np.setdiff1d(np.arange(agents), np.ravel(pairs))
        assert all(linked[pair] for pair in pairs)
        assert len(np.unique(pairs)) == 2 * len(pairs)
        assert not linked[np.ix_(free, free)].any() if schedule.matching else len(pairs) == 1
        understood.append(reference.gossip(pairs, number))
    return schedule, understood


def _clocks(rng, agents, turns, room):
    W = random_network(rng, agents)
    tick = float(rng.choice([0.1, 0.3, 0.5, 1.0]))
    durations = np.round(tick * rng.choice([1, 1, 1.3, 2, 2.5, 4], agents), 6)
    delay = np.round(tick * rng.choice([0, 0, 0.3, 1, 2.2, 3], (agents, agents)), 6) * rng.integers(2)
    staleness = float(rng.choice([np.round(1.5 * tick, 6), np.round(4 * tick, 6), np.inf]))
    presence = Presence(agents, 3, 2, int(rng.integers(3))) if rng.integers(2) else None
    schedule = Asynchronous(from_matrix(W), durations, delay, staleness, tick, presence)
    there = [presence.at(n) if presence else np.ones(agents, bool) for n in range(turns + 1)]
    exact = map(reference.as_fractions, (durations, delay))
    oldest = Fraction(str(staleness)) if np.isfinite(staleness) else np.inf
    return schedule, list(reference.clocks(W, *exact, oldest, Fraction(str(tick)), there, turns))


def _wild(rng, agents, turns, room):
    """Turns made by hand: anybody learns, anybody hears anybody, new or old, with weights of zero too."""
    made = []
    for number in range(1, turns + 1):
        learners = rng.choice(agents, rng.integers(0, min(agents, room.learners) + 1), replace=False)
        edges = int(rng.integers(0, room.edges + 1)) if rng.random() < 0.8 else 0
        hearing = rng.choice(agents, rng.integers(0, min(agents, room.receivers, edges) + 1), replace=False)
        rows = {int(i): 1 for i in np.sort(hearing)}
        for i in rng.choice(hearing, edges - len(rows)) if len(rows) else []:
            rows[int(i)] = min(rows[int(i)] + 1, agents)
        for i, degree in rows.items():
            senders = rng.choice(agents, degree, replace=False)
            ages = rng.integers(room.age + 1, size=degree)
            weights = rng.dirichlet(np.ones(degree)) * (rng.random(degree) < 0.8)
            weights = weights / weights.sum() if weights.sum() > 0 else np.full(degree, 1 / degree)
            rows[i] = [(int(j), int(age), w) for j, age, w in zip(senders, ages, weights, strict=True)]
        made.append(reference.Turn(sorted(learners.tolist()), rows, float(number)))
    return Replay(agents, [packed(turn) for turn in made]), made


def packed(turn):
    """A turn of the reference as the package has it."""
    edges = [(i, *message) for i, row in turn.rows.items() for message in row]
    receivers, senders, ages, weights = zip(*edges, strict=True) if edges else ((), (), (), ())
    whole = [np.array(part, np.int32) for part in (turn.learners, receivers, senders)]
    return Turn(*whole, np.array(weights, float), np.array(ages, np.int32), turn.time)


def _lossy(rng, schedule, understood):
    probability, seed = float(rng.choice([0.0, 0.2, 0.7])), int(rng.integers(3))
    layer = sum(isinstance(each, Lossy) for each in within(schedule))
    lost = []
    for number, turn in enumerate(understood, 1):
        order = reference.plain(schedule.turn(number))  # which message has which number is the schedule's own business
        draws = stream("loss", seed, number, layer).random(sum(map(len, order.rows.values())))
        lost.append(reference.lossy(order, draws >= probability)._replace(learners=turn.learners))
    return Lossy(schedule, probability, seed), lost


def _churn(rng, schedule, understood):
    schedule = Churn(schedule, float(rng.choice([1, 3])), float(rng.choice([1, 2])), int(rng.integers(3)))
    there = [schedule.presence.at(number) for number in range(len(understood) + 1)]
    return schedule, list(reference.churn(understood, there))


def _unheard(rng, schedule, understood):
    return Unheard(schedule), [reference.unheard(turn) for turn in understood]


def _replay(rng, schedule, understood):
    return Replay(schedule.agents, [schedule.turn(n) for n in range(1, len(understood) + 1)]), understood


def check_turns(schedule, understood):
    """Who learns, who hears whom at what age with what weight, and that no turn is larger than was said."""
    for number, expected in enumerate(understood, 1):
        turn = schedule.turn(number)
        found = list(reference.differences(reference.plain(turn), expected))
        assert not found, f"turn {number} of {type(schedule).__name__}: " + "; ".join(found)
        size = Most(len(turn.learners), len(np.unique(turn.receivers)), len(turn.senders), turn.ages.max(initial=0))
        assert np.less_equal(size, schedule.most).all(), f"turn {number} has {size}, at most {schedule.most} was said"
