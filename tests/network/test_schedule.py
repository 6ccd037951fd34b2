"""Schedules: every turn is row-stochastic, lost weight returns to its owner, clocks and delays mean what they say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.errors import InputError
from consilience.network import erdos_renyi, from_matrix, grid, ring, star
from consilience.network.churn import Churn, Presence
from consilience.network.clocks import Asynchronous
from consilience.network.schedule import Fixed, Gossip, Lossy, Replay, RotatingStar, Unheard
from consilience.network.turns import Turn, check_turn
from consilience.network.union import check_union, union_of

GRAPHS = [ring(5, directed=True), star(6, 0.3), grid(2, 3), erdos_renyi(8, 0.6, 1)]
EVERY = [
    lambda graph: Fixed(graph),
    lambda graph: Gossip(graph),
    lambda graph: Gossip(graph, matching=True),
    lambda graph: Lossy(Fixed(graph), 0.4),
    lambda graph: Churn(Fixed(graph), up=4, down=3),
    lambda graph: Lossy(Churn(Gossip(graph, matching=True), up=4, down=3), 0.3),
    lambda graph: Asynchronous(graph, 1 + np.arange(graph.agents) % 3, delay=1.5, staleness=3, tick=0.5),
    lambda graph: Churn(Asynchronous(graph, 1 + np.arange(graph.agents) % 3, delay=1.5, tick=0.5), up=4, down=3),
    lambda graph: RotatingStar(6, 2, 0.4),
]


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
@pytest.mark.parametrize("kind", EVERY)
def test_every_turn_is_valid_and_the_same_again(graph, kind):
    schedule, again = kind(graph), kind(graph)
    for number in (7, 1, 2, 30):
        turn = schedule.turn(number)
        check_turn(turn, schedule.agents, number)
        np.testing.assert_allclose(turn.matrix(schedule.agents).sum(1), 1)
        for one, other in zip(turn, again.turn(number), strict=True):
            np.testing.assert_array_equal(one, other)
        most = schedule.most
        assert len(turn.learners) <= most.learners
        assert len(np.unique(turn.receivers)) <= most.receivers
        assert len(turn.senders) <= most.edges
        assert turn.ages.max(initial=0) <= most.age


def test_the_rotating_star_is_the_papers():
    schedule = RotatingStar(25, 5, 0.5)
    assert schedule.agents == 26
    assert schedule.repeats == 5
    turn = schedule.turn(7)
    assert turn.learners.tolist() == [0, 6, 7, 8, 9, 10]
    W = turn.matrix(26).toarray()
    np.testing.assert_allclose(W[0, [0, 6, 7, 8, 9, 10]], 1 / 6)
    np.testing.assert_allclose([W[6, 0], W[6, 6], W[1, 1]], [0.5, 0.5, 1])
    check_union(schedule, 5)
    with pytest.raises(InputError, match="over 4 rounds"):
        check_union(schedule, 4)
    with pytest.raises(InputError, match="at_once: must divide the 25 edges, got 4"):
        RotatingStar(25, 4)


def test_lost_weight_returns_to_its_owner():
    graph = star(4, 0.3)
    whole, lossy = (
        Fixed(graph).turn(1).matrix(5).toarray(),
        Lossy(Fixed(graph), 0.5, seed=3).turn(1).matrix(5).toarray(),
    )
    lost = (lossy == 0) & (whole > 0)
    assert lost.any()
    np.testing.assert_allclose(np.diag(lossy), np.diag(whole) + (whole * lost).sum(1))
    off = ~np.eye(5, dtype=bool) & ~lost
    np.testing.assert_array_equal(lossy[off], whole[off])


def test_an_agent_without_weight_on_itself_gets_what_is_lost():
    swap = Fixed(from_matrix([[0.0, 1.0], [0.5, 0.5]]))
    turns = [Lossy(swap, 0.5, seed=1).turn(n).matrix(2).toarray() for n in range(1, 30)]
    assert {tuple(W[0]) for W in turns} == {(0.0, 1.0), (1.0, 0.0)}


def test_loss_and_churn_happen_as_often_as_they_should():
    edges = [len(Lossy(Fixed(ring(20)), 0.3).turn(n).senders) - 20 for n in range(1, 400)]
    assert np.mean(edges) / 40 == pytest.approx(0.7, abs=0.01)
    churn = Churn(Fixed(ring(50)), up=9, down=3)
    present = np.array([churn.presence.at(n) for n in range(100, 2000)])
    assert present.mean() == pytest.approx(0.75, abs=0.02)
    leaves = (present[:-1] & ~present[1:]).sum() / present[:-1].sum()
    assert 1 / leaves == pytest.approx(9, rel=0.05)


def test_equal_clocks_without_delay_are_the_fixed_network():
    graph = erdos_renyi(6, 0.5, 2)
    together, fixed = Asynchronous(graph, np.ones(6)), Fixed(graph)
    for number in range(1, 5):
        for one, other in zip(together.turn(number), fixed.turn(number), strict=True):
            np.testing.assert_array_equal(one, other)


@settings(deadline=None)
@given(st.lists(st.floats(0.3, 4), min_size=3, max_size=5), st.floats(0, 3), st.floats(0.2, 1), st.floats(1, 9))
def test_an_agent_pools_the_newest_it_holds(durations, delay, tick, staleness):
    """Against a simulation of mailboxes, message by message."""
    # Times to six digits: whether two that differ by just the slack are the same is for rounding to decide.
    durations, delay, tick, staleness = (np.round(x, 6) for x in (durations, delay, tick, staleness))
    N, tick = len(durations), min(tick, *durations)
    graph = from_matrix(np.full((N, N), 1 / N))
    schedule = Asynchronous(graph, durations, delay, staleness, tick)
    published = {agent: [] for agent in range(N)}
    done = dict.fromkeys(range(N), 0)
    for number in range(1, 25):
        time, turn = number * tick, schedule.turn(number)
        acting = [a for a in range(N) if int(np.floor(time / durations[a] + 1e-9)) > done[a]]
        assert turn.learners.tolist() == acting
        for agent in acting:
            new = int(np.floor(time / durations[agent] + 1e-9))
            published[agent] += [time] * (new - done[agent])
            done[agent] = new
        for receiver in acting:
            heard = {
                int(s): int(a) for r, s, a in zip(turn.receivers, turn.senders, turn.ages, strict=True) if r == receiver
            }
            for sender in range(N):
                wait = 0 if sender == receiver else delay
                here = [k for k, at in enumerate(published[sender]) if at + wait <= time + 1e-9]
                if sender == receiver:
                    assert heard[sender] == 0
                elif here and time - published[sender][here[-1]] <= staleness + 1e-9:
                    assert heard[sender] == len(published[sender]) - 1 - here[-1]
                else:
                    assert sender not in heard


def test_a_replay_gives_what_was_recorded_and_refuses_nonsense():
    lossy = Lossy(Fixed(ring(4)), 0.4)
    turns = [lossy.turn(n) for n in (1, 2, 3)]
    assert Replay(4, turns).turn(3) is turns[2]
    with pytest.raises(InputError, match="has 3 recorded rounds, round 4 was asked for"):
        Replay(4, turns).turn(4)
    good = turns[0]
    for change, message in (
        ({"learners": np.array([9])}, "round 1 names learner 9, there are agents 0 to 3"),
        ({"learners": np.array([3, 1, 3])}, "agent 3 learn twice"),
        ({"senders": good.senders + 4}, "names sender"),
        ({"weights": good.weights * 2}, "sum to 2, above 1"),
        ({"weights": good.weights - 1}, "negative or not finite"),
        ({"receivers": good.receivers[::-1]}, "sorted by receiver"),
        ({"ages": good.ages - 1}, "negative age"),
    ):
        with pytest.raises(InputError, match=message):
            Replay(4, [good._replace(**change)])


def test_bad_schedules_say_what_is_wrong():
    for build, message in (
        (lambda: Lossy(Fixed(ring(4)), 1.0), "probability: must be at least 0 and below 1, got 1"),
        (lambda: Churn(Fixed(ring(4)), up=0.5, down=3), "up: must be at least 1 round, got 0.5"),
        (lambda: Asynchronous(ring(4), [1, 1, 1]), "durations: must be 4 positive numbers"),
        (lambda: Asynchronous(ring(4), [1, 1, 1, 1], delay=1e30), r"delay: of 1e\+30 ticks is too long"),
        (lambda: Asynchronous(ring(4), [1, 1, 1, 0]), "durations: must be 4 positive numbers"),
        (lambda: Asynchronous(ring(4), np.ones(4), delay=-1), "delay: must be at least 0"),
        (lambda: Asynchronous(ring(4), np.ones(4), tick=0), "tick: must be above 0 and at most the shortest duration"),
        (lambda: Gossip(from_matrix(np.eye(3))), "gossip needs a graph with an edge"),
        (lambda: check_union(Fixed(from_matrix(np.eye(9))), 5), "agent 0 never hears from agents 1, 2, 3, 4, 5, 6, …"),
    ):
        with pytest.raises(InputError, match=message):
            build()


def test_the_union_is_everybody_who_is_ever_heard():
    turns = [Gossip(ring(6)).turn(n) for n in range(1, 200)]
    union = union_of(turns, 6).toarray() > 0
    np.testing.assert_array_equal(union, ring(6).W.toarray() > 0)
    assert isinstance(turns[0], Turn)


@settings(deadline=None)
@given(st.integers(0, 10**6))
def test_clocks_pool_the_newest_belief_that_is_held(seed):
    """Against a mailbox: every belief is noted with the time when it is published, and looked up when it is needed."""
    rng = np.random.default_rng(seed)
    network = erdos_renyi(5, 0.7, seed % 97)
    tick = float(rng.choice([0.25, 0.5, 1.0]))
    durations = tick * rng.choice([1, 1.3, 2, 2.5, 4], 5)
    delay = rng.choice([0, 0.3, 1, 2.2], (5, 5))
    staleness = float(rng.choice([1.5, 4, np.inf]))
    presence = Presence(5, 3, 2, seed) if seed % 2 else None
    clocks = Asynchronous(network, durations, delay, staleness, tick, presence)
    published = [[] for _ in range(5)]
    for number in range(1, 25):
        turn, now = clocks.turn(number), number * tick
        finished = np.floor(now / durations + 1e-9) > np.floor((now - tick) / durations + 1e-9)
        acting = np.flatnonzero(finished & (presence.at(number) if presence else True))
        assert turn.learners.tolist() == acting.tolist()
        for agent in acting:
            published[agent].append(now)
        heard = {(r, s): (w, age) for r, s, w, age in zip(*turn[1:5], strict=True)}
        for agent in acting:
            own = 1.0
            for sender in network.W.indices[network.W.indptr[agent] : network.W.indptr[agent + 1]]:
                weight = network.W[agent, sender]
                there = [t for t in published[sender] if t + delay[sender, agent] <= now + 1e-9]
                if sender == agent or not there or now - there[-1] > staleness + 1e-9:
                    assert sender == agent or (agent, sender) not in heard
                    continue
                own -= weight
                assert heard[agent, sender][0] == pytest.approx(weight)
                assert heard[agent, sender][1] == len(published[sender]) - len(there) <= clocks.most.age
            assert heard.get((agent, agent), (0.0, 0))[0] == pytest.approx(own, abs=1e-9)


def recorded(seed, agents, turns=30):
    """Turns in which anybody learns, or not, and hears what anybody said, at any age since it began to speak."""
    rng = np.random.default_rng(seed)
    said, played = np.zeros(agents, int), []
    for number in range(1, turns + 1):
        learners = np.flatnonzero(rng.random(agents) < 0.5).astype(np.int32)
        said[learners] += 1
        receivers, senders = (part.astype(np.int32) for part in np.nonzero(rng.random((agents, agents)) < 0.6))
        weights = 1 / np.bincount(receivers, minlength=agents)[receivers]
        ages = np.minimum(rng.integers(0, 4, len(senders)), said[senders]).astype(np.int32)
        played.append(Turn(learners, receivers, senders, weights, ages, float(number)))
    return Replay(agents, played)


CLOCKS = {"durations": [1, 2, 1, 3, 1.5], "staleness": 2.5, "tick": 0.5}
UNDER = {
    "clocks": lambda seed: Asynchronous(erdos_renyi(5, 0.7, seed % 97), **CLOCKS),
    "late clocks": lambda seed: Asynchronous(erdos_renyi(5, 0.7, seed % 97), delay=1.2, **CLOCKS),
    "clocks with presence": lambda seed: Asynchronous(
        erdos_renyi(5, 0.7, seed % 97), presence=Presence(5, 4, 2, seed + 1), **CLOCKS
    ),
    "recorded": lambda seed: recorded(seed, 5),
    "gossip": lambda seed: Gossip(erdos_renyi(5, 0.7, seed % 97), seed=seed),
}
WRAPPED = {
    "churn": lambda under, seed: Churn(under, 4, 2, seed),
    "loss": lambda under, seed: Lossy(under, 0.4, seed),
    "loss and churn": lambda under, seed: Lossy(Churn(under, 4, 2, seed), 0.4, seed),
    "churn twice": lambda under, seed: Churn(Churn(Lossy(under, 0.2, seed), 4, 2, seed), 4, 2, seed + 7),
    "unheard": lambda under, seed: Unheard(under),
}


@pytest.mark.parametrize("under", UNDER.values(), ids=UNDER)
@pytest.mark.parametrize("wrapped", WRAPPED.values(), ids=WRAPPED)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_what_is_heard_was_published_and_is_as_old_as_it_says(wrapped, under, seed):
    """Against lists of who published when: a wrapper lets hear what the schedule under it does, or nothing."""
    inner = under(seed)
    schedule = wrapped(inner, seed)
    planned, published = ([[0] for _ in range(5)] for _ in range(2))  # turn 0: the initial belief
    if seed % 2:
        schedule.turn(30)  # the order in which turns are asked for does not matter
    for number in range(1, 31):
        turn, whole = schedule.turn(number), inner.turn(number)
        check_turn(turn, 5, number)
        assert set(turn.learners) <= set(whole.learners)
        assert turn.ages.max(initial=0) <= schedule.most.age
        for agent in whole.learners:
            planned[agent].append(number)
        for agent in turn.learners:
            published[agent].append(number)
        meant = {
            (r, s): planned[s][-1 - age] for r, s, age in zip(whole.receivers, whole.senders, whole.ages, strict=True)
        }
        for receiver, sender, age in zip(turn.receivers, turn.senders, turn.ages, strict=True):
            if receiver != sender:
                assert published[sender][-1 - age] == meant[receiver, sender]
                if isinstance(inner, Asynchronous):
                    assert published[sender][-1 - age] > 0
                    assert (number - published[sender][-1 - age]) * inner.tick <= inner.staleness + 1e-9


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_churn_lets_hear_all_that_was_published_by_those_who_are_there(seed):
    inner = recorded(seed, 5)
    churn = Churn(inner, 4, 2, seed)
    planned = [[0] for _ in range(5)]
    for number in range(1, 31):
        turn, whole, there = churn.turn(number), inner.turn(number), churn.presence.at(number)
        for agent in whole.learners:
            planned[agent].append(number)
        expected = {
            (r, s)
            for r, s, age in zip(whole.receivers, whole.senders, whole.ages, strict=True)
            if r != s and there[r] and there[s] and churn.presence.at(planned[s][-1 - age])[s]
        }
        assert {(r, s) for r, s in zip(turn.receivers, turn.senders, strict=True) if r != s} == expected


def test_nobody_is_heard_twice():
    """Two shares of the same sender would both get what returns, so that a row no longer sums to 1."""
    each = np.array([0, 0], np.int32)
    twice = Turn(each[:1], each, each, np.array([0.5, 0.5]), np.array([0, 1], np.int32), 1.0)
    with pytest.raises(InputError, match="round 1 has agent 0 hear agent 0 twice"):
        Replay(2, [twice])
