"""The transport's twin in memory: many peers in one program, stepped by hand, with any faults, drawn from a seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

from consilience.engines.peers.transport import CONNECTED, End, Frame, Id, Member
from consilience.engines.peers.wire import Refused
from consilience.engines.peers.wire.frames import Turned
from consilience.streams import stream


class Faults(NamedTuple):
    """What may happen to frames: how likely they are lost or repeated, by how many steps late, and whether in order."""

    loss: float = 0.0
    repeat: float = 0.0
    delay: int = 0
    reorder: bool = False


class Flight(NamedTuple):
    """A frame on its way, and the step from which on it may arrive."""

    due: int
    frame: Frame


class Net:
    """Everybody's connections. Nothing happens but in `step`, which takes at most one frame from each end of a link.

    >>> net = Net(seed=1, faults=Faults(loss=0.2, delay=3))
    >>> net.transport("a" * 64).states()
    {}
    """

    def __init__(self, seed: int = 0, faults: Faults | None = None) -> None:
        self.seed, self.faults, self.time = seed, faults or Faults(), 0
        self._transports: dict[Id, MemoryTransport] = {}
        self._cut: set[frozenset[Id]] = set()
        self._open: dict[frozenset[Id], dict[Id, list[Flight]]] = {}  # frames on their way, by whom they are for

    def transport(self, own: Id) -> MemoryTransport:
        """A peer's transport."""
        self._transports[own] = MemoryTransport(self, own)
        return self._transports[own]

    def cut(self, one: Id, other: Id) -> None:
        """Break the connection between two, until it is healed; what is on its way is lost."""
        self._cut.add(frozenset((one, other)))
        self.close(one, other, "the connection was lost")

    def vanish(self, own: Id) -> None:
        """Somebody is gone without a word, as one that was killed: others see that the connection is lost."""
        self._transports[own].running = False
        for other in [*self._transports]:
            if other != own:
                self.close(own, other, "the connection was lost")

    def heal(self, one: Id, other: Id) -> None:
        """Let the two connect again."""
        self._cut.discard(frozenset((one, other)))

    def step(self) -> None:
        """Connect who can be connected, deliver the frames that are due, and take the next one from every end."""
        self.time += 1
        rng = stream("faults of a link", self.seed, self.time)
        for one, other in combinations(sorted(self._transports), 2):
            self._connect(one, other)
        for link, receiver in self._ways():
            due = self._due(link, receiver)
            for place in rng.permutation(len(due)) if self.faults.reorder else range(len(due)):
                if link in self._open:  # what was refused, or an end that parted, has closed it otherwise
                    self._deliver(link, receiver, due[place].frame)
        for link, receiver in self._ways():
            (sender,) = link - {receiver}
            frame = self._transports[sender].take(receiver)
            if frame is not None and link in self._open and rng.random() >= self.faults.loss:
                for _ in range(1 + int(rng.random() < self.faults.repeat)):
                    self._send(link, receiver, frame, self.time + 1 + int(rng.integers(self.faults.delay + 1)))

    def _due(self, link: frozenset[Id], receiver: Id) -> list[Flight]:
        flights = self._open[link][receiver]
        self._open[link][receiver] = [flight for flight in flights if flight.due > self.time]
        return [flight for flight in flights if flight.due <= self.time]

    def _send(self, link: frozenset[Id], receiver: Id, frame: Frame, due: int) -> None:
        flights = self._open[link][receiver]
        if flights and not self.faults.reorder:
            due = max(due, flights[-1].due)
        flights.append(Flight(due, frame))

    def on_the_way(self) -> int:
        """How many frames have been sent and have not arrived yet."""
        return sum(len(flights) for ways in self._open.values() for flights in ways.values())

    def close(self, one: Id, other: Id, why: str) -> None:
        """End the connection between two, if there is one."""
        if self._open.pop(frozenset((one, other)), None) is not None:
            self._transports[one].closed(other, why)
            self._transports[other].closed(one, why)

    def _ways(self) -> Iterator[tuple[frozenset[Id], Id]]:
        """Every open link in both directions, in an order that depends on nothing else; some may close meanwhile."""
        for link in sorted(self._open, key=sorted):
            for receiver in sorted(link):
                if link in self._open:
                    yield link, receiver

    def _connect(self, one: Id, other: Id) -> None:
        link, pair = frozenset((one, other)), (self._transports[one], self._transports[other])
        willing = pair[0].accepts(other) and pair[1].accepts(one)
        if willing and link not in self._open and link not in self._cut:
            self._open[link] = {one: [], other: []}
            pair[0].opened(other)
            if link in self._open:  # the one may have changed its mind
                pair[1].opened(one)

    def _deliver(self, link: frozenset[Id], receiver: Id, frame: Frame) -> None:
        (sender,) = link - {receiver}
        try:
            self._transports[receiver].receive(sender, frame)
        except Refused as refused:
            self._transports[receiver].count_refusal(sender, refused)
            self.close(receiver, sender, f"a frame was refused: {refused}")
        except Turned as turned:
            self.close(receiver, sender, str(turned))


