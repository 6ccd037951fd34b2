"""What a roster means for one peer: whom it hears and who listens, and what must be agreed on before anything flows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from consilience.engines.peers.bundle import Bundle
from consilience.engines.peers.desk import Agreed
from consilience.engines.peers.identity import Identity
from consilience.engines.peers.keys import Id
from consilience.engines.peers.mailboxes import Counted, Mailbox, Pooled, Tabled
from consilience.engines.peers.roster import Member, Roster
from consilience.engines.peers.study import sections
from consilience.engines.peers.wire import Bounds, Schema
from consilience.engines.peers.wire.messages import MOST_ENTRIES
from consilience.errors import InputError

FOR_EVER = float("inf")
LONGEST_OWNER = "0" * 64  # as an ID is


class Place(NamedTuple):
    """A peer's place in a network: its number, the members it has to do with, its row of weights, its listeners."""

    me: int
    members: Mapping[int, Member]
    row: Mapping[int, float]
    listeners: tuple[int, ...]

    @property
    def linked(self) -> set[int]:
        """With whom it has a link, in either direction."""
        return {*self.row, *self.listeners} - {self.me}


def number_of(identity: Identity, roster: Roster) -> int:
    """The number that a peer has; refused where it is not a member."""
    member = roster.member(identity.id)
    if member is None:
        gone = roster.tombstone(identity.id)
        when = f"was removed in epoch {gone.epoch}" if gone else "is not in it"
        raise InputError(f"roster: {identity.name} {when}; ask the study's steward")
    return member.number


def place_of(identity: Identity, roster: Roster, shunned: Collection[Id]) -> Place:
    """A peer's place; the weight of those whom it has nothing to do with returns to itself."""
    me = number_of(identity, roster)
    gone = roster.owned_by(shunned) - {me}
    members = {one.number: one for one in roster.members if one.number not in gone}
    weights = roster.row(me)
    row = {number: weight for number, weight in weights.items() if number in members}
    row[me] += sum(weight for number, weight in weights.items() if number not in members)
    listeners = tuple(link.hearer for link in roster.links if link.heard == me and link.hearer in members)
    return Place(me, members, row, listeners)


def agreed_on(bundle: Bundle, place: Place, consensus: str, schema: Schema) -> Agreed:
    """What both ends of its links must agree on; `schema`: of what one member says."""
    study, limits, tracked = bundle.study, bundle.study.limits, consensus == "tracking"
    least = {"pooling": limits.least_precision, "sites": 0.0}.get(consensus, -FOR_EVER)
    most = FOR_EVER if tracked else limits.most_precision
    return Agreed(
        study.hash,
        bundle.roster.epoch,
        schema,
        "half" if study.wire == "float16" and consensus == "pooling" else "exact",
        consensus == "sites",
        Bounds(least, most),
        limits.most_bytes,
        study.policy.rounds,
        {member.id: number for number, member in place.members.items()},
        sections(study),
        bundle.roster.epoch,
        len(bundle.roster.members),  # a neighbour also passes on what those say who are blocked here
    )


def mailbox_of(bundle: Bundle, place: Place, consensus: str, agreed: Agreed) -> Mailbox:
    """How its inbox gets filled."""
    policy = bundle.study.policy
    if consensus == "sites":
        room = agreed.most_bytes // agreed.schema.of_each([LONGEST_OWNER]).bytes
        return Tabled(place.me, most=max(1, min(room, MOST_ENTRIES)))
    if consensus == "tracking":
        return Counted(place.me, len(place.listeners), bundle.roster.epoch)
    return Pooled(place.me, None if policy.kind == "sync" else policy.staleness)
