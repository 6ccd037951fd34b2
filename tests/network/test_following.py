"""Tables and flows, held to mailboxes that are written out: whatever is lost, late or repeated."""

import numpy as np
import pytest
from drawn_schedules import draw_schedule
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.errors import InputError
from consilience.network import Fixed, Lossy, Replay, from_matrix, path, ring, star
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
@given(st.integers(0, 10**6))
def test_the_newest_version_that_anything_heard_carried_is_held(seed):
    schedule = drawn(seed)
    tables, N = Tables(schedule, TURNS), schedule.agents
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
    schedule = drawn(seed)
    try:
        flows, N = Flows(schedule, TURNS), schedule.agents
    except InputError:  # somebody is heard by nobody
        return
    held, said = np.ones(N), [[] for _ in range(N)]
    taken = set()
    for number in range(1, TURNS + 1):
        turn = flows.turn(number)
        assert (turn.learners == schedule.turn(number).learners).all()
        for j in turn.learners:
            said[j].append(held[j])
            held[j] = 0
        for (i, j, age), weight in zip(edges(turn), turn.weights, strict=True):
            version = len(said[j]) - 1 - age
            assert version >= 0
            assert (i, j, version) not in taken
            taken.add((i, j, version))
            held[i] += weight * said[j][version]
        part = {j: weight for (_, j, _), weight in zip(edges(turn), turn.weights, strict=True)}
        assert all(np.isclose(weight, 1 / (1 + flows._listens[:, j].sum())) for j, weight in part.items())
    listens = flows._listens | np.eye(N, dtype=bool)
    on_the_way = sum(
        value / listens[:, j].sum()
        for j in range(N)
        for k, value in enumerate(said[j])
        for i in np.flatnonzero(listens[:, j])
        if (i, j, k) not in taken
    )
    assert held.sum() + on_the_way == pytest.approx(N)


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
