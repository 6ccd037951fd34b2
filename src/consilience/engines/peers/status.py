"""How a peer stands, as values: of itself, and of every neighbour; and the same as Prometheus reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from consilience.engines.peers.reception import Known
from consilience.engines.peers.transport import CONNECTED


class Neighbour(NamedTuple):
    """How a neighbour stands. Being reachable, admitted and contributing are three things.

    reachable: there is a connection. admitted: it has greeted, and study and roster are agreed on. contributing: what
    it said was used in the last round that was played; None of somebody who listens and is not heard. why: what stands
    in the way. last_heard: seconds ago. confirmed: the last own message that it has. clock: seconds it is ahead.
    """

    name: str
    reachable: bool
    admitted: bool
    contributing: bool | None
    why: str
    last_heard: float | None
    round: int
    confirmed: int
    epoch: int
    version: str
    clock: float
    bytes_sent: int
    bytes_received: int
    refused: Mapping[str, int]

    @property
    def state(self) -> str:
        """In a word.

        >>> away._replace(reachable=True, admitted=True).state, away._replace(contributing=None).state
        ('admitted', 'away')
        """
        if not self.reachable:
            return "away"
        if not self.admitted:
            return "reachable"
        return "contributing" if self.contributing else "admitted"


away = Neighbour("", False, False, False, "", None, 0, 0, 0, "", 0.0, 0, 0, {})


class Seen(NamedTuple):
    """What a transport has seen of a neighbour: how the connection is, bytes sent and received, what was refused."""

    state: str
    bytes: tuple[int, int]
    refused: Mapping[str, int]


def neighbour(name: str, known: Known, seen: Seen, contributing: bool | None, now: float) -> Neighbour:
    """How a neighbour stands, from what the transport has seen of it and what it has said."""
    connected = seen.state == CONNECTED
    sent, received = seen.bytes
    return Neighbour(
        name=name,
        reachable=connected,
        admitted=connected and known.admitted,
        contributing=contributing,
        why="" if connected else known.left or seen.state,
        last_heard=None if known.heard_at is None else now - known.heard_at,
        round=known.round,
        confirmed=known.sent,
        epoch=known.epoch,
        version=known.version,
        clock=known.ahead,
        bytes_sent=sent,
        bytes_received=received,
        refused=seen.refused,
    )


class Status(NamedTuple):
    """How a peer stands."""

    name: str
    study: str
    epoch: int
    version: str
    round: int
    rounds: int
    scores: Mapping[str, float]
    neighbours: tuple[Neighbour, ...]
    blocked: tuple[str, ...] = ()  # members of the roster with whom this peer has nothing to do
    strangers: int = 0  # calls of people who showed no certificate of the roster, or of who is blocked
    pid: int = 0  # the process

    @property
    def exchanging(self) -> bool:
        """Whether anything that others say is used; whoever hears nobody cannot say."""
        heard = [one for one in self.neighbours if one.contributing is not None]
        return not heard or any(one.contributing for one in heard)

    def values(self) -> dict[str, Any]:
        """For JSON."""
        told = [{**one._asdict(), "state": one.state} for one in self.neighbours]
        return {**self._asdict(), "neighbours": told, "exchanging": self.exchanging}

    def metrics(self) -> str:
        """The text that Prometheus collects."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield from _metric("round", "gauge", "the last round that was begun", [({}, self.round)])
        yield from _metric("rounds", "gauge", "how many rounds the study has", [({}, self.rounds)])
        yield from _metric("epoch", "gauge", "of the roster", [({}, self.epoch)])
        yield from _metric("strangers_total", "counter", "calls of people not in the roster", [({}, self.strangers)])
        yield from _metric(
            "score", "gauge", "on the own held-out rows", [({"score": k}, v) for k, v in self.scores.items()]
        )
        for field, kind, meaning in OF_NEIGHBOURS:
            found = [({"neighbour": one.name}, getattr(one, field.removesuffix("_total"))) for one in self.neighbours]
            yield from _metric(
                f"neighbour_{field}", kind, meaning, [(who, value) for who, value in found if value is not None]
            )
        refused = [
            ({"neighbour": one.name, "reason": why}, count)
            for one in self.neighbours
            for why, count in one.refused.items()
        ]
        yield from _metric("neighbour_refused_total", "counter", "messages that were not taken", refused)


OF_NEIGHBOURS = (
    ("reachable", "gauge", "whether there is a connection"),
    ("admitted", "gauge", "whether it has greeted, and study and roster are agreed on"),
    ("contributing", "gauge", "whether what it said was used in the last round"),
    ("last_heard", "gauge", "seconds since a message came"),
    ("round", "gauge", "the newest that it has spoken of"),
    ("clock", "gauge", "seconds by which its clock is ahead"),
    ("bytes_sent_total", "counter", "to it"),
    ("bytes_received_total", "counter", "from it"),
)


def _metric(name: str, kind: str, meaning: str, rows: list[tuple[dict[str, str], Any]]) -> Iterator[str]:
    """A metric with its rows, labels escaped.

    >>> list(_metric("round", "gauge", "now", [({"who": 'a"b'}, True)]))[-1]
    'consilience_round{who="a\\\\"b"} 1'
    """
    if not rows:
        return
    yield f"# HELP consilience_{name} {meaning}"
    yield f"# TYPE consilience_{name} {kind}"
    for labels, value in rows:
        inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        yield f"consilience_{name}{f'{{{inside}}}' if inside else ''} {float(value):.10g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
