"""Whether every link of a peer is in order, before it takes part: connect, greet as one who only looks, and leave."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import NamedTuple

from consilience.engines.peers.bundle import Bundle
from consilience.engines.peers.desk import PROTOCOL, Agreed, Greeting
from consilience.engines.peers.link import Link
from consilience.engines.peers.messages import Entry, Said, Version
from consilience.engines.peers.roster import Member
from consilience.engines.peers.study import sections
from consilience.engines.peers.transport import CONNECTED, Transport
from consilience.engines.peers.wire import Bounds, Schema
from consilience.engines.peers.wire.schema import Leaf

NOTHING = Schema((Leaf("nothing", "float32", ()),))  # whoever looks has no use for messages
CLOCKS = 60.0  # seconds by which clocks may differ before it is said


class Found(NamedTuple):
    """What was found on the way to a neighbour: nothing is wrong where there is no `problem`."""

    neighbour: str
    problem: str
    version: str = ""
    epoch: int = 0
    clock: float = 0.0


class Looking:
    """The desk of one who only looks: notes who greets, and takes nothing."""

    def __init__(self, bundle: Bundle, version: str) -> None:
        self._version, self._roster = version, bundle.offer
        number_of = {member.id: member.number for member in bundle.roster.members}
        study, epoch = bundle.study.hash, bundle.roster.epoch
        parts = sections(bundle.study)
        self._agreed = Agreed(study, epoch, NOTHING, "exact", False, Bounds(0.0, 1.0), 1, 1, number_of, parts)
        self.greetings: dict[int, tuple[Greeting, float]] = {}
        self.news = threading.Event()

    def agreed(self) -> Agreed:
        """Study and epoch."""
        return self._agreed

    def greeting(self) -> Greeting:
        """What is said first."""
        study, epoch, parts = self._agreed.study, self._agreed.epoch, self._agreed.sections
        return Greeting(PROTOCOL, self._version, study, epoch, 0, 0, time.time(), parts, looks=True)

    def roster(self) -> str:
        """The signed roster."""
        return self._roster

    def greeted(self, by: Member, greeting: Greeting) -> None:
        """A neighbour is there, and has the same study."""
        self.greetings[by.number] = greeting, greeting.clock - time.time()
        self.news.set()

    def offered(self, text: str, by: Member) -> None:
        """A roster is taken when the peer takes part."""

    def arrived(self, by: Member, said: Said) -> None:
        """Nothing is taken."""

    def held(self) -> Mapping[int, Version]:
        """Nothing is held."""
        return {}

    def receipt(self, by: Member, number: int, held: Mapping[int, Version]) -> None:
        """Nothing was sent."""

    def parted(self, by: Member, why: str, goodbye: bool) -> None:
        """It is looked again."""

    def genuine(self, entry: Entry) -> bool:
        """Nothing is taken."""
        return False


def checked(bundle: Bundle, me: int, transport: Transport, version: str, seconds: float) -> list[Found]:
    """Look at every link for so many seconds at most."""
    roster, desk = bundle.roster, Looking(bundle, version)
    members = {member.number: member for member in roster.members}
    linked = sorted({j for link in roster.links for j in link[:2] if me in link[:2]} - {me})
    ends = {members[number].id: Link(members[number], members[me].id, desk) for number in linked}
    transport.admit({member.id: member for member in roster.members}, ends)
    until = time.monotonic() + seconds
    transport.start()
    try:
        while len(desk.greetings) < len(linked) and (left := until - time.monotonic()) > 0:
            desk.news.wait(left)
            desk.news.clear()
        states = transport.states()
    finally:
        transport.stop()
    return [found(members[number], desk, roster.epoch, version, states) for number in linked]


def found(member: Member, desk: Looking, epoch: int, version: str, states: Mapping[str, str]) -> Found:
    """What is wrong with the link to a member, from what was heard of it; `states` are the transport's lines."""
    if member.number not in desk.greetings:
        why = states.get(member.id, "")
        return Found(member.name, why if why and why != CONNECTED else f"{member.name}: is connected and says nothing")
    greeting, clock = desk.greetings[member.number]
    wrong = ""
    if greeting.epoch > epoch:
        wrong = f"has the roster of epoch {greeting.epoch}, ours is {epoch}: ask the steward for the newest bundle"
    elif greeting.version != version:
        wrong = f"has version {greeting.version}, ours is {version}: better have the same"
    elif abs(clock) > CLOCKS:
        wrong = f"has a clock that is {abs(clock):.0f} s {'ahead' if clock > 0 else 'behind'}: set one of the two"
    return Found(member.name, f"{member.name}: {wrong}" if wrong else "", greeting.version, greeting.epoch, clock)
