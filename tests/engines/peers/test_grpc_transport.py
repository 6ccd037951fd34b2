"""Real connections with mutual TLS, on 127.0.0.1: what is sent arrives, links come back, nobody holds anybody up."""

import threading

import numpy as np
import pytest
from ends import Recorded, number_of, numbered, until
from peers_rig import Host, Line, free_address, peer, roster
from wire_cases import BOUNDS, NEIGHBOUR, STUDY, belief, name

from consilience.engines.peers.transport import STRANGERS, Transport
from consilience.engines.peers.transport.connection import Link, Traffic
from consilience.engines.peers.transport.grpc import GrpcTransport
from consilience.engines.peers.wire import (
    Assembler,
    Expected,
    Schema,
    about,
    chunks,
    decoded,
    encoded,
    parsed,
)
from consilience.errors import InputError


def connected(one, other):
    until(lambda: one.state(other.own) == other.state(one.own) == "connected", f"{one.state(other.own)}")


def both(host, listening=(True, True)):
    peers = [
        peer(number, f"peer {number}", free_address() if listens else "") for number, listens in enumerate(listening)
    ]
    hosts = [host(one, peers) for one in peers]
    connected(*hosts)
    return hosts


def test_it_is_a_transport():
    assert isinstance(GrpcTransport(peer(0, "alice").own), Transport)


@pytest.mark.parametrize("listening", [(True, True), (True, False), (False, True)])
def test_one_end_that_can_be_called_is_enough(host, listening):
    alice, bob = both(host, listening)
    alice.end(bob.own).send(*map(numbered, range(20)))
    bob.end(alice.own).send(*map(numbered, range(100, 120)))
    until(lambda: len(alice.end(bob.own).received) == len(bob.end(alice.own).received) == 20)
    assert [number_of(content) for content in bob.end(alice.own).received] == list(range(20))
    assert [number_of(content) for content in alice.end(bob.own).received] == list(range(100, 120))
    sent, received = (sum(map(len, one.received)) for one in (bob.end(alice.own), alice.end(bob.own)))
    assert alice.transport.bytes() == {bob.own.id: (sent, received)}
    assert bob.transport.bytes() == {alice.own.id: (received, sent)}


def test_where_nobody_can_be_called_the_line_says_so(host):
    alice, bob = peer(0, "alice"), peer(1, "bob")
    line = "bob: neither it nor we can be called; one needs an address (consilience peer init --listen)"
    assert host(alice, [alice, bob]).state(bob) == line


@pytest.mark.parametrize("weights", [200_000, 5_000_000])
def test_a_belief_of_any_size_arrives_whole(host, weights):
    """1.6 MB and 40 MB, in both directions at once."""
    alice, bob = both(host)
    arrays = belief(weights)
    schema = Schema.of(arrays)
    body = encoded(arrays, schema)
    expected = Expected(name(STUDY), 1, name(NEIGHBOUR), schema)
    frames = list(chunks(about(expected, 1, 1, body), body))
    for one, other in ((alice, bob), (bob, alice)):
        one.end(other.own).send(*frames)
    for one, other in ((alice, bob), (bob, alice)):
        received = one.end(other.own).received
        until(lambda received=received: len(received) == len(frames))
        assembler = Assembler(lambda heard: expected.check(heard).bytes)
        *others, (_, found) = [assembler.add(*parsed(content)[1:]) for content in received]
        assert others == [None] * (len(frames) - 1)
        assert found == body
        np.testing.assert_array_equal(decoded(found, schema, BOUNDS)[".precision"], arrays[".precision"])


@pytest.mark.parametrize("caller_breaks", [True, False])
def test_a_link_that_breaks_comes_back(host, caller_breaks):
    """The line between them is cut, and later mended; then one of them ends and begins anew."""
    behind = free_address()
    line = Line(behind)
    alice, bob = peer(0, "alice", line.address), peer(1, "bob", free_address())
    hosts = [host(alice, [alice, bob], listen=behind), host(bob, [alice, bob])]
    connected(*hosts)
    line.cut()
    until(lambda: not (hosts[0].end(bob).is_open or hosts[1].end(alice).is_open))
    assert hosts[0].end(bob).log[-1].startswith("closed: the connection was lost")
    assert hosts[1].end(alice).log[-1].startswith("closed: the connection was lost")
    until(lambda: hosts[1].state(alice).startswith(f"alice: what listens at {line.address} does not speak TLS"))
    line.mend()
    connected(*hosts)
    gone, stays = (hosts[1], hosts[0]) if caller_breaks else (hosts[0], hosts[1])
    gone.transport.stop()
    until(lambda: stays.state(gone.own) != "connected")
    again = host(gone.own, [alice, bob], listen=None if caller_breaks else behind)
    connected(again, stays)
    again.end(stays.own).send(numbered(7))
    until(lambda: [number_of(content) for content in stays.end(again.own).received] == [7])
    line.remove()


