"""How an inbox gets filled between hosts: what a peer keeps of what was said, under each consensus.

An inbox is a weighted sum of messages, as in `simulate`; only here the messages are at hand one by one.

- pooling: Σ_j W_ij b_j over the beliefs of this round; the weight of one that did not arrive returns to the own belief.
- sites: Σ_j t_j over the newest site of everybody that has come here, passed on from peer to peer.
- tracking: the own part of what was published, and of every neighbour what its counter has grown by since it was last
  heard. A counter is the sum of all parts that its owner has given to each listener, so what is lost is only late.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from consilience.engines.peers.mail import NO_MAIL, Kept, entries_of, kept_of
from consilience.engines.peers.messages import Arrays, Entry, Said, Version

AT_ONCE = 1 << 14  # numbers


class Filled(NamedTuple):
    """An inbox, and of whom it was made: weights under pooling, else 1 for everybody in it; ages in rounds.

    heard: the neighbours whose own messages were used in this round.
    """

    pooled: Arrays
    weights: Mapping[int, float]
    ages: Mapping[int, int]
    heard: Collection[int]


@runtime_checkable
class Mailbox(Protocol):
    """What a peer keeps under a consensus."""

    def kept(self) -> Kept:
        """For a checkpoint: what must be as it is now. What the own agent published last is there anyway."""
        ...

    def restore(self, kept: Kept, own: Arrays) -> None:
        """The opposite; `own`: what the own agent published last."""
        ...

    def passed_on(self) -> Kept:
        """What others have said and say again where it is gone: it need not be kept in every round."""
        ...

    def recall(self, kept: Kept) -> None:
        """The opposite."""
        ...

    def publish(self, entry: Entry) -> None:
        """Take what the own agent has published in this round."""
        ...

    def say(self, neighbour: int) -> tuple[Entry, ...]:
        """What is to be sent to a neighbour now."""
        ...

    def held(self) -> dict[int, Version]:
        """The versions that are here, for the neighbours to know."""
        ...

    def knows(self, neighbour: int, held: Mapping[int, Version]) -> None:
        """A neighbour says which versions it has, so that nobody sends it those."""
        ...

    def filled(self, number: int, row: Mapping[int, float], messages: Iterable[Said]) -> Filled:
        """The inbox of this round, from what has arrived for it; `row`: whom this peer hears with what weight."""
        ...


class Pooled:
    """Beliefs of this round, or, of agents that do not wait, the newest of the last few own rounds."""

    def __init__(self, me: int, staleness: int | None = None) -> None:
        self._me, self._staleness = me, staleness
        self._own: Entry | None = None
        self._heard: dict[int, tuple[Said, int]] = {}  # with the own round in which it came

    def kept(self) -> Kept:
        """The own belief; what was heard of others is not waited for again."""
        return kept_of({} if self._own is None else {self._me: self._own}, self._me)

    def restore(self, kept: Kept, own: Arrays) -> None:
        """The own belief."""
        self._own = entries_of(kept, {self._me: own}).get(self._me)

    def passed_on(self) -> Kept:
        """Nothing is."""
        return NO_MAIL

    def recall(self, kept: Kept) -> None:
        """Nothing is passed on."""

    def publish(self, entry: Entry) -> None:
        """The own belief b_i."""
        self._own = entry

    def say(self, neighbour: int) -> tuple[Entry, ...]:
        """The same to everybody."""
        return () if self._own is None else (self._own,)

    def held(self) -> dict[int, Version]:
        """Nothing is passed on."""
        return {}

    def knows(self, neighbour: int, held: Mapping[int, Version]) -> None:
        """Nothing is passed on."""

    def filled(self, number: int, row: Mapping[int, float], messages: Iterable[Said]) -> Filled:
        """Σ_j W_ij b_j; weight that did not arrive returns to the own belief."""
        assert self._own is not None
        for said in messages:
            self._heard[said.sender] = said, number
        used = {
            sender: said
            for sender, (said, came) in self._heard.items()
            if sender in row and (said.round == number if self._staleness is None else number - came <= self._staleness)
        }
        beliefs = {sender: said.entries[0].arrays for sender, said in used.items()} | {self._me: self._own.arrays}
        weights = {sender: row[sender] for sender in sorted(used)}
        weights[self._me] = row[self._me] + sum(w for j, w in row.items() if j != self._me and j not in used)
        ages = {sender: number - said.round for sender, said in used.items()} | {self._me: 0}
        pooled = weighted_sum((weights[j], beliefs[j]) for j in weights)
        return Filled(pooled, weights, ages, used.keys())


class Tabled:
    """The newest site of everybody that has come here, at any distance. `most`: how many go into a message."""

    def __init__(self, me: int, table: Mapping[int, Entry] | None = None, most: int | None = None) -> None:
        self._me, self._most = me, most
        self.table: dict[int, Entry] = dict(table or {})
        self._known: dict[int, dict[int, Version]] = {}  # what each neighbour has said that it holds
        self._members: Collection[int] | None = None  # whose sites are used; everybody's where nothing is said

    def kept(self) -> Kept:
        """The own site."""
        return kept_of({self._me: self.table[self._me]} if self._me in self.table else {}, self._me)

    def restore(self, kept: Kept, own: Arrays) -> None:
        """The own site."""
        self.table |= entries_of(kept, {self._me: own})

    def passed_on(self) -> Kept:
        """The sites of all others."""
        return kept_of({owner: entry for owner, entry in self.table.items() if owner != self._me})

    def recall(self, kept: Kept) -> None:
        """The sites of all others; there may be newer ones, which the neighbours have."""
        self.table |= entries_of(kept)

    def publish(self, entry: Entry) -> None:
        """The own site t_i."""
        self.table[entry.owner] = entry

    def say(self, neighbour: int) -> tuple[Entry, ...]:
        """The own site, and what is newer than what the neighbour is known to hold; of its own site it knows best.

        What does not fit comes later: first goes that of which the neighbour has the oldest version.
        """
        known = self._known.get(neighbour, {})
        news = [
            owner
            for owner, entry in self.table.items()
            if owner not in (self._me, neighbour) and entry.version > known.get(owner, (0, 0))
        ]
        if self._most is not None and len(news) >= self._most:
            news = sorted(news, key=lambda owner: (known.get(owner, (0, 0)), owner))[: self._most - 1]
        return tuple(self.table[owner] for owner in sorted({*news, *(self.table.keys() & {self._me})}))

    def held(self) -> dict[int, Version]:
        """Of everybody the version that is here."""
        return {owner: entry.version for owner, entry in self.table.items()}

    def knows(self, neighbour: int, held: Mapping[int, Version]) -> None:
        """Until it says something else: who lost what it had, says so."""
        self._known[neighbour] = dict(held)

    def filled(self, number: int, row: Mapping[int, float], messages: Iterable[Said]) -> Filled:
        """Σ_j t_j over all that is here by now; the newest version of each wins."""
        heard = set()
        for said in messages:
            heard.add(said.sender)
            for entry in said.entries:
                held = self.table.get(entry.owner)
                if entry.owner != self._me and (held is None or entry.version > held.version):
                    self.table[entry.owner] = entry
        self.only(self._members)  # what was on its way may be of somebody who was removed meanwhile
        ones = dict.fromkeys(sorted(self.table), 1.0)
        ages = {owner: max(number - self.table[owner].version[0], 0) for owner in ones}
        return Filled(weighted_sum((1.0, self.table[owner].arrays) for owner in ones), ones, ages, heard)

    def believe(self, genuine: Callable[[Entry], bool]) -> None:
        """Keep of others what is signed by a key that they have now, as their neighbours do: keys are replaced."""
        self.table = {owner: entry for owner, entry in self.table.items() if owner == self._me or genuine(entry)}

    def only(self, members: Collection[int] | None) -> None:
        """Use the sites of these from now on, and of nobody else: others were removed, or are blocked here."""
        self._members = members
        if members is not None:
            self.table = {owner: entry for owner, entry in self.table.items() if owner in members}


class Counted:
    """Counters of running sums, in double precision: what everybody has given to each of its listeners so far."""

    def __init__(self, me: int, listeners: int, epoch: int) -> None:
        self._me, self.epoch = me, epoch
        self._part = 1 / (1 + listeners)
        self._given: Arrays = {}  # in this round
        self.counter: Entry | None = None
        self.taken: dict[int, Arrays] = {}  # of each neighbour's counter

    def kept(self) -> Kept:
        """The own counter, what was given last, and what has been taken of each neighbour's."""
        if self.counter is None:
            return kept_of({}, epoch=self.epoch)
        taken = {neighbour: Entry(neighbour, (0, 0), arrays) for neighbour, arrays in self.taken.items()}
        given = Entry(-1, (0, 0), self._given)
        return kept_of({**taken, self._me: self.counter, -1: given}, epoch=self.epoch)

    def restore(self, kept: Kept, own: Arrays) -> None:
        """The same, where it is of this epoch."""
        if kept.known.get("epoch") != self.epoch:
            return
        entries = entries_of(kept)
        self.counter, given = entries.pop(self._me, None), entries.pop(-1, None)
        self._given = {} if given is None else given.arrays
        self.taken = {neighbour: entry.arrays for neighbour, entry in entries.items()}

    def passed_on(self) -> Kept:
        """Nothing is."""
        return NO_MAIL

    def recall(self, kept: Kept) -> None:
        """Nothing is passed on."""

    def publish(self, entry: Entry) -> None:
        """The own sums, of which everybody who listens, and the agent itself, gets an equal part."""
        self._given = weighted_sum([(self._part, entry.arrays)])
        before = [] if self.counter is None else [(1.0, self.counter.arrays)]
        self.counter = entry._replace(arrays=weighted_sum([*before, (1.0, self._given)]))

    def say(self, neighbour: int) -> tuple[Entry, ...]:
        """The same to everybody."""
        return () if self.counter is None else (self.counter,)

    def held(self) -> dict[int, Version]:
        """Nothing is passed on."""
        return {}

    def knows(self, neighbour: int, held: Mapping[int, Version]) -> None:
        """Nothing is passed on."""

    def filled(self, number: int, row: Mapping[int, float], messages: Iterable[Said]) -> Filled:
        """The own part, and what the neighbours' counters have grown by."""
        # Oldest first: the newest stays. Counters of another roster begin elsewhere.
        newest = {said.sender: said for said in messages if said.sender in row and said.epoch == self.epoch}
        grown: list[Arrays] = [self._given]
        for sender, said in newest.items():
            counter = said.entries[0].arrays
            # The difference first: a small part of one's own must not vanish beside a large counter.
            before = [(-1.0, self.taken[sender])] if sender in self.taken else []
            grown.append(weighted_sum([(1.0, counter), *before]))
            self.taken[sender] = counter
        ones = dict.fromkeys([self._me, *sorted(newest)], 1.0)
        ages = {self._me: 0} | {sender: max(number - said.round, 0) for sender, said in newest.items()}
        return Filled(weighted_sum((1.0, part) for part in grown), ones, ages, newest.keys())


def weighted_sum(parts: Iterable[tuple[float, Arrays]]) -> dict[str, np.ndarray]:
    """Σ w · arrays, by name, in double precision.

    >>> weighted_sum([(0.5, {"x": np.ones(2)}), (2.0, {"x": np.ones(2)})])["x"].tolist()
    [2.5, 2.5]
    """
    weighed = list(parts)
    return {name: _summed([(weight, arrays[name]) for weight, arrays in weighed]) for name in weighed[0][1]}


def _summed(parts: list[tuple[float, np.ndarray]]) -> np.ndarray:
    """Σ w · array, some numbers of all at a time: what is in between stays in the processor's cache."""
    total = np.zeros(np.shape(parts[0][1]))
    flat, term = total.reshape(-1), np.empty(min(AT_ONCE, total.size))
    terms = [(weight, np.asarray(array).reshape(-1)) for weight, array in parts]
    for begin in range(0, total.size, AT_ONCE):
        piece = flat[begin : begin + AT_ONCE]
        for weight, array in terms:
            piece += np.multiply(array[begin : begin + AT_ONCE], weight, out=term[: piece.size], dtype=np.float64)
    return total
