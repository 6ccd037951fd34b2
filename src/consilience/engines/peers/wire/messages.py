"""What a message says of itself before its body, and whether this end of a link takes such a one now.

Everything is checked on the announcement alone, before a byte of the body is kept.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from consilience.engines.peers.wire.checksum import DIGITS, Checksum
from consilience.engines.peers.wire.frames import Buffer, Refused, canonical
from consilience.engines.peers.wire.half import FORMS, on_wire
from consilience.engines.peers.wire.schema import Schema
from consilience.errors import brief

Id: TypeAlias = str
MOST_ENTRIES = 256  # what a header has room for
LARGEST = 2**53 - 1  # the largest whole number that every reader of JSON takes for itself
LONGEST_SIGNATURE = 128  # characters


class Entry(NamedTuple):
    """One owner's part of a message that holds those of several: whose, which version, and the owner's signature."""

    owner: Id
    version: int
    signature: str


class About(NamedTuple):
    """A message's header: of which study, under which roster, by whom, since which start of it, of which round;
    what arrays, how many bytes, in which form; whose parts, if of several; the checksum of all of that and the body.
    """

    study: str
    epoch: int
    sender: Id
    incarnation: int
    round: int
    schema: str
    length: int
    checksum: str
    form: str = "exact"
    entries: tuple[Entry, ...] = ()

    def header(self) -> dict[str, Any]:
        """As it is written in a frame."""
        return {**self._asdict(), "entries": [list(entry) for entry in self.entries]}

    def begun(self) -> Checksum:
        """The checksum of everything that is said here but itself: the body is to be added."""
        return Checksum(canonical({name: said for name, said in self.header().items() if name != "checksum"}))

    @classmethod
    def read(cls, header: dict[str, Any]) -> About:
        """From a frame's header: these fields, no other, each of its kind."""
        if set(header) != set(cls._fields):
            raise Refused("frame", f"a message must say {', '.join(cls._fields)}, got {brief(sorted(header))}")
        hashes = all(_is_hash(header[name]) for name in ("study", "sender", "schema"))
        hashes = hashes and _is_hash(header["checksum"], DIGITS)
        numbers = all(_is_count(header[name]) for name in ("epoch", "incarnation", "round", "length"))
        if not (hashes and numbers and header["form"] in FORMS):
            raise Refused("frame", f"a message's header is not of the kind it must be: {brief(header)}")
        return cls(**{**header, "entries": _entries(header["entries"])})


class Expected(NamedTuple):
    """What is taken from a neighbour now: whose, of which study, under this roster or the one before or (where it has
    been offered) after it, newer than this.

    The schema is that of a whole message, or of one owner's part where a message has those of several (`several`).
    """

    study: str
    epoch: int
    sender: Id
    schema: Schema
    form: str = "exact"
    newest: tuple[int, int] = (-1, -1)  # incarnation and round of what is held
    most_bytes: int = 1 << 30
    several: bool = False
    upcoming: int = 0  # the epoch of the roster that comes next, where one has been offered

    def check(self, about: About) -> Schema:
        """The schema of exactly the body that may follow; a message that is not taken is refused."""
        if about.study != self.study:
            raise Refused("study", f"of study {about.study[:12]}, this one is {self.study[:12]}")
        if about.sender != self.sender:
            raise Refused("sender", f"by {about.sender[:12]}, this link is with {self.sender[:12]}")
        if not self.epoch - 1 <= about.epoch <= max(self.epoch, self.upcoming):
            raise Refused("epoch", f"under roster {about.epoch}, here it is {self.epoch}")
        if (about.incarnation, about.round) <= self.newest:
            raise Refused("older", f"of round {about.round}, that of round {self.newest[1]} is held")
        if about.form != self.form:
            raise Refused("schema", f"sent as '{about.form}', the study says '{self.form}'")
        if bool(about.entries) != self.several:
            raise Refused("schema", f"must hold the parts of {'several' if self.several else 'nobody but its sender'}")
        schema = self.schema.of_each([entry.owner for entry in about.entries]) if self.several else self.schema
        sent = on_wire(schema, self.form)
        if about.length != sent.bytes:
            raise Refused("length", f"must have {sent.bytes} bytes, {about.length} were announced")
        if about.length > self.most_bytes:
            raise Refused("length", f"must have at most {self.most_bytes} bytes, {about.length} were announced")
        if about.schema != sent.hash:
            raise Refused("schema", f"holds arrays {about.schema[:12]}, expected are {sent.hash[:12]}")
        return schema


def about(expected: Expected, incarnation: int, round: int, *body: Buffer, entries: tuple[Entry, ...] = ()) -> About:
    """What a body says of itself, sent to somebody who expects this."""
    schema = expected.schema.of_each([entry.owner for entry in entries]) if expected.several else expected.schema
    arrays = on_wire(schema, expected.form).hash
    names = (expected.study, expected.epoch, expected.sender, incarnation, round, arrays)
    return sealed(About(*names, sum(map(len, body)), "", expected.form, entries), *body)


def sealed(said: About, *body: Buffer) -> About:
    """The same with the checksum of all of it and the body."""
    whole = said.begun()
    for piece in body:
        whole.update(piece)
    return said._replace(checksum=whole.hexdigest())


def _entries(given: Any) -> tuple[Entry, ...]:
    sound = isinstance(given, list) and len(given) <= MOST_ENTRIES and all(_is_entry(entry) for entry in given)
    if not sound or len({entry[0] for entry in given}) < len(given):
        raise Refused("frame", f"a message's parts must have an owner each, with version and signature: {brief(given)}")
    return tuple(Entry(*entry) for entry in given)


def _is_entry(given: Any) -> bool:
    if not (isinstance(given, list) and len(given) == 3 and _is_hash(given[0]) and _is_count(given[1])):
        return False
    return isinstance(given[2], str) and len(given[2]) <= LONGEST_SIGNATURE


def _is_hash(value: Any, digits: int = 64) -> bool:
    return isinstance(value, str) and len(value) == digits and not value.strip("0123456789abcdef")


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= LARGEST