def test_what_happens_at_an_end_is_in_order_however_often_it_breaks(host):
    """Ends check it: opened, frames, closed; frames arrive in order, none twice, though some are lost."""
    behind = free_address()
    line = Line(behind)
    alice, bob = peer(0, "alice", line.address), peer(1, "bob")
    one, other = host(alice, [alice, bob], listen=behind), host(bob, [alice, bob])
    for number in range(3):
        connected(one, other)
        one.end(bob).send(*(numbered(100 * number + k, 100_000) for k in range(20)))
        until(lambda: len(other.end(alice).received) > 0)
        line.cut()
        line.mend()
        until(lambda number=number: one.end(bob).log.count("opened") > number + 1)
    for end in (one.end(bob), other.end(alice)):
        assert [word.split(":")[0] for word in end.log[:4]] == ["opened", "closed", "opened", "closed"]
    numbers = [number_of(content) for content in other.end(alice).received]
    assert numbers == sorted(set(numbers))
    line.remove()


def test_a_new_call_of_the_same_neighbour_takes_the_place_of_the_old_one(host):
    """As when it was restarted and its old connection has not been missed yet."""
    alice, bob = peer(0, "alice", free_address()), peer(1, "bob")
    one = host(alice, [alice, bob])
    first = host(bob, [alice, bob])
    connected(one, first)
    second = host(bob, [alice, bob])
    until(lambda: "closed: a newer connection took its place" in one.end(bob).log)
    until(lambda: one.end(bob).log[-1] == "opened")
    first.transport.stop()
    connected(one, second)


def test_a_slow_neighbour_holds_up_nobody_and_takes_no_memory(host):
    """Who does not read is sent no more than what is on the way; everybody else gets everything meanwhile."""
    hub = peer(0, "hub", free_address())
    leaves = [peer(number, f"leaf {number}") for number in (1, 2, 3)]
    centre = host(hub, [hub, *leaves])
    edges = [host(leaf, [hub, *leaves], [hub]) for leaf in leaves]
    for edge in edges:
        connected(centre, edge)
    slow = edges[0].end(hub)
    slow.hold.clear()
    count, size = 60, 1 << 20
    for leaf in leaves:
        centre.end(leaf).send(*(numbered(number, size) for number in range(count)))
    for edge in edges[1:]:
        until(lambda edge=edge: len(edge.end(hub).received) == count, "the others got everything")
    assert centre.end(leaves[0]).taken < count / 2
    assert not slow.received
    centre.end(leaves[0]).outbox.clear()
    slow.hold.set()
    until(lambda: len(slow.received) == centre.end(leaves[0]).taken)
    assert edges[0].state(hub) == "connected"


def test_to_stop_sends_what_is_left_and_ends_all_threads(host):
    before = set(threading.enumerate())
    alice, bob = both(host)
    alice.end(bob.own).send(*map(numbered, range(5)))
    alice.transport.stop()
    assert not alice.end(bob.own).is_open
    until(lambda: not bob.end(alice.own).is_open)
    bob.transport.stop()
    assert [number_of(content) for content in bob.end(alice.own).received] == list(range(5))
    assert alice.end(bob.own).log[-1] == "closed: we have stopped"
    assert bob.end(alice.own).log[-1] == "closed: the other end closed the connection"
    until(lambda: set(threading.enumerate()) <= before, "threads have ended")


def test_to_stop_does_not_wait_for_who_does_not_read(host):
    alice, bob = both(host)
    bob.end(alice.own).hold.clear()
    alice.end(bob.own).send(*(numbered(number, 1 << 20) for number in range(60)))
    until(lambda: alice.end(bob.own).taken > 0)
    alice.transport.stop(grace=1.0)
    assert not alice.end(bob.own).is_open


