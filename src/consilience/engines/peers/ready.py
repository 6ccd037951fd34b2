"""Whether the members of a roster could learn together: everybody linked, every link dialled, all heard in the end."""

from __future__ import annotations

from consilience.engines.peers.roster import Roster
from consilience.errors import InputError, brief
from consilience.network import components, period

SHOWN = 6  # names of a group


def check_ready(roster: Roster) -> None:
    """Refuse a roster that nobody could learn with, and say what to do."""
    if not roster.members:
        raise InputError("members: there are none yet; `consilience study add NAME.card` admits them")
    _check_reached(roster)
    network = roster.weights()
    for member in roster.members:
        if len(roster.members) > 1 and not any(member.number in link[:2] for link in roster.links):
            raise InputError(f"links: {brief(member.name)} has none; `consilience study links ring` lays some")
    if len(parts := components(network)) > 1:
        groups = " | ".join(_named([network.names[row] for row in part]) for part in parts[:4])
        raise InputError(f"links: what some know never reaches the others: {groups}")
    if period(network) > 1:
        raise InputError("links: beliefs would go round for ever; somebody must keep some trust for itself")


def _check_reached(roster: Roster) -> None:
    """Of two who are linked one must be reached, and nobody where somebody else is."""
    members, at = {member.number: member for member in roster.members}, dict[str, str]()
    for member in roster.members:
        if member.address and (there := at.setdefault(member.address, member.name)) != member.name:
            raise InputError(f"members: {brief(there)} and {brief(member.name)} have one address, {member.address}")
    for link in roster.links:
        one, other = members[link.hearer], members[link.heard]
        if not (one.address or other.address):
            raise InputError(
                f"links: {brief(one.name)} and {brief(other.name)} are linked and neither has an address; one of them "
                "must be reached: consilience peer init NAME --same-key --listen HOST:PORT"
            )


def _named(names: list[str]) -> str:
    return ", ".join(map(brief, names[:SHOWN])) + ", …" * (len(names) > SHOWN)
