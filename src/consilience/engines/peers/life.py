"""One agent's life among peers: learn, publish, hear, pool, round after round, whatever happens to the others.

It waits by yielding, and reads no clock of its own: a thread drives it in a real peer, a test drives thousands of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

from consilience.engines.peers.arrivals import Arrivals
from consilience.engines.peers.mailboxes import Filled, Mailbox
from consilience.engines.peers.messages import Arrays, Entry, Said
from consilience.engines.peers.waiting import Waiting

SOON = 1e-3  # seconds: what is left is rounding


@runtime_checkable
class Player(Protocol):
    """The four functions of an agent on its own data; states are the player's own, messages are arrays by name."""

    def learn(self, state: Any, number: int) -> tuple[Any, Arrays]:
        """Learn in this round; what is published."""
        ...

    def pool(self, state: Any, inbox: Arrays) -> Any:
        """Take what was heard."""
        ...


class Position(NamedTuple):
    """Where a peer stands: the last round it has played, and whether it has published in that round and not pooled."""

    round: int = 0
    published: bool = False


@runtime_checkable
class Around(Protocol):
    """What a life has around it: neighbours as they are now, a clock, a place to keep things and to tell them."""

    def row(self) -> Mapping[int, float]:
        """Whom this peer hears now, with what weight, itself included."""
        ...

    def listeners(self) -> Iterable[int]:
        """Who hears this peer now."""
        ...

    def now(self) -> float:
        """Seconds on a clock that never goes back."""
        ...

    def send(self, neighbour: int, said: Said) -> None:
        """Hand a message over; an older one that has not gone yet is forgotten."""
        ...

    def save(self, life: Any) -> None:
        """Keep where it stands, before anything of it is sent."""
        ...

    def played(self, life: Any, filled: Filled, missed: Collection[int]) -> None:
        """A round was played."""
        ...


class Life:
    """An agent among peers. What arrives is put into `arrivals`; `play` goes on when it is driven.

    What is published is kept before it is sent, so that a peer that is killed says the same again: what others have
    taken of its counters is never forgotten, and no two versions of a site have one name.
    """

    def __init__(
        self,
        me: int,
        rounds: int,
        player: Player,
        state: Any,
        mailbox: Mailbox,
        waiting: Waiting,
        around: Around,
        incarnation: int = 1,
        position: Position = Position(),  # noqa: B008
        waits: bool = True,
        sign: Callable[[Entry], Entry] = lambda entry: entry,
        ahead: int = 2,
    ) -> None:
        self.me, self.rounds, self.player, self.state = me, rounds, player, state
        self.mailbox, self.waiting, self.around = mailbox, waiting, around
        self.incarnation, self.position, self.waits, self.sign = incarnation, position, waits, sign
        self.arrivals, self._ahead = Arrivals(ahead), ahead
        self.public: Arrays | None = None  # what was published last
        self.leaving = False

    def receive(self, said: Said) -> bool:
        """A message has arrived; whether it is news."""
        if said.sender not in self.around.row():
            return False
        self.waiting.heard(said.sender)
        return self.arrivals.put(said)

    def play(self) -> Iterator[float]:
        """Live to the last round; yields how many seconds to wait at most, until something arrives."""
        while self.position.round < self.rounds or self.position.published:
            if not self.position.published:
                if self.leaving:
                    break
                self._learn(self._next())
            self._say()
            if (yield from self._hear()):
                self._pool()
            else:
                break
        self.around.save(self)

    def _next(self) -> int:
        """The round to play: the one after the last, or, where most neighbours have left this peer behind, theirs."""
        unheard = {one for one in self._linked() if self.waiting.missed.get(one) and not self.arrivals.has(one, 1)}
        after, reached = self.position.round + 1, self.arrivals.round_of_most({*self._linked()} - unheard)
        behind = self.waits and reached - self.position.round >= self._ahead  # further than who waits for all can be
        return min(reached if behind else after, self.rounds)

    def _linked(self) -> list[int]:
        return [neighbour for neighbour in self.around.row() if neighbour != self.me]

    def _learn(self, number: int) -> None:
        self.state, self.public = self.player.learn(self.state, number)
        self.mailbox.publish(self.sign(Entry(self.me, (number, self.incarnation), self.public)))
        self.position = Position(number, True)
        self.around.save(self)

    def _say(self) -> None:
        for listener in self.around.listeners():
            self.around.send(listener, Said(self.me, self.position.round, self.mailbox.say(listener)))

    def _hear(self) -> Generator[float, None, bool]:
        """Wait until all have been heard, or patience ends; false where it is to leave before that.

        Who leaves is in the middle of this round then, and goes on there: otherwise each time that somebody stops what
        waits for others a round would be played without them.
        """
        began = self.around.now()
        while self.waits:
            linked = self._linked()
            missing = [one for one in linked if not self.arrivals.has(one, self.position.round)]
            left = self.waiting.left(linked, missing, self.around.now() - began)
            if left < SOON:
                break
            if self.leaving:
                return False
            yield left
        return True

    def _pool(self) -> None:
        number, linked = self.position.round, self._linked()
        filled = self.mailbox.filled(number, self.around.row(), self.arrivals.taken(number if self.waits else None))
        self.state = self.player.pool(self.state, filled.pooled)
        self.position = Position(number, False)
        # Who is further on is there all the same, though nothing of it was used.
        there = [one for one in linked if one in filled.heard or (self.waits and self.arrivals.has(one, number))]
        self.waiting.after_round(linked, there)
        self.around.played(self, filled, [one for one in linked if one not in filled.heard])
