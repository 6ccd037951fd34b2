"""A roster: who takes part in a study, who did, and who hears whom; in epochs, signed by the study's steward.

A member's number is its place in the study for ever: randomness and weights go by it, and nobody else ever has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Any, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from consilience.engines.peers.card import check_person
from consilience.engines.peers.keys import Id
from consilience.engines.peers.links import Link, Number, check_links, weighted
from consilience.engines.peers.names import told_apart
from consilience.engines.peers.signed import canonical
from consilience.errors import InputError, brief, printable, suggestion
from consilience.network import Network

ROSTER = "roster"  # a kind of signed texts
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Member(NamedTuple):
    """Somebody who takes part."""

    number: Number
    name: str
    id: Hash
    certificate: str
    address: str


class Removed(NamedTuple):
    """A tombstone: a key that takes part no more, from an epoch on and for ever.

    Where a member has its number, that is the same member with another key.
    """

    number: Number
    name: str
    id: Hash
    epoch: Number


class Roster(NamedTuple):
    """Everybody in a study, in one epoch."""

    study: Hash
    epoch: Number
    members: tuple[Member, ...] = ()
    removed: tuple[Removed, ...] = ()
    links: tuple[Link, ...] = ()

    @classmethod
    def of(cls, values: Mapping[str, Any], what: str) -> Roster:
        """The roster with these values, checked; `what` names it where it is refused."""
        try:
            roster = ADAPTER.validate_json(canonical(values), strict=True)
        except ValidationError as invalid:
            place = printable(".".join(map(str, invalid.errors(include_url=False)[0]["loc"])))
            raise InputError(f"{what}: is not as a roster is written ({place})") from None
        if canonical(roster.values()) != canonical(values):
            raise InputError(f"{what}: is not as a roster is written")
        roster.check(what)
        return roster

    def values(self) -> dict[str, Any]:
        """What is signed."""
        return {
            "study": self.study,
            "epoch": self.epoch,
            "members": [member._asdict() for member in self.members],
            "removed": [each._asdict() for each in self.removed],
            "links": [list(link[: 2 if link.trust is None else 3]) for link in self.links],
        }

    @property
    def numbers(self) -> tuple[int, ...]:
        """Who is present, in the order of the rows of W."""
        return tuple(sorted(member.number for member in self.members))

    def member(self, id: Id) -> Member | None:
        """Who has this key, if anybody does now."""
        return next((member for member in self.members if member.id == id), None)

    def tombstone(self, id: Id) -> Removed | None:
        """That this key takes part no more, if so."""
        return next((each for each in self.removed if each.id == id), None)

    def owned_by(self, ids: Collection[Id]) -> set[int]:
        """The numbers of members who have one of these keys now, or had it before."""
        known = [(one.number, one.id) for one in self.members] + [(gone.number, gone.id) for gone in self.removed]
        return {number for number, id in known if id in ids} & set(self.numbers)

    def named(self, name: str) -> Member:
        """The member that is called so."""
        found = next((member for member in self.members if member.name == name), None)
        if found is None:
            raise InputError(f"member: nobody is called {brief(name)}; {_known(self.members, name)}")
        return found

    def number(self, name: str) -> int:
        """The number of a member."""
        return self.named(name).number

    def weights(self) -> Network:
        """W of those who are present, in the order of their numbers (`weighted`)."""
        names = tuple(member.name for member in sorted(self.members))
        return Network(weighted(self.links, self.numbers), f"roster {self.epoch}", names)

    def row(self, number: int) -> dict[int, float]:
        """Whom a member hears with what weight, itself included."""
        numbers, W = self.numbers, self.weights().W
        if number not in numbers:
            raise InputError(f"member: number {number} is not in the roster of epoch {self.epoch}")
        start, stop = W.indptr[numbers.index(number) : numbers.index(number) + 2]
        return {numbers[j]: float(w) for j, w in zip(W.indices[start:stop], W.data[start:stop], strict=True)}

    def check(self, what: str) -> None:
        """Refuse two members that cannot be told apart, keys that were removed, and links that cannot be."""
        for number, name, id, certificate, address in self.members:
            check_person(name, id, certificate, address, f"{what}: member {number}")
        if twice := _twice(told_apart(member.name) for member in self.members):
            raise InputError(f"{what}: two members are called {brief(twice)}")
        if twice := _twice(member.id for member in self.members):
            raise InputError(f"{what}: two members have one key, {twice[:12]}…")
        if _twice(member.number for member in self.members) is not None:
            raise InputError(f"{what}: two members have one number")
        if _twice(gone.id for gone in self.removed):
            raise InputError(f"{what}: a key was removed twice")
        for gone in self.removed:
            if self.member(gone.id) is not None:
                raise InputError(f"{what}: {brief(gone.name)} was removed in epoch {gone.epoch} and cannot come back")
        check_links(self.links, {member.number: member.name for member in self.members}, what)


ADAPTER = TypeAdapter(Roster)


def _twice(each: Iterable[Any]) -> Any:
    """Something that is there twice, if anything is."""
    return next((value for value, count in Counter(each).items() if count > 1), None)


def _known(members: tuple[Member, ...], name: str) -> str:
    return suggestion(name, (member.name for member in members)) if members else "there are no members yet"
