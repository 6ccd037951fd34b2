"""The bytes between peers: frames, and messages made of them. No sockets, no clock, and nothing is believed unseen."""

from consilience.engines.peers.wire.assembling import Assembler, chunks
from consilience.engines.peers.wire.bodies import Bounds, decoded, encoded, laid_out
from consilience.engines.peers.wire.frames import LONGEST_FRAME, Kind, Refused, frame, parsed
from consilience.engines.peers.wire.half import halved, restored
from consilience.engines.peers.wire.messages import About, Entry, Expected, about, sealed
from consilience.engines.peers.wire.schema import Leaf, Schema, by_owner

__all__ = [
    "About",
    "Assembler",
    "Bounds",
    "Entry",
    "Expected",
    "Kind",
    "LONGEST_FRAME",
    "Leaf",
    "Refused",
    "Schema",
    "about",
    "by_owner",
    "chunks",
    "decoded",
    "encoded",
    "frame",
    "halved",
    "laid_out",
    "parsed",
    "restored",
    "sealed",
]
