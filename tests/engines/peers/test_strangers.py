"""Nobody is let in who is not in the roster, and nobody is taken for somebody else; both sides say so in one line."""

import gc
import re
import resource
import socket
import ssl
import threading
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, suppress
from multiprocessing import get_context
from pathlib import Path

import pytest
from callers import call, called, trouble
from ends import Recorded, until
from peers_rig import Line, free_address, peer, roster

from consilience.engines.peers.transport import STRANGERS, answering, connection
from consilience.engines.peers.transport.certificates import fixed_name, id_of, outdated
from consilience.engines.peers.transport.connection import Link, Traffic
from consilience.engines.peers.transport.diagnosis import found
from consilience.engines.peers.transport.quiet import WELCOME, grpc
from consilience.engines.peers.wire import LONGEST_FRAME

CLOSED = (
    "alice: closed the connection when it saw our certificate: we are not in its roster yet, or no longer; "
    "compare epochs (consilience study show) and give it the newest bundle"
)
KNOCKED = "somebody called who showed no certificate of our roster, and was refused"
TURNED_AWAY = "you are not in the roster here any more; ask the steward"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    """Who has not said who it is after a short time is a stranger."""
    monkeypatch.setattr(answering, "INTRODUCTION", 0.3)


@pytest.fixture
def alice():
    return peer(0, "alice", free_address())


def test_a_stranger_is_refused_and_both_say_so(host, alice):
    """Its key is in nobody's roster but its own."""
    mallory = peer(1, "mallory")
    inside, outside = host(alice, [alice]), host(mallory, [alice, mallory])
    until(lambda: outside.state(alice) == CLOSED)
    until(lambda: inside.transport.states() == {STRANGERS: KNOCKED})
    assert inside.transport.refused()[STRANGERS]["handshake"] >= 1
    assert not outside.end(alice).log


@pytest.mark.parametrize("certificate", ["none", "of nobody", "with a member's name"])
def test_no_certificate_or_one_of_nobody_does_not_get_through_the_handshake(host, alice, certificate):
    bob = peer(1, "bob")
    inside = host(alice, [alice, bob])
    caller = {"none": None, "of nobody": peer(1, "bob"), "with a member's name": bob}[certificate]
    if certificate == "with a member's name":  # bob's certificate is public: but another key
        other = peer(1, "bob")
        caller = bob._replace(own=bob.own._replace(private_pem=other.own.private_pem))
    received, code, _ = call(alice, caller)
    assert (received, code) == ([], grpc.StatusCode.UNAVAILABLE)
    assert inside.state(bob).startswith("bob: waiting for its call")
    assert not inside.end(bob).log


def test_no_tls_is_refused(host, alice):
    inside = host(alice, [alice])
    with grpc.insecure_channel(alice.member.address) as channel:
        assert called(channel)[1] == grpc.StatusCode.UNAVAILABLE
    until(lambda: inside.transport.states() == {STRANGERS: KNOCKED})


def test_another_member_at_the_expected_address_is_not_taken_for_the_neighbour(host, alice):
    """Carol listens where alice should be."""
    carol = peer(1, "carol", alice.member.address)
    bob = peer(2, "bob")
    host(carol, [alice, bob, carol], listen=alice.member.address)
    caller = host(bob, [alice, bob, carol], [alice])
    line = (
        f"alice: {alice.member.address} shows another key (that of carol); if its key has changed take the newest "
        "bundle (consilience peer join), else the address is wrong or somebody is in between"
    )
    until(lambda: caller.state(alice) == line)
    assert not caller.end(alice).log


def test_a_member_posing_as_another_is_only_itself(host, alice):
    """It gets through the handshake with its own key, and to its own link."""
    bob, carol = peer(1, "bob"), peer(2, "carol")
    inside = host(alice, [alice, bob, carol], [bob])
    received, code, said = call(alice, carol)
    assert (received, code) == ([], grpc.StatusCode.PERMISSION_DENIED)
    assert said == "there is no link with you in the roster here; compare epochs (consilience study show)"
    assert inside.state(bob).startswith("bob: waiting for its call")
    line = "carol: calls us, and our roster has no link with it; if there should be one take the newest bundle (consilience peer join)"  # noqa: E501
    assert inside.state(carol) == line
    outside = host(carol, [alice, bob, carol], [alice])
    until(lambda: outside.state(alice) == f"alice: refuses our call: {said}")


