"""Frames: the pieces in which everything travels. One byte of kind, the header's length, the header, the payload.

The header is JSON in its one canonical form, so that a frame that was read is byte for byte the frame that would be
written again. Every length is checked before anything is made of what it announces.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, TypeAlias

from consilience.errors import brief

Buffer: TypeAlias = bytes | bytearray | memoryview
Pieces: TypeAlias = Sequence[Buffer]  # bytes as they lie, one after the other: they are copied once, into frames

LONGEST_HEADER = 64 << 10
LONGEST_PAYLOAD = 1 << 20
PREFIX = 5  # one byte of kind, four of the header's length
LONGEST_FRAME = PREFIX + LONGEST_HEADER + LONGEST_PAYLOAD

REASONS = frozenset(
    (
        "frame",  # no frame, or one that does not continue what came before
        "version",  # a peer of another version
        "study",  # of another study
        "sender",  # not by whom the link is with
        "link",  # there is no link
        "epoch",  # under a roster that is neither the one held nor the one before
        "older",  # no newer than what is held
        "length",  # not of the length that was expected or announced
        "hash",  # not what was announced
        "schema",  # names, types or shapes that are not exactly the expected ones
        "finite",  # a value that is infinite or no number
        "precision",  # a precision out of bounds
    )
)


class Kind(IntEnum):
    """What a frame is."""

    HELLO = 1
    BELIEF = 2
    RECEIPT = 3
    ROSTER = 4
    GOODBYE = 5
    REFUSAL = 6


class Refused(Exception):
    """Bytes that are not taken: one line that says why, and a short word for it by which refusals are counted.

    >>> raise Refused("length", "a belief must have 80 bytes, 81 were announced")
    Traceback (most recent call last):
    consilience.engines.peers.wire.frames.Refused: a belief must have 80 bytes, 81 were announced
    """

    def __init__(self, reason: str, line: str) -> None:
        assert reason in REASONS, reason
        super().__init__(line)
        self.reason = reason


class Turned(Exception):
    """The other end has refused what was sent to it, and says why."""


def frame(kind: Kind, header: Mapping[str, Any], *payload: Buffer) -> bytes:
    """A frame of this header and payload, in as many pieces as it is.

    >>> frame(Kind.RECEIPT, {"round": 7})
    b'\\x03\\x00\\x00\\x00\\x0b{"round":7}'
    """
    text, length = canonical(header), sum(map(len, payload))
    if len(text) > LONGEST_HEADER or length > LONGEST_PAYLOAD:
        raise ValueError(f"a frame of {len(text)} + {length} bytes is longer than may be sent")
    return b"".join((bytes((kind,)), len(text).to_bytes(4, "big"), text, *payload))


def parsed(content: Buffer) -> tuple[Kind, dict[str, Any], memoryview]:
    """A frame's kind, header and payload, which is not copied; whatever is no frame is refused.

    >>> kind, header, payload = parsed(frame(Kind.RECEIPT, {"round": 7}, b"abc"))
    >>> kind.name, header, bytes(payload)
    ('RECEIPT', {'round': 7}, b'abc')
    """
    whole = memoryview(content)
    if not PREFIX <= len(whole) <= LONGEST_FRAME:
        raise Refused("frame", f"a frame has {PREFIX} to {LONGEST_FRAME} bytes, got {len(whole)}")
    end = PREFIX + int.from_bytes(whole[1:PREFIX], "big")
    if end - PREFIX > LONGEST_HEADER or end > len(whole):
        raise Refused("frame", f"a header of {end - PREFIX} bytes was announced in a frame of {len(whole)}")
    if len(whole) - end > LONGEST_PAYLOAD:
        raise Refused("frame", f"a payload has at most {LONGEST_PAYLOAD} bytes, got {len(whole) - end}")
    try:
        kind = Kind(whole[0])
    except ValueError:
        raise Refused("frame", f"there is no frame of kind {whole[0]}") from None
    return kind, _header(bytes(whole[PREFIX:end])), whole[end:]


def canonical(header: Mapping[str, Any]) -> bytes:
    """The one way in which a header is written: sorted, nothing between, plain ASCII, finite numbers only."""
    return json.dumps(header, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def _header(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text.decode("ascii"))
        same = isinstance(header, dict) and canonical(header) == text
    except (ValueError, RecursionError):
        same = False
    if not same:
        raise Refused("frame", f"a header must be canonical JSON of named values, got {brief(text)}")
    return header  # type: ignore[no-any-return]
