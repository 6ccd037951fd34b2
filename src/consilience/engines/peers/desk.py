"""What a peer's links must know of it, and where they report to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol, runtime_checkable

from consilience.engines.peers.messages import Entry, Said, Version
from consilience.engines.peers.roster import Member
from consilience.engines.peers.wire import Bounds, Schema

PROTOCOL = 2


class Agreed(NamedTuple):
    """What both ends must agree on before beliefs flow: of what, under which roster, in which form.

    several: whether messages hold the parts of several owners. bounds: of precisions. number_of: members by their IDs.
    sections: digits of the study's sections, to say in which another one differs. upcoming: the epoch of a newer roster
    that will be gone on under after this round, or of this one; `most_parts`: how many members either has.
    """

    study: str
    epoch: int
    schema: Schema
    form: str
    several: bool
    bounds: Bounds
    most_bytes: int
    rounds: int
    number_of: Mapping[str, int]
    sections: str = ""
    upcoming: int = 0
    most_parts: int = 0


class Greeting(NamedTuple):
    """What a peer says first; `clock` is its time of day, to see by how much clocks differ.

    `looks`: it only looks whether the link is in order, and takes no part yet.
    """

    protocol: int
    version: str
    study: str
    epoch: int
    incarnation: int
    round: int
    clock: float
    sections: str = ""
    looks: bool = False


@runtime_checkable
class Desk(Protocol):
    """Where a peer's links report to. Called by the threads of a transport: it locks what it must."""

    def agreed(self) -> Agreed:
        """What must be agreed on, now."""
        ...

    def greeting(self) -> Greeting:
        """What this peer says of itself."""
        ...

    def roster(self) -> str:
        """The signed roster, as it is offered."""
        ...

    def offered(self, text: str, by: Member) -> None:
        """Somebody offers a newer roster; refused by InputError."""
        ...

    def greeted(self, by: Member, greeting: Greeting) -> None:
        """A neighbour is there, and may take part."""
        ...

    def arrived(self, by: Member, said: Said) -> None:
        """A message."""
        ...

    def held(self) -> Mapping[int, Version]:
        """The versions that are here."""
        ...

    def receipt(self, by: Member, number: int, held: Mapping[int, Version]) -> None:
        """A neighbour has received the message of a round, and has these versions."""
        ...

    def parted(self, by: Member, why: str, goodbye: bool) -> None:
        """A neighbour says goodbye, or the connection is gone without a word."""
        ...

    def genuine(self, entry: Entry) -> bool:
        """Whether what is passed on is signed by its owner."""
        ...