def test_a_removed_member_is_closed_at_once_and_stays_out(host, alice):
    """Through what is left of its old connection, and through a new one."""
    bob, carol = peer(1, "bob"), peer(2, "carol")
    inside = host(alice, [alice, bob, carol])
    outside, other = host(bob, [alice, bob, carol], [alice]), host(carol, [alice, bob, carol], [alice])
    until(lambda: inside.state(bob) == inside.state(carol) == "connected")
    inside.admit([alice, carol])
    until(lambda: not (inside.end(bob).is_open or outside.end(alice).is_open))
    assert inside.end(bob).log == ["opened", "closed: it is no longer in our roster"]
    until(lambda: outside.state(alice) == CLOSED)
    assert inside.state(carol) == other.state(alice) == "connected"
    until(lambda: inside.transport.states().get(STRANGERS) == KNOCKED)
    assert inside.end(carol).log == ["opened"]
    inside.admit([alice, bob, carol])
    until(lambda: inside.state(bob) == outside.state(alice) == "connected")


def test_every_call_is_looked_up_also_on_a_connection_that_was_made_before(host, alice):
    bob = peer(1, "bob")
    inside = host(alice, [alice, bob])
    credentials = grpc.ssl_channel_credentials(alice.own.certificate.encode(), *bob.pair)
    options = (("grpc.ssl_target_name_override", fixed_name(alice.id)),)
    with grpc.secure_channel(alice.member.address, credentials, options) as channel:
        assert called(channel)[1] == grpc.StatusCode.OK
        inside.admit([alice])
        assert called(channel) == ([], grpc.StatusCode.PERMISSION_DENIED, TURNED_AWAY)
    assert inside.state(bob) == "bob: calls us, and is not in our roster any more"


def test_who_is_added_is_let_in_without_a_restart(host, alice):
    bob, carol = peer(1, "bob"), peer(2, "carol")
    inside, first = host(alice, [alice, bob]), host(bob, [alice, bob])
    until(lambda: inside.state(bob) == "connected")
    newcomer = host(carol, [alice, bob, carol], [alice])
    until(lambda: newcomer.state(alice) == CLOSED)
    inside.admit([alice, bob, carol])
    until(lambda: inside.state(carol) == newcomer.state(alice) == "connected")
    assert inside.end(bob).log == first.end(alice).log == ["opened"]


@pytest.mark.parametrize(("begins", "ends", "said"), [(-10, -2, "expired on"), (2, 10, "is not valid before")])
def test_a_certificate_that_is_not_valid_is_refused_and_both_say_so(host, alice, begins, ends, said):
    """That of the caller; and that of the one who is called."""
    now = r"\d\d\d\d-\d\d-\d\d \d\d:\d\d"
    bob = peer(1, "bob", begins=begins, ends=ends)
    inside, outside = host(alice, [alice, bob]), host(bob, [alice, bob])
    renew = r"who owns it needs a new one \(consilience peer init\), or one of the clocks is wrong"
    wrong = f"certificate {said} {now} UTC, and this host's clock says {now}; "
    refused = f"alice: refuses our certificate, which {wrong.removeprefix('certificate ')}{renew}"
    until(lambda: re.fullmatch(refused, outside.state(alice)), "the caller says it")
    assert re.fullmatch(f"bob: its {wrong}ask it for a new one", inside.state(bob))
    dave = peer(2, "dave", free_address(), begins, ends)
    erin = peer(3, "erin")
    host(dave, [dave, erin])
    caller = host(erin, [dave, erin])
    until(lambda: re.fullmatch(f"dave: its {wrong}ask it for a new one", caller.state(dave)))
    until(
        lambda: re.fullmatch(f"dave: its {wrong}{renew}", caller.transport._links[dave.id].why), "that is what it found"
    )
    assert not caller.end(dave).log


def test_who_is_not_in_its_own_roster_has_no_links(host, alice):
    bob = peer(1, "bob", free_address())
    inside = host(alice, [alice, bob])
    inside.admit([bob])
    assert inside.transport.states() == {}


class Answers:
    """A port at which something is, that is no peer."""

    def __init__(self, answer):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.answer, self.kept = answer, []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with suppress(OSError):
            while True:
                self.kept.append(self.listener.accept()[0])
                if self.answer is not None:
                    self.kept[-1].recv(1)
                    self.kept[-1].sendall(self.answer)
                    self.kept.pop().close()

    def close(self):
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for one in self.kept:
            one.close()


