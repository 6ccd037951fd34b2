"""Who takes part, as one peer sees it: the roster it goes on under, and those whom it has nothing to do with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from consilience.engines.peers.bundle import Bundle
from consilience.engines.peers.identity import Identity
from consilience.engines.peers.keys import Id
from consilience.engines.peers.neighbourhood import Neighbourhood
from consilience.engines.peers.place import number_of
from consilience.engines.peers.reception import Reception, Told
from consilience.errors import InputError


class Asked(NamedTuple):
    """The home, where others change who takes part while a peer runs; it is asked between two rounds.

    keep: a bundle that is gone on under. laid: one that somebody has put there since this was last asked. blocked:
    those whom this peer has nothing to do with, whatever the roster says.
    """

    keep: Callable[[Bundle], None] = lambda bundle: None
    laid: Callable[[], Bundle | None] = lambda: None
    blocked: Callable[[], Collection[Id]] = tuple


NOBODY_ASKED = Asked()


class Change(NamedTuple):
    """What has changed for the life. gone: whose word is not used any more. renewed: there is another roster."""

    gone: set[int]
    renewed: bool


class Membership:
    """The roster of a peer, which changes only when `changes` is asked for."""

    def __init__(
        self,
        identity: Identity,
        bundle: Bundle,
        reception: Reception,
        neighbourhood: Neighbourhood,
        told: Told,
        home: Asked,
    ) -> None:
        self.bundle, self._identity, self._told, self._home = bundle, identity, told, home
        self._reception, self._neighbourhood = reception, neighbourhood
        self._shunned = frozenset(home.blocked())

    @property
    def me(self) -> int:
        """This peer's number."""
        return number_of(self._identity, self.bundle.roster)

    @property
    def removed(self) -> bool:
        """Whether this peer is no member of the study any more."""
        return self.bundle.roster.member(self._identity.id) is None

    @property
    def ending(self) -> bool:
        """Whether a roster was offered in which it is none any more; nobody speaks to it then."""
        return self._reception.will_remove(self._identity.id)

    @property
    def names(self) -> dict[int, str]:
        """Of all members."""
        return {member.number: member.name for member in self.bundle.roster.members}

    def blocked(self) -> dict[int, str]:
        """Members whom this peer has nothing to do with."""
        gone = self.bundle.roster.owned_by(self._shunned)
        return {number: name for number, name in self.names.items() if number in gone}

    def take(self) -> None:
        """Go on under the roster as it is."""
        self._neighbourhood.take(self.bundle, self._shunned)

    def changes(self) -> Iterator[Change]:
        """Take what has changed since the last round, one thing after the other."""
        self._look()
        if (offered := self._reception.newer_bundle()) is not None:
            yield self._renew(offered)
        if not self.removed and self._shun():
            yield Change(set(self.blocked()), False)

    def _look(self) -> None:
        """A newer roster in the home is as good as one that a neighbour offers: so it gets into a running network."""
        try:
            found = self._home.laid()
            if found is not None and found.roster.epoch > self.bundle.roster.epoch:
                self._reception.laid(found)
        except InputError as error:
            self._told("trouble", why=str(error))

    def _renew(self, bundle: Bundle) -> Change:
        before, self.bundle = self.bundle.roster, bundle
        self._home.keep(bundle)
        if self.removed:
            gone = bundle.roster.tombstone(self._identity.id)
            self._told("removed", epoch=gone.epoch if gone else bundle.roster.epoch)
            return Change(set(), True)
        removed = set(before.numbers) - set(bundle.roster.numbers)
        self._neighbourhood.dismiss(bundle, removed)
        self.take()
        self._neighbourhood.offer()
        self._told("roster", epoch=bundle.roster.epoch, members=list(self.names.values()))
        return Change(removed, True)

    def _shun(self) -> bool:
        """Have nothing more to do with those who were blocked since, and something again with those who are not."""
        try:
            blocked = frozenset(self._home.blocked())
        except InputError as error:  # who was blocked stays so
            self._told("trouble", why=str(error))
            return False
        if blocked == self._shunned:
            return False
        self._shunned = blocked
        self.take()
        self._told("blocked", names=list(self.blocked().values()))
        return True