class MemoryTransport:
    """One peer's transport in a `Net`."""

    def __init__(self, net: Net, own: Id) -> None:
        self.net, self.own, self.running = net, own, False
        self._members: Mapping[Id, Member] = {}
        self._linked: Mapping[Id, End] = {}
        self._why: dict[Id, str] = {}
        self._up: set[Id] = set()
        self._sent: Counter[Id] = Counter()
        self._received: Counter[Id] = Counter()
        self._refused: dict[Id, Counter[str]] = {}

    def admit(self, members: Mapping[Id, Member], linked: Mapping[Id, End]) -> None:
        """Whom to let in, and with whom to have a link, from now on; what is no longer admitted is closed at once."""
        before = self._linked
        gone = [other for other in before if other not in members or linked.get(other) is not before[other]]
        for other in gone:
            self.net.close(self.own, other, "no longer admitted")
        self._members, self._linked = dict(members), dict(linked)
        self._why = {other: why for other, why in self._why.items() if other in linked}

    def start(self) -> None:
        """Connect from the next step on."""
        self.running = True

    def stop(self, grace: float = 2.0) -> None:
        """Connect no longer. What ends still had to send is sent if the net is stepped before."""
        self.running = False
        for other in self._linked:
            self.net.close(self.own, other, "the other end stopped")

    def bytes(self) -> dict[Id, tuple[int, int]]:
        """How many bytes of frames were sent to and received from whom."""
        return {other: (self._sent[other], self._received[other]) for other in self._linked}

    def states(self) -> dict[Id, str]:
        """Of everybody with a link: "connected", or in one line why not."""
        return {other: self._state(other) for other in self._linked}

    def refused(self) -> dict[Id, dict[str, int]]:
        """Whose frames were refused, how often, for which reason."""
        return {other: dict(counts) for other, counts in self._refused.items()}

    def _state(self, other: Id) -> str:
        return CONNECTED if other in self._up else self._why.get(other, "not connected yet")

    # What the net asks.

    def accepts(self, other: Id) -> bool:
        """Whether there may be a connection with somebody now."""
        return self.running and other in self._members and other in self._linked

    def opened(self, other: Id) -> None:
        """A connection is there."""
        self._up.add(other)
        self._linked[other].opened()

    def closed(self, other: Id, why: str) -> None:
        """It is there no longer."""
        if other in self._up:
            self._up.remove(other)
            self._why[other] = why
            self._linked[other].closed(why)

    def take(self, other: Id) -> Frame | None:
        """The next frame for somebody."""
        frame = self._linked[other].take(0.0)
        self._sent[other] += len(frame or b"")
        return frame

    def receive(self, other: Id, frame: Frame) -> None:
        """A frame of somebody."""
        self._received[other] += len(frame)
        self._linked[other].receive(frame)

    def count_refusal(self, other: Id, refused: Refused) -> None:
        """A frame of somebody was refused."""
        self._refused.setdefault(other, Counter())[refused.reason] += 1
