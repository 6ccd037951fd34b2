"""Messages and bytes, counted by hand and against mailboxes that are written out."""

import jax.numpy as jnp
import numpy as np
import pytest
from drawn_schedules import draw_schedule
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.engines.arm import message_bytes
from consilience.errors import InputError
from consilience.experiments import arms, load
from consilience.network import (
    Asynchronous,
    Fixed,
    Flows,
    Lossy,
    Participating,
    Tables,
    complete,
    from_matrix,
    path,
    ring,
    star,
)
from consilience.network.schedule import Most
from consilience.network.traffic import hub_of, over_links, through_server
from consilience.runs.sent import sent_by, told

TURNS = 20


def drawn(seed, agents=6):
    schedule, _ = draw_schedule(np.random.default_rng(seed), agents, TURNS, Most(agents, agents, agents**2, 3))
    return schedule


def edges(turn):
    return list(zip(turn.receivers.tolist(), turn.senders.tolist(), turn.ages.tolist(), strict=True))


@pytest.mark.parametrize("agents", [3, 8])
def test_on_a_ring_everybody_sends_to_two(agents):
    for hears in (ring(agents), Fixed(ring(agents)), Flows(ring(agents), 9)):
        assert over_links(hears, 4).tolist() == [2 * agents] * 4


def test_sites_by_hand():
    # 0 – 1 – 2: first everybody its own over four links; then the middle also passes on what it heard of the other end.
    assert over_links(Tables(path(3), 5), 5).tolist() == [4, 6, 6, 6, 6]
    # 0 – 1 – 2 – 3 over the links 01, 10, 12, 21, 23, 32.
    assert over_links(Tables(path(4), 9), 5).tolist() == [6, 1 + 2 + 2 + 2 + 2 + 1, 12, 12, 12]
    assert over_links(Tables(complete(5), 9), 3).tolist() == [20, 20, 20]  # nobody has news that is not its own
    assert over_links(Tables(path(4), 2), 2).tolist() == [6, 10]
    # Passed on at once: the middle has news of one end for the other in every round.
    assert over_links(Tables(path(3), 5, passes=2), 3).tolist() == [6, 6, 6]
    assert over_links(Tables(Fixed(path(4)), 2), 7).tolist() == [6, 10, 12, 12, 12, 12, 12]


@pytest.mark.parametrize("seed", range(3))
def test_on_a_path_every_version_comes_to_everybody_once(seed):
    """There is one way from one agent to another, so what is sent is what is held for the first time."""
    tables = Tables(Lossy(Fixed(path(5)), 0.4, seed), 30)
    said, held = np.zeros(5, int), set()
    for number in range(1, 31):
        turn = tables.turn(number)
        said[turn.learners] += 1
        held |= {(i, j, said[j] - age) for i, j, age in edges(turn) if i != j}
    assert over_links(tables, 30).sum() == len(held)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_what_is_sent_is_news_to_who_hears_it(seed):
    """In any schedule, by links, of tables and of running sums."""
    schedule = drawn(seed)
    N = schedule.agents
    held = [dict.fromkeys(range(N), 0) for _ in range(N)]
    mail = [[dict(each)] for each in held]  # everybody's table at each of its publications
    newest = {}  # publication that was heard over a link
    links, versions = [], []
    for number in range(1, TURNS + 1):
        turn = schedule.turn(number)
        for j in turn.learners.tolist():
            held[j][j] = len(mail[j])
            mail[j].append(dict(held[j]))
        heard = [(i, j, max(len(mail[j]) - 1 - age, 0)) for i, j, age in edges(turn)]
        links.append(sum(k > newest.get((i, j), 0) for i, j, k in heard if i != j))
        newest |= {(i, j): max(newest.get((i, j), 0), k) for i, j, k in heard}
        versions.append(sum(mail[j][k][each] > held[i][each] for i, j, k in heard for each in range(N)))
        for i, j, k in heard:
            held[i] = {each: max(held[i][each], mail[j][k][each]) for each in range(N)}
    assert over_links(schedule, TURNS).tolist() == links
    assert over_links(Tables(schedule, TURNS), TURNS).tolist() == versions
    try:
        flows = Flows(schedule, TURNS)
    except InputError:  # somebody is heard by nobody
        return
    assert over_links(flows, TURNS).tolist() == links


def test_what_is_held_and_pooled_again_was_sent_once():
    slow = Asynchronous(ring(3), durations=[1, 1, 4])
    heard = [sum(i != j for i, j, _ in edges(slow.turn(number))) for number in range(1, 9)]
    assert heard == [2, 2, 2, 6, 4, 4, 4, 6]
    assert over_links(slow, 8).tolist() == [2, 2, 2, 6, 2, 2, 2, 6]  # what the slow one says is news twice


def test_through_a_server_up_and_down():
    few = Participating(np.array([10, 30, 20, 0, 5]), fraction=0.5)
    assert through_server(few, np.array([0, 1, 2, 4]), None, 6).tolist() == [4] * 6
    without_hub = through_server(few, np.array([0, 1, 2, 4]), 1, 40)
    expected = [2 * int((few.turn(number).learners != 1).sum()) for number in range(1, 41)]
    assert without_hub.tolist() == expected
    assert set(expected) == {2, 4}
    assert hub_of(from_matrix([[0.5, 0.5, 0], [0.2, 0.3, 0.5], [0, 0.5, 0.5]])) == 1
    assert hub_of(Lossy(Fixed(star(4)), 0.1)) is None


@pytest.mark.parametrize(
    ("rule", "more", "messages", "numbers"),
    [
        ("paper", [], 16, 2),  # means and precisions, over sixteen links
        ("sites", [], None, 2),
        ("tracking", [], 16, 2),
        ("gossip", [], 16, 1),
        ("gradient-tracking", [], 16, 2),  # weights and directions
        ("fedavg", [], 16, 1),  # the hub is the server
        ("fedavg", ["networks.cooperating={kind='ring',agents=9}"], 18, 1),
        ("central", [], 0, None),
        ("alone", [], 0, None),
    ],
)
def test_rules_send_what_agents_publish(rule, more, messages, numbers):
    small = ["rounds=3", "model.hidden=[4]", "learner.batch=5", "learner.epochs=1"]
    made = arms(load("star-digits", [*small, *more], rule))
    kept = {"sent": sent_by(made, 3)}
    arm, size, width = made["cooperating"], 64 * 4 + 4 + 4 * 10 + 10, jnp.zeros(()).dtype.itemsize
    if numbers is not None:
        extra = width if rule == "tracking" else 0  # its part of the number of agents
        assert message_bytes(arm) == width * numbers * size + extra
    # The hub passes on, to each edge, its own site and those of the seven others.
    sent = [16, 8 + 8 * 8, 8 + 8 * 8] if messages is None else [messages] * 3
    assert arm.messages(3).tolist() == sent
    for number in (1, 2, 3):
        expected = sum(sent[:number]) * message_bytes(arm)
        assert told(kept, "cooperating", number) == {"bytes_sent": expected, "bytes_a_round": expected / number}
    assert told(kept, "alone", 3)["bytes_sent"] == 0
    assert told({}, "cooperating", 3) == {}
