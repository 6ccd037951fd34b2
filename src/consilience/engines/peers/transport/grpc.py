"""Connections between hosts: one bidirectional gRPC stream a link, mutual TLS, and nobody trusted but the roster.

Either end may call; one that can be called is enough. A caller takes nobody for its neighbour who does not hold the
neighbour's key. Who answers asks for a certificate, takes none but those of the roster, and at every call looks up the
caller's key in the roster as it is then. Both use threads; a process that uses this must not be forked.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from consilience.engines.peers.transport import CONNECTED, STRANGERS, End, Id, Member, dials
from consilience.engines.peers.transport.answering import Answerer
from consilience.engines.peers.transport.calling import Caller, Own
from consilience.engines.peers.transport.certificates import outdated
from consilience.engines.peers.transport.connection import STOPPED, Link, Traffic
from consilience.errors import printable

RECENT = 60.0  # seconds for which a stranger is mentioned

__all__ = ["GrpcTransport", "Own"]


class GrpcTransport:
    """A peer's connections. `listen` is HOST:PORT where calls are answered; who has none can only call."""

    def __init__(self, own: Own, listen: str = "") -> None:
        self.own = own
        self._lock = threading.RLock()
        self._members: Mapping[Id, Member] = {}
        self._links: dict[Id, Link] = {}
        self._traffic: dict[Id, Traffic] = {}
        self._names: dict[Id, str] = {}  # also of those who were members once
        self._turned_away: dict[Id, str] = {}
        self._callers: list[Caller] = []
        self._running = False
        self._answerer = Answerer(own, listen, self._link_of) if listen else None

    def admit(self, members: Mapping[Id, Member], linked: Mapping[Id, End]) -> None:
        """Whom to let in, and with whom to have a link, from now on; what is no longer admitted is closed at once."""
        with self._lock:
            self._members = dict(members)
            self._names.update((key, member.name) for key, member in members.items())
            if self._answerer is not None:
                self._answerer.admit(member.certificate for member in members.values())
            wanted = {key: end for key, end in linked.items() if key in members and self.own.id in members}
            for key, link in list(self._links.items()):
                if wanted.get(key) is not link.end or link.member != members[key]:
                    del self._links[key]
                    link.retire("it is no longer in our roster" if key not in members else "the link has changed")
            for key in wanted.keys() - self._links.keys():
                self._add(members[key], wanted[key])
            self._turned_away = {key: said for key, said in self._turned_away.items() if key not in self._links}

    def start(self) -> None:
        """Begin to listen and to call; a port that cannot be had is refused in one line."""
        with self._lock:
            if self._answerer is not None:
                self._answerer.start()
            self._running = True
            for link in self._links.values():
                self._call(link)

    def stop(self, grace: float = 2.0) -> None:
        """Send what ends have to send, close everything, and end all threads, within so many seconds."""
        end = time.monotonic() + grace
        with self._lock:
            self._running = False
            links, callers = list(self._links.values()), list(self._callers)
        for link in links:
            link.finish()
        for link in links:
            link.ended(end - grace / 2 - time.monotonic())
        for link in links:
            link.retire(STOPPED)
        if self._answerer is not None:
            self._answerer.stop(end - time.monotonic())
        for link in links:
            link.ended(end - time.monotonic())
        for caller in callers:
            caller.thread.join(max(end - time.monotonic(), 0))

    def bytes(self) -> dict[Id, tuple[int, int]]:
        """How many bytes of frames were sent to and received from whom."""
        with self._lock:
            return {key: (traffic.sent, traffic.received) for key, traffic in self._traffic.items()}

    def states(self) -> dict[Id, str]:
        """Of everybody with a link, or who asked for one: "connected", or in one line why not."""
        with self._lock:
            states = dict(self._turned_away)
            for key, link in self._links.items():
                states[key] = self._state(link)
        if self._answerer is not None and self._answerer.knocks.since()[1] < RECENT:
            states[STRANGERS] = "somebody called who showed no certificate of our roster, and was refused"
        return states

    def refused(self) -> dict[Id, dict[str, int]]:
        """Whose frames were refused, how often, for which reason; and how often strangers were."""
        with self._lock:
            counts = {key: dict(traffic.refused) for key, traffic in self._traffic.items() if traffic.refused}
        if self._answerer is not None and (strangers := self._answerer.knocks.since()[0]):
            counts[STRANGERS] = {"handshake": strangers}
        return counts

    def _add(self, member: Member, end: End) -> None:
        own, key = self._members[self.own.id], member.id
        if dials(own, member):
            why = f"{member.name}: calling {member.address}"
        elif own.address:
            why = f"{member.name}: waiting for its call; is it running (consilience peer start)?"
        else:
            why = (
                f"{member.name}: neither it nor we can be called; one needs an address (consilience peer init --listen)"
            )
        self._links[key] = Link(member, end, self._traffic.setdefault(key, Traffic()), printable(why))
        if self._running:
            self._call(self._links[key])

    def _call(self, link: Link) -> None:
        if dials(self._members[self.own.id], link.member):
            self._callers = [caller for caller in self._callers if caller.thread.is_alive()]
            self._callers.append(Caller(self.own, link, self._names.get))
            self._callers[-1].thread.start()

    def _link_of(self, caller: Id) -> Link | str:
        """The link of a caller, by the roster as it is now; or why it has none, in words for the caller."""
        with self._lock:
            if caller in self._links:
                return self._links[caller]
            name = printable(self._names.get(caller, caller[:16]))
            if caller in self._members:
                self._turned_away[caller] = (
                    f"{name}: calls us, and our roster has no link with it; if there should be one take the newest "
                    "bundle (consilience peer join)"
                )
                return "there is no link with you in the roster here; compare epochs (consilience study show)"
            self._turned_away[caller] = f"{name}: calls us, and is not in our roster any more"
            return "you are not in the roster here any more; ask the steward"

    def _state(self, link: Link) -> str:
        state = link.state
        if state == CONNECTED or (wrong := outdated(link.member.certificate)) is None:
            return state
        return printable(f"{link.member.name}: its certificate {wrong}; ask it for a new one")
