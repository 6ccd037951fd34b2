"""How frames get from one peer to another: between hosts over gRPC with mutual TLS, or in memory, with any faults.

A transport keeps one connection for each link, brings it back when it breaks, and lets nobody in who is not admitted.
What the frames say is none of its business: it hands them to the link's end, and asks it for the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias, runtime_checkable

Id: TypeAlias = str
Frame: TypeAlias = bytes

CONNECTED = "connected"
STRANGERS = ""  # in the place of an ID: those who called and did not show who they are


@runtime_checkable
class Member(Protocol):
    """What a transport has to know of somebody in the roster. Whoever only dials has no address."""

    @property
    def number(self) -> int: ...  # noqa: D102
    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def id(self) -> Id: ...  # noqa: D102
    @property
    def certificate(self) -> str: ...  # noqa: D102
    @property
    def address(self) -> str: ...  # noqa: D102


@runtime_checkable
class End(Protocol):
    """This end of a link, as a transport sees it: opened, then frames both ways, then closed, and so on.

    Of one connection `opened`, `receive` and `closed` are called by one thread, in this order, `take` by another one
    between `opened` and `closed`; the next connection begins when the last has been closed.
    """

    def opened(self) -> None:
        """A connection is there, with nothing sent or received on it yet."""

    def closed(self, why: str) -> None:
        """It is there no longer."""

    def receive(self, frame: Frame) -> None:
        """A frame has come. `wire.Refused` ends the connection."""

    def take(self, wait: float) -> Frame | None:
        """The next frame to send; asked for only when it can be sent. Waits for one at most so long (s)."""


@runtime_checkable
class Transport(Protocol):
    """Connections to neighbours."""

    def admit(self, members: Mapping[Id, Member], linked: Mapping[Id, End]) -> None:
        """Whom to let in, and with whom to have a link, from now on; what is no longer admitted is closed at once.

        May be called at any time, from any thread, also by an end from within `receive`.
        """

    def start(self) -> None:
        """Begin to listen and to call."""

    def stop(self, grace: float = 2.0) -> None:
        """Send what ends have to send, close everything, and end all threads, within so many seconds."""

    def bytes(self) -> dict[Id, tuple[int, int]]:
        """How many bytes of frames were sent to and received from whom."""

    def states(self) -> dict[Id, str]:
        """Of everybody with a link, or who asked for one: "connected", or in one line why not."""

    def refused(self) -> dict[Id, dict[str, int]]:
        """Whose frames were refused, how often, for which reason."""


def dials(own: Member, other: Member) -> bool:
    """Who calls: of two with addresses the one with the larger number, else the one who knows an address."""
    return bool(other.address) and (not own.address or own.number > other.number)
