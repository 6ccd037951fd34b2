"""This end of a link: it greets, says its newest message, and takes nothing that is not exactly what was agreed.

Bytes and times go in, frames and decisions come out; sockets are the transport's.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, get_type_hints

from consilience.engines.peers.desk import PROTOCOL, Desk, Greeting
from consilience.engines.peers.messages import Entry, Said, as_count, as_version
from consilience.engines.peers.roster import Member
from consilience.engines.peers.spoken import Spoken, expected_of
from consilience.engines.peers.study import differing
from consilience.engines.peers.wire import Assembler, Kind, Refused, by_owner, decoded, frame, parsed
from consilience.engines.peers.wire.frames import Buffer, Turned
from consilience.engines.peers.wire.messages import LARGEST, About
from consilience.errors import InputError, brief, printable

LONGEST_REASON = 200  # characters that somebody says when it leaves
LONGEST_REFUSAL = 500  # and when it takes nothing more


class Link:
    """One end of a link. A message that has not begun to go when a newer one is there is never sent."""

    def __init__(self, other: Member, own_id: str, desk: Desk) -> None:
        self.other, self._own_id, self._desk = other, own_id, desk
        self._changed = threading.Condition()
        self._control: deque[bytes] = deque()
        self._message: Spoken | None = None  # the newest; said again on every connection
        self._unsent = False
        self._going: Iterator[bytes] = iter(())
        self._greeted = self._asked = False
        self._newest = (-1, -1)
        self._assembler = Assembler(self._allowed)

    def opened(self) -> None:
        """Greet; everything begins anew."""
        with self._changed:
            self._control.clear()
            self._going, self._greeted, self._unsent = iter(()), False, self._message is not None
            self._newest = (-1, -1)  # what was said last may be said again
            self._assembler.forget()
            self._control.append(frame(Kind.HELLO, self._desk.greeting()._asdict()))
            self._changed.notify_all()

    def closed(self, why: str) -> None:
        """The connection is gone."""
        with self._changed:
            self._greeted = False
        self._desk.parted(self.other, why, False)

    def say(self, message: Spoken) -> None:
        """Have a message sent, in the place of any that has not gone yet."""
        with self._changed:
            self._message, self._unsent = message, True
            self._changed.notify_all()

    def leave(self, why: str) -> None:
        """Say goodbye."""
        self._tell(Kind.GOODBYE, {"why": why[:LONGEST_REASON]})

    def offer(self) -> None:
        """Offer the roster that this peer has."""
        self._tell(Kind.ROSTER, {}, self._desk.roster().encode())

    def flushed(self, within: float) -> bool:
        """Whether all frames have gone, or have within so many seconds."""
        with self._changed:
            self._asked = False  # who asks for the next one has sent the last one
            return self._changed.wait_for(lambda: self._asked and not self._control, within)

    def take(self, wait: float) -> bytes | None:
        """The next frame to send: what is short first, then the message that is going, then the newest."""
        with self._changed:
            if (first := self._next()) is None:
                self._asked = True
                self._changed.notify_all()
                self._changed.wait(wait)
                first = self._next()
            return first

    def receive(self, content: bytes) -> None:
        """A frame has come; what is not as it must be is refused, and the other end is told."""
        try:
            self._receive(content)
        except Refused as refused:
            self._tell(Kind.REFUSAL, {"why": str(refused)[:LONGEST_REFUSAL]})
            raise

    def _receive(self, content: bytes) -> None:
        kind, header, payload = parsed(content)
        if kind == Kind.HELLO:
            self._greet(header)
        elif kind == Kind.ROSTER:
            self._take_roster(bytes(payload))
        elif kind == Kind.GOODBYE:
            self._desk.parted(self.other, f"said goodbye: {brief(header.get('why', ''))}", True)
        elif kind == Kind.REFUSAL:
            raise Turned(f"it refused what we sent: {printable(str(header.get('why', ''))[:LONGEST_REFUSAL])}")
        elif not self._greeted:
            raise Refused("frame", "nothing is taken before a greeting")
        elif kind == Kind.RECEIPT:
            self._take_receipt(header)
        elif (whole := self._assembler.add(header, payload)) is not None:
            self._take(*whole)

    def _next(self) -> bytes | None:
        if self._control:
            return self._control.popleft()
        if (going := next(self._going, None)) is not None:
            return going
        if self._greeted and self._unsent and self._message is not None:
            self._unsent, self._going = False, self._message.frames()
            return next(self._going, None)
        return None

    def _tell(self, kind: Kind, header: Mapping[str, Any], payload: bytes = b"") -> None:
        with self._changed:
            # The newest of a kind says all: who asks and asks and does not read takes no memory.
            waiting = (each for each in self._control if each[0] != kind)
            self._control = deque([*waiting, frame(kind, header, payload)])
            self._changed.notify_all()

    def _greet(self, header: dict[str, Any]) -> None:
        kinds = get_type_hints(Greeting)
        if set(header) != set(kinds) or not all(_is(header[name], kind) for name, kind in kinds.items()):
            raise Refused("frame", f"a greeting must say {', '.join(kinds)}")
        greeting, agreed = Greeting(**header), self._desk.agreed()
        if greeting.protocol != PROTOCOL:
            said = f"{self.other.name} speaks protocol {greeting.protocol} (version {brief(greeting.version)})"
            raise Refused("version", f"{said}, this one {PROTOCOL}; one of the two must be updated")
        if greeting.study != agreed.study:
            said = f"{self.other.name} has another study, {brief(greeting.study[:12])}, this one {agreed.study[:12]}"
            where = differing(greeting.sections, agreed.sections)
            raise Refused("study", f"{said}: {where} differs; join the bundle that the steward sent to all")
        if self._desk.greeting().looks:
            self._desk.greeted(self.other, greeting)
            return
        if greeting.looks:
            return
        with self._changed:
            self._greeted = True
            self._changed.notify_all()
        if greeting.epoch < agreed.epoch:
            self.offer()
        self._receipt(0)
        self._desk.greeted(self.other, greeting)

    def _take_roster(self, text: bytes) -> None:
        try:
            self._desk.offered(text.decode(), self.other)
        except UnicodeDecodeError:
            raise Refused("epoch", "a roster must be text") from None
        except InputError as error:
            raise Refused("epoch", str(error)) from None

    def _receipt(self, number: int) -> None:
        names = {its: id for id, its in self._desk.agreed().number_of.items()}
        held = {names[owner]: as_count(version) for owner, version in self._desk.held().items() if owner in names}
        self._tell(Kind.RECEIPT, {"round": number, "held": held})

    def _take_receipt(self, header: dict[str, Any]) -> None:
        held = header.get("held")
        if set(header) != {"round", "held"} or not _is(header["round"], int) or not isinstance(held, dict):
            raise Refused("frame", "a receipt must say a round, and what is held")
        number_of = self._desk.agreed().number_of
        known = {number_of[id]: as_version(count) for id, count in held.items() if id in number_of and _is(count, int)}
        self._desk.receipt(self.other, header["round"], known)

    def _allowed(self, announced: About) -> int:
        agreed = self._desk.agreed()
        expected = expected_of(agreed, self.other.id)._replace(newest=self._newest)
        if not 1 <= announced.round <= agreed.rounds:
            raise Refused("frame", f"the study has {agreed.rounds} rounds, a message says it is of {announced.round}")
        if len(announced.entries) > agreed.most_parts:
            raise Refused("schema", f"the parts of {len(announced.entries)} owners, there are {agreed.most_parts}")
        expected.check(announced)
        return announced.length

    def _take(self, announced: About, body: Buffer) -> None:
        """A whole message: every number of it is looked at before anybody computes with it."""
        agreed = self._desk.agreed()
        schema = expected_of(agreed, self.other.id).check(announced)
        try:
            arrays = decoded(body, schema, agreed.bounds, agreed.form)
        except Refused as refused:
            raise Refused(refused.reason, self._named(str(refused))) from None
        version = announced.round, announced.incarnation
        entries: tuple[Entry, ...] = (Entry(self.other.number, version, arrays),)
        if agreed.several:
            parts = by_owner(arrays)
            entries = tuple(
                Entry(agreed.number_of[each.owner], as_version(each.version), parts[each.owner], each.signature)
                for each in announced.entries
                if each.owner in agreed.number_of  # others have been removed, or are not known here yet
            )
            for entry in entries:
                if not self._desk.genuine(entry):
                    raise Refused("sender", f"the part of member {entry.owner} is not signed by its owner")
        self._newest = announced.incarnation, announced.round
        self._desk.arrived(self.other, Said(self.other.number, announced.round, entries, announced.epoch))
        self._receipt(announced.round)

    def _named(self, line: str) -> str:
        """The line, with numbers of members in the place of their IDs."""
        for id, number in self._desk.agreed().number_of.items():
            line = line.replace(id, self.other.name if id == self.other.id else f"member {number}")
        return line


def _is(value: Any, kind: Any) -> bool:
    if kind is int:
        return type(value) is int and 0 <= value <= LARGEST
    if kind is bool:
        return type(value) is bool
    if kind is float:
        return type(value) in (int, float) and abs(value) <= LARGEST
    return isinstance(value, str) and len(value) <= LONGEST_REASON
