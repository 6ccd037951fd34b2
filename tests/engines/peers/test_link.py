"""Two ends of a link: what is agreed flows, and nothing else does."""

import numpy as np
import pytest
from noting_desk import MEMBERS, SITE, STUDY, Reception

from consilience.engines.peers.desk import PROTOCOL, Greeting
from consilience.engines.peers.link import Link
from consilience.engines.peers.messages import Entry, Said
from consilience.engines.peers.spoken import Spoken
from consilience.engines.peers.transport.memory import Faults, Net
from consilience.engines.peers.wire import Kind, Refused, assembling, frame, parsed
from consilience.engines.peers.wire.frames import Turned


def linked(one, other, faults=None, seed=0):
    """Two ends over a net in memory."""
    net = Net(seed, faults or Faults())
    ends = Link(other.me, one.me.id, one), Link(one.me, other.me.id, other)
    for desk, its, end in ((one, other, ends[0]), (other, one, ends[1])):
        transport = net.transport(desk.me.id)
        transport.admit({member.id: member for member in MEMBERS}, {its.me.id: end})
        transport.start()
    return net, *ends


def says(link, said):
    link.say(Spoken(said, 1, link._desk.agreed(), link._own_id))


def stepped(net, steps=30):
    for _ in range(steps):
        net.step()


def site_of(owner, number=1, **changed):
    return Entry(owner, (number, 1), {**SITE, **changed}, f"by {owner}")


@pytest.mark.parametrize("several", [False, True])
def test_a_message_arrives_as_it_was_said_and_is_confirmed(several):
    one, other = Reception(0, several), Reception(1, several)
    net, left, right = linked(one, other)
    entries = (site_of(0, 7), site_of(2, 5)) if several else (site_of(0, 7),)
    says(left, Said(0, 7, entries))
    stepped(net)
    (said,) = other.said
    assert (said.sender, said.round, said.epoch) == (0, 7, 3)
    assert [(entry.owner, entry.version) for entry in said.entries] == [
        (entry.owner, entry.version) for entry in entries
    ]
    np.testing.assert_array_equal(said.entries[-1].arrays["precision_mean"], SITE["precision_mean"])
    assert ("receipt", "b", 7, {1: (4, 1)}) in one.notes
    assert right.other.name == "a"


def test_of_two_messages_that_have_not_gone_the_newer_goes():
    one, other = Reception(0), Reception(1)
    net, left, _ = linked(one, other)
    for number in (1, 2, 3):
        says(left, Said(0, number, (site_of(0, number),)))
    stepped(net)
    assert [said.round for said in other.said] == [3]


def test_the_newest_message_is_said_again_on_a_new_connection():
    one, other = Reception(0), Reception(1)
    net, left, _ = linked(one, other)
    says(left, Said(0, 1, (site_of(0),)))
    stepped(net)
    net.cut(one.me.id, other.me.id)
    net.heal(one.me.id, other.me.id)
    stepped(net)
    assert [said.round for said in other.said] == [1, 1]


@pytest.mark.parametrize("seed", range(5))
def test_faults_lose_messages_and_never_change_them(seed):
    one, other = Reception(0), Reception(1)
    net, left, _ = linked(one, other, Faults(loss=0.2, repeat=0.2, delay=3, reorder=True), seed)
    for number in range(1, 15):
        says(left, Said(0, number, (site_of(0, number, precision=np.full(2, number / 2)),)))
        stepped(net, 12)
    for said in other.said:
        np.testing.assert_array_equal(said.entries[0].arrays["precision"], np.full(2, said.round / 2))


@pytest.mark.parametrize(
    ("theirs", "line"),
    [
        ({"study": "6" * 64, "sections": "0" * 12 + "1" + "0" * 47}, "555555555555: policy differs; join the bundle"),
        ({"protocol": 99}, "speaks protocol 99"),
    ],
)
def test_nothing_flows_between_peers_that_do_not_agree(theirs, line):
    one, other = Reception(0), Reception(1, **theirs)
    net, left, right = linked(one, other)
    says(left, Said(0, 1, (site_of(0),)))
    says(right, Said(1, 1, (site_of(1),)))
    stepped(net)
    assert not one.said
    assert not other.said
    assert any(line in str(note) for note in one.notes), one.notes


def test_what_is_passed_on_must_be_signed_by_its_owner():
    one, other = Reception(0, several=True), Reception(1, several=True)
    net, left, _ = linked(one, other)
    says(left, Said(0, 1, (site_of(0), site_of(2)._replace(signature="by 0"))))
    stepped(net)
    assert not other.said
    assert any("not signed by its owner" in str(note) for note in other.notes)


