"""Messages in chunks, and whole again: one at a time a link, in order, with no more memory than was agreed to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from consilience.engines.peers.wire.checksum import Checksum
from consilience.engines.peers.wire.frames import LONGEST_PAYLOAD, Buffer, Kind, Pieces, Refused, canonical, frame
from consilience.engines.peers.wire.messages import About


def _further(about: About, at: int) -> dict[str, Any]:
    """What a chunk that is not the first says: of which message it is, and from which byte on."""
    return {"checksum": about.checksum, "at": at}


def chunks(about: About, *body: Buffer) -> Iterator[bytes]:
    """The frames of a message: the first says what it is about, the others where they go on."""
    for number, payload in enumerate(_cut(body, LONGEST_PAYLOAD)):
        header = _further(about, number * LONGEST_PAYLOAD) if number else about.header()
        yield frame(Kind.BELIEF, header, *payload)


def _cut(body: Pieces, length: int) -> Iterator[Pieces]:
    """The same bytes in payloads of one length, but for the last; each from as many pieces as it spans.

    >>> [[bytes(piece) for piece in payload] for payload in _cut([b"abc", b"", b"de"], 2)]
    [[b'ab'], [b'c', b'd'], [b'e']]
    """
    payload: list[memoryview] = []
    room = length
    for piece in body:
        left = memoryview(piece)
        while len(left):
            payload.append(left[:room])
            left, room = left[room:], room - len(payload[-1])
            if not room:
                yield payload
                payload, room = [], length
    if payload:
        yield payload


class Assembler:
    """The messages of a link, from their frames.

    `allowed(about)` is asked when a message begins, before any memory is taken: it refuses it, or gives the one length
    that it must have. A new message takes the place of one that was never finished; what is refused is forgotten.
    """

    def __init__(self, allowed: Callable[[About], int]) -> None:
        self._allowed = allowed
        self.forget()

    def forget(self) -> None:
        """Drop what is not finished, as when a connection ends."""
        self._begun: tuple[About, Checksum] | None = None
        self._body = memoryview(b"")
        self._filled = 0

    def add(self, header: dict[str, Any], payload: Buffer) -> tuple[About, memoryview] | None:
        """The message that this chunk completes, if it does."""
        try:
            return self._add(header, payload)
        except Refused:
            self.forget()
            raise

    def _add(self, header: dict[str, Any], payload: Buffer) -> tuple[About, memoryview] | None:
        if header.keys() != {"checksum", "at"}:
            self.forget()
            about = About.read(header)
            if (length := self._allowed(about)) != about.length:
                raise Refused("length", f"must have {length} bytes, {about.length} were announced")
            self._begun = about, about.begun()
            self._body = np.empty(length, np.uint8).data
        elif self._begun is None or canonical(header) != canonical(_further(self._begun[0], self._filled)):
            raise Refused("frame", "a chunk does not go on where the last one ended")
        about, checksum = self._begun
        end = self._filled + len(payload)
        if len(payload) != min(LONGEST_PAYLOAD, about.length - self._filled):
            raise Refused("length", f"a chunk from byte {self._filled} to {end} of a message of {about.length}")
        self._body[self._filled : end] = payload
        checksum.update(payload)
        self._filled = end
        if end < about.length:
            return None
        body, found = self._body, checksum.hexdigest()
        self.forget()
        if found != about.checksum:
            raise Refused("hash", f"the message of round {about.round} has not the checksum that was announced")
        return about, body
