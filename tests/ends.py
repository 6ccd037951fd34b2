"""Ends of links for tests of transports: they remember what happened, and send what they are given."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from consilience.engines.peers.wire import Kind, Refused, frame, parsed
from consilience.engines.peers.wire.frames import Turned

PATIENCE = 10.0  # seconds within which whatever is waited for must have happened


def until(condition: Callable[[], object], what: str = "") -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"not within {PATIENCE:g} s: {what or condition}"
        time.sleep(0.01)


class Recorded:
    """An end that checks the order in which it is called, and keeps what it received."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.received: list[bytes] = []
        self.outbox: deque[bytes] = deque()
        self.is_open, self.taken, self.refuse = False, 0, False
        self._changed = threading.Condition()
        self.hold = threading.Event()  # cleared: receiving takes as long as it likes
        self.hold.set()

    def send(self, *frames: bytes) -> None:
        with self._changed:
            self.outbox.extend(frames)
            self._changed.notify_all()

    def opened(self) -> None:
        assert not self.is_open, "opened twice"
        self.is_open = True
        self.log.append("opened")

    def closed(self, why: str) -> None:
        assert self.is_open, "closed and never opened"
        assert why.isprintable(), why
        self.is_open = False
        self.log.append(f"closed: {why}")

    def receive(self, content: bytes) -> None:
        assert self.is_open, "received while closed"
        self.hold.wait(PATIENCE)
        kind, header, _ = parsed(content)
        if kind == Kind.REFUSAL and "why" in header:
            raise Turned(f"it refused what we sent: {header['why']}")
        if self.refuse:
            self.send(frame(Kind.REFUSAL, {"why": "not what was agreed"}))
            raise Refused("schema", "not what was agreed")
        self.received.append(content)

    def take(self, wait: float) -> bytes | None:
        assert self.is_open, "taken while closed"
        with self._changed:
            if not self.outbox:
                self._changed.wait(wait)
            if not self.outbox:
                return None
            self.taken += 1
            return self.outbox.popleft()


def numbered(number: int, size: int = 0) -> bytes:
    """A frame that says which it is."""
    return frame(Kind.BELIEF, {"number": number}, bytes(size))


def number_of(content: bytes) -> int:
    return int(parsed(content)[1]["number"])