def test_what_is_wrong_on_the_way_is_found(host):
    """Nobody listens; something listens that does not speak TLS; something that does not answer; no such name."""
    bob = peer(1, "bob")

    def line(address):
        return found(peer(0, "alice", address).member, bob.own.certificate, {}.get)

    address = free_address()
    assert (
        line(address) == f"nobody listens at {address}; is it running (consilience peer start), and is the port open?"
    )
    with closing(Answers(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as web:
        assert (
            line(web.address) == f"what listens at {web.address} does not speak TLS; is the address in its card right?"
        )
    with closing(Answers(None)) as silent:
        assert line(silent.address) == f"{silent.address} does not answer; is it stopped, or a firewall in between?"
    for odd in ("127.0.0.1:", f"{'x' * 70}.consilience:1"):
        assert line(odd) == f"the name in its address {odd} is not known here; is the address in its card right?"


def test_a_name_that_nobody_knows_is_said(monkeypatch):
    def unknown(*arguments):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "create_connection", unknown)
    line = "the name in its address nowhere.invalid:7 is not known here; is the address in its card right?"
    assert found(peer(0, "alice", "nowhere.invalid:7").member, "", {}.get) == line


def test_a_caller_says_what_is_wrong_on_the_way(host, alice):
    bob = peer(1, "bob")
    caller = host(bob, [alice, bob])
    line = f"alice: nobody listens at {alice.member.address}; is it running (consilience peer start), and is the port"
    until(lambda: caller.state(alice) == f"{line} open?")
    host(alice, [alice, bob])
    until(lambda: caller.state(alice) == "connected")


def test_a_name_cannot_steer_a_terminal(host):
    alice = peer(0, "al\x1b[31mice", free_address())
    bob = peer(1, "bob\n")
    inside, caller = host(alice, [alice, bob]), host(bob, [alice, bob])
    until(lambda: caller.state(alice) == "connected")
    inside.admit([alice])
    until(lambda: caller.state(alice).startswith("al\\x1b[31mice: closed"))
    assert all(line.isprintable() for one in (inside, caller) for line in one.transport.states().values())


def test_a_frame_that_is_too_long_ends_the_connection_and_is_not_kept(host, alice):
    bob = peer(1, "bob")
    inside = host(alice, [alice, bob])
    _, code, _ = call(alice, bob, frames=[bytes(LONGEST_FRAME + 1)])
    assert code in (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.CANCELLED)
    until(lambda: inside.end(bob).log.count("opened") == 1 and not inside.end(bob).is_open)
    assert not inside.end(bob).received


def test_memory_and_threads_do_not_grow_with_what_is_refused(host, alice, monkeypatch):
    """Strangers, frames that are refused and frames that are too long, one after another, from another process:
    callers keep memory of their own."""
    monkeypatch.setattr(connection, "WAIT", 0.02)
    bob, mallory = peer(1, "bob"), peer(1, "mallory")
    inside = host(alice, [alice, bob])
    inside.ends[bob.id].refuse = True

    def spoilt(times):
        assert outside.submit(trouble, alice, bob, mallory, times).result() == {"not what was agreed"}
        until(lambda: not inside.end(bob).is_open)
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize(), len(gc.get_objects()), threading.active_count()

    with ProcessPoolExecutor(1, get_context("spawn")) as outside:
        before, objects, threads = spoilt(10)
        after, more_objects, more_threads = spoilt(80)
    assert after - before < 20 << 20  # of the 85 MB that were sent
    assert more_objects < objects + 500
    assert more_threads <= threads + 3
    assert inside.transport.refused()[bob.id] == {"schema": 90}


def test_a_link_whose_last_connection_does_not_end_takes_no_new_one(alice):
    link = Link(alice.member, Recorded(), Traffic(), "why")
    assert link.begin(0.0) is not None
    assert link.begin(0.0) is None  # nobody has run the first one to its end
    link.retire("over")
    assert link.begin(0.0) is None


def test_an_id_is_that_of_the_key_whatever_the_certificate(alice):
    assert id_of(alice.own.certificate) == id_of(ssl.PEM_cert_to_DER_cert(alice.own.certificate)) == alice.id
    assert outdated(alice.own.certificate) is None
    assert WELCOME[0].islower()  # as gRPC wants its names
    assert roster(alice)[alice.id].certificate == alice.own.certificate


def test_a_line_that_opens_and_closes_is_no_stranger_for_long(host, alice):
    """Somebody looks whether the port is open, as monitors do: it is mentioned, and nothing else happens."""
    bob = peer(1, "bob")
    inside, caller = host(alice, [alice, bob]), host(bob, [alice, bob])
    until(lambda: caller.state(alice) == "connected")
    line = Line(alice.member.address)
    socket.create_connection(("127.0.0.1", int(line.address.rpartition(":")[2]))).close()
    until(lambda: inside.transport.states() == {bob.id: "connected", STRANGERS: KNOCKED})
    assert inside.end(bob).log == ["opened"]
    line.remove()