@pytest.mark.parametrize("array", [np.array([np.nan, 1.0]), np.array([-1.0, 1.0]), np.array([11.0, 1.0])])
def test_numbers_that_cannot_be_are_refused(array):
    one, other = Reception(0), Reception(1)
    net, left, _ = linked(one, other)
    says(left, Said(0, 1, (site_of(0, precision=array),)))
    stepped(net)
    assert not other.said


def test_a_goodbye_is_heard():
    one, other = Reception(0), Reception(1)
    net, left, _ = linked(one, other)
    stepped(net)
    left.leave("done")
    stepped(net)
    assert ("parted", "a", "said goodbye: 'done'") in other.notes


def test_who_has_the_older_roster_is_offered_the_newer():
    one, other = Reception(0, epoch=4), Reception(1, epoch=3)
    net, *_ = linked(one, other)
    stepped(net)
    assert other.rosters == [("roster 4", "a")]
    assert not one.rosters


@pytest.mark.parametrize(
    "content",
    [
        frame(Kind.RECEIPT, {"round": 1, "held": {}}),  # before a greeting
        frame(Kind.HELLO, {}),
        frame(Kind.HELLO, {**Greeting(PROTOCOL, "1", STUDY, 3, 1, 0, 0.0)._asdict(), "round": -1}),
        frame(Kind.ROSTER, {}, b"roster 0"),
        frame(Kind.ROSTER, {}, b"\xff"),
        b"",
    ],
)
def test_frames_out_of_place_are_refused(content):
    end = Link(MEMBERS[1], MEMBERS[0].id, Reception(0))
    end.opened()
    with pytest.raises(Refused):
        end.receive(content)


def test_the_pieces_of_a_message_follow_one_another_without_a_wait(monkeypatch):
    monkeypatch.setattr(assembling, "LONGEST_PAYLOAD", 32)
    one, other = Reception(0), Reception(1)
    net, left, _ = linked(one, other)
    stepped(net)  # greeted
    says(left, Said(0, 1, (site_of(0),)))
    monkeypatch.setattr(left._changed, "wait", lambda seconds: pytest.fail("waited with something to send"))
    pieces = -(-one.agreed().schema.bytes // 32)
    assert pieces > 2
    assert [parsed(left.take(60.0))[0] for _ in range(pieces)] == [Kind.BELIEF] * pieces
    monkeypatch.setattr(left._changed, "wait", lambda seconds: None)
    assert left.take(60.0) is None


def test_who_asks_and_asks_and_does_not_read_takes_no_memory():
    one = Reception(0)
    link = Link(MEMBERS[1], MEMBERS[0].id, one)
    link.opened()
    old = one.greeting()._asdict() | {"epoch": 1}  # which is answered with the roster
    for incarnation in range(200):
        link.receive(frame(Kind.HELLO, old))
        said = Said(1, 7, (site_of(1, 7)._replace(version=(7, incarnation)),))
        for each in Spoken(said, incarnation, one.now, MEMBERS[1].id).frames():
            link.receive(each)
    waiting = [parsed(content) for content in iter(lambda: link.take(0.0), None)]
    assert sorted(kind for kind, _, _ in waiting) == sorted({kind for kind, _, _ in waiting})
    (receipt,) = (header for kind, header, _ in waiting if kind == Kind.RECEIPT)
    assert receipt["round"] == 7


@pytest.mark.parametrize("changed", [{"clock": 10**400}, {"clock": 1.7e308}, {"round": 10**400}, {"epoch": 2**53}])
def test_numbers_that_nobody_computes_with_are_refused(changed):
    one = Reception(0)
    link = Link(MEMBERS[1], MEMBERS[0].id, one)
    link.opened()
    with pytest.raises(Refused, match="a greeting must say"):
        link.receive(frame(Kind.HELLO, {**one.greeting()._asdict(), **changed}))
    link.receive(frame(Kind.HELLO, one.greeting()._asdict()))
    with pytest.raises(Refused, match="a receipt must say"):
        link.receive(frame(Kind.RECEIPT, {"round": 10**400, "held": {}}))


def test_who_is_refused_is_told_what_of_whom():
    one, other = Reception(0, several=True), Reception(1, several=True)
    net, left, _ = linked(one, other)
    says(left, Said(0, 7, (site_of(0), site_of(2, precision=np.array([-1.0, 0.0])))))
    stepped(net)
    assert other.said == []
    refused = "member 2/precision: must be from 0 to 10"
    assert any(note[0] == "parted" and refused in note[2] for note in other.notes), other.notes
    with pytest.raises(Turned, match="it refused what we sent: no"):
        left.receive(frame(Kind.REFUSAL, {"why": "no"}))
