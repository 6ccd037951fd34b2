"""Where a peer's links report to: how neighbours stand, and news for the life that goes on in another thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

from consilience.engines.peers.bundle import Bundle, newer
from consilience.engines.peers.desk import PROTOCOL, Agreed, Greeting
from consilience.engines.peers.identity import Identity
from consilience.engines.peers.keys import Id, check_signature, sign
from consilience.engines.peers.life import Life
from consilience.engines.peers.messages import Entry, Said, Version, as_count
from consilience.engines.peers.roster import Member
from consilience.engines.peers.wire import encoded
from consilience.engines.peers.wire.frames import canonical


class Known(NamedTuple):
    """What is known of a neighbour: whether it is there and has greeted; when it was last heard, on our clock.

    used: the last round in which what it said was used. sent: the last round whose message it has confirmed. ahead: by
    how many seconds its clock is.
    """

    reachable: bool = False
    admitted: bool = False
    heard_at: float | None = None
    round: int = 0
    used: int = 0
    sent: int = 0
    epoch: int = 0
    version: str = ""
    ahead: float = 0.0
    left: str = ""


@runtime_checkable
class Told(Protocol):
    """Whoever is told what happens: a log, a table on a screen, a test."""

    def __call__(self, what: str, **facts: Any) -> None:
        """Something has changed."""
        ...


def nobody(what: str, **facts: Any) -> None:
    """Tells nobody."""


class Reception:
    """The desk of a peer. Links call it from the transport's threads; what is news wakes whoever is in `wait`.

    `life` is the one that is lived; `agreed_on` and `bundle` are those of the roster as it is now.
    """

    life: Life
    agreed_on: Agreed

    def __init__(self, identity: Identity, bundle: Bundle, version: str, told: Told, now: Callable[[], float]) -> None:
        self.identity, self.bundle, self.version, self._told, self.now = identity, bundle, version, told, now
        self.neighbours: dict[int, Known] = {}
        self.versions: Mapping[int, Version] = {}  # those that are here
        self._certificates: dict[int, str] = {}  # by number
        self._news, self._fresh = threading.Condition(), False
        self._offered: Bundle | None = None

    def wait(self, seconds: float) -> None:
        """Until there is news, or so long."""
        with self._news:
            if not self._fresh:
                self._news.wait(seconds)
            self._fresh = False

    def wake(self) -> None:
        """There is news."""
        with self._news:
            self._fresh = True
            self._news.notify_all()

    def contributed(self, number: int, senders: Iterable[int]) -> None:
        """What these neighbours said was used in a round."""
        for sender in senders:
            if sender in self.neighbours:
                self.neighbours[sender] = self.neighbours[sender]._replace(used=number)

    def newer_bundle(self) -> Bundle | None:
        """What somebody has offered since this was last asked."""
        with self._news:
            offered, self._offered = self._offered, None
        return offered

    def will_remove(self, id: Id) -> bool:
        """Whether a roster was offered in which this member is no more."""
        offered = self._offered
        return offered is not None and offered.roster.member(id) is None

    def take(self, bundle: Bundle, agreed: Agreed, linked: set[int]) -> None:
        """Go on under another roster, with links to these."""
        self.bundle, self.agreed_on = bundle, agreed
        # Numbers are never given again, but a member may have a new key; nobody is used who is not in the roster.
        self._certificates |= {member.number: member.certificate for member in bundle.roster.members}
        self.neighbours = {number: self.neighbours.get(number, Known()) for number in sorted(linked)}

    def agreed(self) -> Agreed:
        """What must be agreed on, now."""
        return self.agreed_on

    def greeting(self) -> Greeting:
        """What this peer says first."""
        return Greeting(
            PROTOCOL, self.version, self.agreed_on.study, self.agreed_on.epoch, self.life.incarnation,
            self.life.position.round, time.time(), self.agreed_on.sections,
        )  # fmt: skip

    def roster(self) -> str:
        """The signed roster."""
        return self.bundle.offer

    def offered(self, text: str, by: Member) -> None:
        """Somebody offers a roster; a newer one is taken when the round ends, an equal or older one is nothing new."""
        self._offer(text, f"the roster that {by.name} offers")

    def laid(self, bundle: Bundle) -> None:
        """The same of one that lies in the home."""
        self._offer(bundle.offer, "the bundle in the home")

    def _offer(self, text: str, what: str) -> None:
        with self._news:
            if text == self.bundle.offer:
                return
            found, waiting = newer(self.bundle, text, what), self._offered
            if waiting is not None:
                if found.roster.epoch <= waiting.roster.epoch:
                    return
                found = newer(waiting, text, what)
            self._offered = found
            # Who offers it speaks under it from now on.
            parts = max(self.agreed_on.most_parts, len(found.roster.members))
            self.agreed_on = self.agreed_on._replace(upcoming=found.roster.epoch, most_parts=parts)
        self.wake()

    def greeted(self, by: Member, greeting: Greeting) -> None:
        """A neighbour may take part."""
        before = self.neighbours.get(by.number, Known())
        self.neighbours[by.number] = before._replace(
            reachable=True,
            admitted=True,
            round=max(before.round, greeting.round),
            epoch=greeting.epoch,
            version=greeting.version,
            ahead=greeting.clock - time.time(),
            left="",
        )
        self._told("greeted", name=by.name, round=greeting.round, epoch=greeting.epoch, version=greeting.version)

    def arrived(self, by: Member, said: Said) -> None:
        """A message."""
        before = self.neighbours.get(by.number, Known())
        self.neighbours[by.number] = before._replace(heard_at=self.now(), round=max(before.round, said.round))
        if self.life.receive(said):
            self.wake()

    def held(self) -> Mapping[int, Version]:
        """The versions that are here."""
        return self.versions

    def receipt(self, by: Member, number: int, held: Mapping[int, Version]) -> None:
        """A neighbour has these versions, and the message of this round."""
        before = self.neighbours.get(by.number, Known())
        self.neighbours[by.number] = before._replace(sent=max(before.sent, number))
        self.life.mailbox.knows(by.number, held)

    def parted(self, by: Member, why: str, goodbye: bool) -> None:
        """A neighbour is gone; who said goodbye is not waited for."""
        before = self.neighbours.get(by.number, Known())
        if goodbye:
            self.life.waiting.parted(by.number)
            self.wake()
        self.neighbours[by.number] = before._replace(reachable=False, admitted=False, left=why)
        if before.admitted:
            self._told("parted", name=by.name, why=why)

    def genuine(self, entry: Entry) -> bool:
        """Whether an entry is signed by its owner, who may have been removed while it was on its way."""
        certificate = self._certificates.get(entry.owner)
        return certificate is not None and check_signature(certificate, self._content(entry), entry.signature)

    def _content(self, entry: Entry) -> bytes:
        """What an owner signs: of which study, whose, which version, and all its numbers."""
        said = canonical({"study": self.agreed_on.study, "owner": entry.owner, "version": as_count(entry.version)})
        return said + encoded(entry.arrays, self.agreed_on.schema)

    def signed(self, entry: Entry) -> Entry:
        """With the signature of its owner, where others pass it on."""
        if not self.agreed_on.several:
            return entry
        return entry._replace(signature=sign(self.identity.key, self._content(entry)))
