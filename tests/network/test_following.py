"""Tables and flows, held to mailboxes that are written out: whatever is lost, late or repeated."""

import numpy as np
import pytest
from drawn_schedules import draw_schedule
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.errors import InputError
from consilience.network import Churn, Fixed, Lossy, Replay, from_matrix, path, ring, star, watts_strogatz
from consilience.network.flows import Flows
from consilience.network.following import KEPT, heard_of
from consilience.network.schedule import Most
from consilience.network.tables import Tables

TURNS = 25


def drawn(seed, agents=6):
    schedule, _ = draw_schedule(np.random.default_rng(seed), agents, TURNS, Most(agents, agents, agents**2, 3))
    return schedule


def edges(turn):
    return list(zip(turn.receivers, turn.senders, turn.ages, strict=True))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3))
def test_the_newest_version_that_anything_heard_carried_is_held(seed, passes):
    schedule = drawn(seed)
    tables, N = Tables(schedule, TURNS, passes), schedule.agents
    held = [dict.fromkeys(range(N), 0) for _ in range(N)]
    mail = [[dict(each)] for each in held]  # everybody's table at each of its publications
    for number in range(1, TURNS + 1):
        turn = schedule.turn(number)
        for j in turn.learners:
            held[j][j] = len(mail[j])
            mail[j].append(dict(held[j]))
        for i, j, age in edges(turn):
            heard = mail[j][max(len(mail[j]) - 1 - age, 0)]
            held[i] = {k: max(held[i][k], heard[k]) for k in heard}
        for _ in range(1, passes):  # over links without delay what was heard is passed on at once
            before = [dict(each) for each in held]
            for i, j, age in edges(turn):
                held[i] = {k: max(held[i][k], before[j][k]) for k in before[j]} if age == 0 else held[i]
        made = tables.turn(number)
        who = {*turn.receivers.tolist(), *turn.learners.tolist()}
        expected = {(i, j, len(mail[j]) - 1 - k) for i in who for j, k in held[i].items() if k}
        if isinstance(tables.schedule, Fixed):  # what has not arrived yet is an initial site, which is nothing
            assert all(age >= len(mail[j]) - 1 for _, j, age in {*edges(made)} - expected)
        else:
            assert {*edges(made)} == expected
        assert expected <= {*edges(made)}
        assert (made.weights == 1).all()
        assert made.ages.max(initial=0) <= tables.most.age
        assert (made.learners == turn.learners).all()
        assert (np.diff(made.receivers) >= 0).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_every_part_is_taken_once_and_nothing_is_lost(seed):
    """Against mailboxes: a publication is divided among its sender and the listeners that were heard before it."""
    schedule = drawn(seed)
    try:
        flows, N = Flows(schedule, TURNS), schedule.agents
    except InputError:  # somebody is heard by nobody
        return
    turns = [schedule.turn(number) for number in range(1, TURNS + 1)]
    listens = {(i, j) for turn in turns for i, j, _ in edges(turn) if i != j}
    held, lately = np.ones(N), [set() for _ in range(N)]
    mail = [[] for _ in range(N)]  # everybody's publications: what each listener has not taken yet
    followed, said = np.ones(N), [[] for _ in range(N)]
    for number, turn in enumerate(turns, 1):
        for i, j, _ in edges(turn):
            lately[i] |= {j} - {i}
        for j in turn.learners:
            there = {i for i, giver in listens if giver == j and (i in lately[j] or (j, i) not in listens)}
            there = there if lately[j] else set()
            part = held[j] / (1 + len(there))
            mail[j].append(dict.fromkeys(there, part))
            held[j], lately[j] = part, set()
        for i, j, age in edges(turn):
            for publication in mail[j][: max(len(mail[j]) - age, 0)] if i != j else []:
                held[i] += publication.pop(i, 0.0)
        made = flows.turn(number)
        assert (made.learners == turn.learners).all()
        for j in turn.learners:
            said[j].append(followed[j])
            followed[j] = 0
        for (i, j, age), weight in zip(edges(made), made.weights, strict=True):
            followed[i] += weight * said[j][len(said[j]) - 1 - age]
        np.testing.assert_allclose(followed, held, atol=1e-12)
        on_the_way = sum(sum(publication.values()) for each in mail for publication in each)
        assert held.sum() + on_the_way == pytest.approx(N)


def test_who_hears_nobody_keeps_what_it_has():
    """Half of all agents are away at a time: what is theirs waits with them, and nobody's part dwindles."""
    flows = Flows(Churn(Fixed(watts_strogatz(12, 4, 0.3)), 20, 20), 300)
    held, said = np.ones(12), [[] for _ in range(12)]
    for number in range(1, 301):
        turn = flows.turn(number)
        for j in turn.learners:
            said[j].append(held[j])
            held[j] = 0
        for (i, j, age), weight in zip(edges(turn), turn.weights, strict=True):
            held[i] += weight * said[j][-1 - age]
        assert held.min() > 0.02
    assert held.sum() == pytest.approx(12)


@pytest.mark.parametrize("made", [Tables, Flows])
def test_turns_can_be_asked_for_in_any_order(made):
    schedule = Lossy(Fixed(ring(5)), 0.5)
    once, rounds = made(schedule, 3 * KEPT), [150, 3, KEPT, KEPT + 1, 151, 1, 130]
    for number in rounds:
        np.testing.assert_equal(once.turn(number), made(schedule, 3 * KEPT).turn(number))
    assert heard_of(once) is schedule


@pytest.mark.parametrize(("network", "age"), [(star(4), 1), (path(5), 3), (ring(2), 0)])
def test_over_the_same_network_always_a_turn_is_laid_out_once(network, age):
    tables, flows = Tables(network, 100), Flows(network, 100)
    assert (tables.most.age, tables.repeats, flows.most.age, flows.repeats) == (age, age + 1, 0, 1)
    assert len(tables.turn(1).senders) == network.agents**2


def test_a_listener_for_everybody():
    with pytest.raises(InputError, match=r"^consensus: tracking needs a listener .* nobody listens to agent 1$"):
        Flows(from_matrix([[1.0, 0.0], [0.5, 0.5]]), 10)


def test_who_begins_to_listen_later_is_refused():
    all_of_them, a_cycle = np.full((3, 3), 1 / 3), np.array([[0.5, 0.5, 0], [0, 0.5, 0.5], [0.5, 0, 0.5]])
    full, cycle = (Fixed(from_matrix(W)).turn(1) for W in (all_of_them, a_cycle))
    flows = Flows(Replay(3, [cycle, cycle, full]), 2)
    with pytest.raises(InputError, match="begins to listen to agent 2 after round 2"):
        flows.turn(3)


def test_two_passes_over_a_network_are_one_over_its_square():
    network = path(5)
    twice, square = Tables(network, 9, passes=2).turn(9), Tables(from_matrix(network.W @ network.W), 9).turn(9)
    assert edges(twice) == edges(square)
    assert (Tables(star(8), 9, passes=2).turn(9).ages == 0).all()  # as with a server
