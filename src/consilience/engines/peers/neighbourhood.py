"""Those a peer has to do with, as a roster says: a link with each, what they are told, and how they stand."""

from __future__ import annotations

from collections.abc import Callable, Collection

from consilience.engines.peers.bundle import Bundle
from consilience.engines.peers.desk import Agreed
from consilience.engines.peers.identity import Identity
from consilience.engines.peers.keys import Id
from consilience.engines.peers.link import Link
from consilience.engines.peers.messages import Said
from consilience.engines.peers.place import Place, place_of
from consilience.engines.peers.reception import Known, Reception
from consilience.engines.peers.spoken import Speech
from consilience.engines.peers.status import Neighbour, Seen, neighbour
from consilience.engines.peers.transport import CONNECTED, Transport

FAREWELL = 1.0  # seconds at most for somebody who was removed to be told so


class Neighbourhood:
    """A peer's place in the network and its links. `agree(bundle, place)` is what both ends of a link agree on."""

    place: Place

    def __init__(
        self,
        identity: Identity,
        reception: Reception,
        transport: Transport,
        agree: Callable[[Bundle, Place], Agreed],
    ) -> None:
        self._identity, self._reception, self._transport, self._agree = identity, reception, transport, agree
        self._speech = Speech()
        self._links: dict[int, Link] = {}

    def take(self, bundle: Bundle, shunned: Collection[Id]) -> None:
        """Go on under this roster, without those whom this peer has nothing to do with; links that stay stay open."""
        place = self.place = place_of(self._identity, bundle.roster, shunned)
        self._reception.take(bundle, self._agree(bundle, place), place.linked)
        self._links = {
            number: self._links[number]
            if number in self._links and self._links[number].other == place.members[number]
            else Link(place.members[number], self._identity.id, self._reception)
            for number in sorted(place.linked)
        }
        self._transport.admit(
            {member.id: member for member in place.members.values()},
            {place.members[number].id: link for number, link in self._links.items()},
        )

    def name(self, number: int) -> str:
        """That of a neighbour."""
        return self._links[number].other.name

    def say(self, neighbour: int, said: Said, incarnation: int) -> None:
        """Hand a message to a link."""
        if neighbour in self._links:
            agreed = self._reception.agreed_on
            self._links[neighbour].say(self._speech.spoken(said, incarnation, agreed, self._identity.id))

    def offer(self) -> None:
        """Show everybody the roster."""
        for link in self._links.values():
            link.offer()

    def dismiss(self, bundle: Bundle, removed: Collection[int]) -> None:
        """Show those who were removed the roster that says so, as long as there is a connection with them."""
        self._reception.bundle = bundle
        gone = [link for number, link in self._links.items() if number in removed]
        for link in gone:
            link.offer()
        for link in gone:
            if self._transport.states().get(link.other.id) == CONNECTED:
                link.flushed(FAREWELL)

    def leave(self, why: str) -> None:
        """Say goodbye to everybody."""
        for link in self._links.values():
            link.leave(why)

    def behind(self, round: int) -> list[int]:
        """Listeners that were here once and have not got the message of this round."""
        known = self._reception.neighbours
        here = [number for number in self.place.listeners if number in known and known[number].epoch > 0]
        return [number for number in here if known[number].sent < round]

    def standing(self, played: int, now: float) -> tuple[Neighbour, ...]:
        """How everybody stands after so many rounds; may be asked by any thread."""
        traffic, refused, states = self._transport.bytes(), self._transport.refused(), self._transport.states()
        linked = []
        for number, link in self._links.items():
            known, id = self._reception.neighbours.get(number, Known()), link.other.id
            used = known.used >= played > 0 if number in self.place.row else None
            seen = Seen(states.get(id, ""), traffic.get(id, (0, 0)), refused.get(id, {}))
            linked.append(neighbour(link.other.name, known, seen, used, now))
        return tuple(linked)
