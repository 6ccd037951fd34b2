"""Messages that have arrived and wait for the round in which they are used."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable

from consilience.engines.peers.messages import Said


class Arrivals:
    """Of every sender a few messages at most: those for the rounds that are played next, and the newest.

    A neighbour may be a round ahead, having all that it waited for, while this peer still waits for somebody else; what
    it says then must not take the place of what it said before. Who does not hear those who hear it can be further
    ahead: in a directed ring by as many rounds as there are others, so `most` is for them the number of agents.

    >>> arrivals = Arrivals()
    >>> [arrivals.put(Said(7, number, ())) for number in (3, 4, 4, 5)]
    [True, True, False, True]
    >>> [said.round for said in arrivals.taken(3)], arrivals.has(7, 4)
    ([3], True)
    >>> arrivals.put(Said(7, 2, ())), [said.round for said in arrivals.taken()]
    (False, [5])
    """

    def __init__(self, most: int = 2) -> None:
        self._most, self._lock = most, threading.Lock()  # messages come from other threads than the one that uses them
        self._waiting: dict[int, dict[int, Said]] = {}
        self._newest: dict[int, int] = {}  # the round of each sender's newest message so far
        self._used: dict[int, int] = {}  # and of the last that was taken

    def put(self, said: Said) -> bool:
        """Keep a message, unless it is here already or too late to be used."""
        with self._lock:
            waiting = self._waiting.setdefault(said.sender, {})
            if said.round in waiting or said.round <= self._used.get(said.sender, 0):
                return False
            self._newest[said.sender] = max(said.round, self._newest.get(said.sender, 0))
            waiting[said.round] = said
            if len(waiting) > self._most:
                del waiting[sorted(waiting)[-2]]
            return True

    def has(self, sender: int, number: int) -> bool:
        """Whether nothing more of this round can be expected of a sender: it has said this round's, or a later one."""
        return self._newest.get(sender, 0) >= number

    def taken(self, number: int | None = None) -> list[Said]:
        """The messages up to a round, or all of them, oldest first; they are not kept any longer."""
        with self._lock:
            due = {
                sender: [said for its, said in sorted(waiting.items()) if number is None or its <= number]
                for sender, waiting in self._waiting.items()
            }
            for sender, found in due.items():
                for said in found:
                    del self._waiting[sender][said.round]
                    self._used[sender] = said.round
        return sorted((said for found in due.values() for said in found), key=lambda said: (said.round, said.sender))

    def forget(self, senders: Collection[int]) -> None:
        """Drop what these have said: they were removed, or begin anew."""
        with self._lock:
            for sender in senders:
                self._waiting.pop(sender, None)
                self._newest.pop(sender, None)
                self._used.pop(sender, None)

    def round_of_most(self, neighbours: Iterable[int]) -> int:
        """The round that more than half of these neighbours have reached; who has said nothing is at the beginning.

        Where there are two or more, no single one, however far ahead it claims to be, makes a peer leave rounds out.

        >>> arrivals = Arrivals()
        >>> for sender, number in enumerate([5, 6, 10**9]):
        ...     _ = arrivals.put(Said(sender, number, ()))
        >>> arrivals.round_of_most(range(3)), arrivals.round_of_most([2, 3])
        (6, 0)
        """
        rounds = sorted((self._newest.get(one, 0) for one in neighbours), reverse=True)
        return rounds[len(rounds) // 2] if rounds else 0