def test_who_is_not_there_can_be_stopped_too(host):
    alice, bob = peer(0, "alice", free_address()), peer(1, "bob", free_address())
    one = host(bob, [alice, bob])
    until(lambda: "nobody listens" in one.state(alice))
    one.transport.stop()
    one.transport.stop()
    GrpcTransport(alice.own, alice.member.address).stop()


def test_a_refused_frame_is_counted_closes_the_connection_and_both_say_so(host):
    alice, bob = both(host)  # bob calls
    for one, other in ((alice, bob), (bob, alice)):
        end = one.end(other.own)
        end.refuse = True
        other.end(one.own).send(numbered(0))
        until(lambda one=one, other=other: one.transport.refused() == {other.own.id: {"schema": 1}})
        until(lambda end=end: "closed: a frame was refused: not what was agreed" in end.log)
        told = other.end(one.own).log
        until(lambda told=told: "closed: it refused what we sent: not what was agreed" in told, str(told))
        end.refuse = False
        connected(alice, bob)


def test_an_end_may_change_who_is_admitted_while_it_receives(host):
    alice, bob = peer(0, "alice", free_address()), peer(1, "bob")
    one = Host(alice)

    class Renewing(Recorded):
        def receive(self, content):
            super().receive(content)
            one.admit([alice], [])

    one.ends[bob.id] = Renewing()
    one.admit([alice, bob])
    one.transport.start()
    other = host(bob, [alice, bob])
    connected(one, other)
    other.end(alice).send(numbered(0), numbered(1))
    until(lambda: not one.end(bob).is_open)
    assert one.end(bob).log[-1] == "closed: it is no longer in our roster"
    assert len(one.end(bob).received) == 1
    one.transport.stop()


def test_admitting_the_same_again_disturbs_nobody(host):
    alice, bob = both(host)
    carol = peer(2, "carol")
    for _ in range(3):
        alice.admit([alice.own, bob.own, carol])
        bob.admit([alice.own, bob.own, carol], [alice.own])
    alice.end(bob.own).send(numbered(1))
    until(lambda: bob.end(alice.own).received)
    assert alice.end(bob.own).log == bob.end(alice.own).log == ["opened"]


@pytest.mark.parametrize("where", ["opened", "receive", "take"])
def test_a_mistake_in_an_end_is_said_and_ends_only_its_connection(host, monkeypatch, where):
    said = []
    monkeypatch.setattr(threading, "excepthook", said.append)
    alice, bob = both(host)

    def fails(*given):
        raise ZeroDivisionError

    with monkeypatch.context() as spoilt:
        spoilt.setattr(alice.end(bob.own), where, fails)
        if where == "opened":
            alice.transport._links[bob.own.id]._current.close("as if it had broken")
        bob.end(alice.own).send(numbered(0))
        until(lambda: said, "the mistake is said")
    until(lambda: len(alice.end(bob.own).log) > 1)
    connected(alice, bob)
    assert {args.exc_type for args in said} == {ZeroDivisionError}


def test_an_end_that_fails_when_it_is_told_of_the_end_does_not_block_the_next_connection(monkeypatch):
    said, end = [], Recorded()
    monkeypatch.setattr(threading, "excepthook", said.append)
    monkeypatch.setattr(end, "closed", lambda why: 1 / 0)
    link = Link(peer(0, "alice").member, end, Traffic(), "why")
    connection = link.begin(0.0)
    connection.run(iter([numbered(1)]))
    assert [number_of(content) for content in end.received] == [1]
    assert [args.exc_type for args in said] == [ZeroDivisionError]
    assert link.begin(0.0) is not None


def test_a_port_in_use_is_said_in_one_line(host):
    alice = peer(0, "alice", free_address())
    host(alice, [alice])
    second = GrpcTransport(alice.own, alice.member.address)
    second.admit(roster(alice), {})
    with pytest.raises(InputError) as caught:
        second.start()
    said = f"listen: cannot listen at {alice.member.address}: Address already in use; end what has it, or move"
    assert str(caught.value).startswith(said)
    second.stop()


def test_no_stranger_is_mentioned_where_there_was_none(host):
    alice, bob = both(host)
    for one in (alice, bob):
        assert STRANGERS not in one.transport.states()
        assert one.transport.refused() == {}
