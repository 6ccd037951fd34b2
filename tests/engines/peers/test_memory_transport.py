"""The transport in memory: without faults everything arrives once and in order, with them the seed says what does."""

from types import SimpleNamespace

import pytest
from ends import Recorded, number_of, numbered
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.engines.peers.transport import Transport, dials
from consilience.engines.peers.transport.memory import Faults, Net
from consilience.engines.peers.wire import Kind, frame

IDS = [letter * 64 for letter in "abc"]


def member(number, address="x:1"):
    return SimpleNamespace(number=number, name=f"peer {number}", id=IDS[number], certificate="", address=address)


MEMBERS = {ID: member(number) for number, ID in enumerate(IDS)}


def network(net, count=3):
    """Everybody linked with everybody, and the ends by (whose, with whom)."""
    ends = {(i, j): Recorded() for i in range(count) for j in range(count) if i != j}
    transports: list[Transport] = [net.transport(IDS[i]) for i in range(count)]
    for i, transport in enumerate(transports):
        transport.admit(MEMBERS, {IDS[j]: ends[i, j] for j in range(count) if j != i})
        transport.start()
    return transports, ends


def test_of_two_one_calls():
    """Whoever can be called, exactly one of two calls; where neither has an address, nobody can."""
    for mine, other in ((member(0), member(1)), (member(0, ""), member(1)), (member(0), member(1, ""))):
        assert dials(mine, other) + dials(other, mine) == 1
    assert dials(member(1), member(0))
    assert not dials(member(0, ""), member(1, ""))


def test_without_faults_everything_arrives_once_and_in_order():
    net = Net()
    transports, ends = network(net)
    for (i, j), end in ends.items():
        end.send(*(numbered(100 * i + 10 * j + k) for k in range(5)))
    for _ in range(7):
        net.step()
    for (i, j), end in ends.items():
        assert [number_of(content) for content in end.received] == [100 * j + 10 * i + k for k in range(5)]
        assert end.log == ["opened"]
        assert transports[i].states()[IDS[j]] == "connected"
        assert transports[i].bytes()[IDS[j]] == (sum(map(len, ends[j, i].received)), sum(map(len, end.received)))
    assert net.on_the_way() == 0


@given(st.floats(0, 0.6), st.floats(0, 0.6), st.integers(0, 4), st.booleans(), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_faults_lose_repeat_delay_and_reorder_and_nothing_else(loss, repeat, delay, reorder, seed):
    """Whatever arrives was sent; without reordering in order; the same seed does the same again."""

    def played():
        net = Net(seed, Faults(loss, repeat, delay, reorder))
        _, ends = network(net, 2)
        sent = list(range(30))
        ends[0, 1].send(*map(numbered, sent))
        for _ in range(30 + delay + 2):
            net.step()
        assert net.on_the_way() == 0
        return sent, [number_of(content) for content in ends[1, 0].received]

    sent, received = played()
    assert set(received) <= set(sent)
    assert all(received.count(number) <= 2 for number in sent)
    assert reorder or received == sorted(received)
    assert loss or set(received) == set(sent)
    assert repeat or len(set(received)) == len(received)
    assert played()[1] == received


def test_all_faults_happen():
    net = Net(1, Faults(0.3, 0.3, 3, reorder=True))
    _, ends = network(net, 2)
    ends[0, 1].send(*map(numbered, range(100)))
    for _ in range(110):
        net.step()
    received = [number_of(content) for content in ends[1, 0].received]
    assert 50 < len(set(received)) < 90
    assert len(received) > len(set(received))
    assert received != sorted(received)


def test_a_cut_link_is_closed_at_both_ends_and_comes_back_when_it_heals():
    net = Net(0, Faults(delay=3))
    transports, ends = network(net)
    ends[0, 1].send(*map(numbered, range(4)))
    net.step()
    net.cut(IDS[0], IDS[1])
    for _ in range(6):
        net.step()
    assert ends[0, 1].log == ends[1, 0].log == ["opened", "closed: the connection was lost"]
    assert not ends[1, 0].received  # what was on its way is lost
    assert transports[0].states() == {IDS[1]: "the connection was lost", IDS[2]: "connected"}
    net.heal(IDS[0], IDS[1])
    for _ in range(9):
        net.step()
    assert ends[0, 1].log[-1] == "opened"
    assert [number_of(content) for content in ends[1, 0].received] == [1, 2, 3]


def test_a_refused_frame_is_counted_and_closes_the_connection_which_opens_again():
    net = Net()
    transports, ends = network(net, 2)
    ends[1, 0].refuse = True
    ends[0, 1].send(numbered(0))
    for _ in range(3):
        net.step()
    assert transports[1].refused() == {IDS[0]: {"schema": 1}}
    assert ends[1, 0].log == ["opened", "closed: a frame was refused: not what was agreed", "opened"]


def test_who_is_no_longer_admitted_is_closed_at_once_and_does_not_come_back():
    net = Net()
    transports, ends = network(net)
    net.step()
    left = {ID: one for ID, one in MEMBERS.items() if one.number != 2}
    transports[0].admit(left, {IDS[1]: ends[0, 1]})
    assert ends[0, 2].log[-1] == ends[2, 0].log[-1] == "closed: no longer admitted"
    for _ in range(3):
        net.step()
    assert not ends[2, 0].is_open
    assert ends[1, 0].is_open
    transports[0].admit(MEMBERS, {IDS[1]: ends[0, 1], IDS[2]: ends[0, 2]})
    net.step()
    assert ends[2, 0].is_open
    assert ends[0, 1].log == ["opened"]  # who stayed was not disturbed


def test_an_end_may_change_who_is_admitted_while_it_receives():
    """As when a newer roster comes over a link."""
    net = Net()
    transports, ends = network(net)

    class Renewing(Recorded):
        def receive(self, content):
            super().receive(content)
            transports[0].admit({}, {})

    ends[0, 1] = Renewing()
    transports[0].admit(MEMBERS, {IDS[1]: ends[0, 1], IDS[2]: ends[0, 2]})
    ends[1, 0].send(numbered(0), numbered(1))
    for _ in range(4):
        net.step()
    assert not ends[0, 1].is_open
    assert not ends[0, 2].is_open
    assert len(ends[0, 1].received) == 1


def test_a_peer_that_stops_is_gone_and_may_start_again():
    net = Net()
    transports, ends = network(net, 2)
    net.step()
    transports[0].stop()
    assert ends[1, 0].log == ["opened", "closed: the other end stopped"]
    net.step()
    assert not ends[1, 0].is_open
    transports[0].start()
    net.step()
    assert ends[1, 0].is_open


@pytest.mark.parametrize("kind", Kind)
def test_frames_of_every_kind_travel_alike(kind):
    net = Net()
    _, ends = network(net, 2)
    ends[0, 1].send(frame(kind, {}, b"x"))
    net.step()
    net.step()
    assert ends[1, 0].received == [frame(kind, {}, b"x")]
