"""What a peer says in a round, as it is sent: made ready once for all links that carry the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from consilience.engines.peers.desk import Agreed
from consilience.engines.peers.messages import Said, as_count
from consilience.engines.peers.wire import Entry as Announced
from consilience.engines.peers.wire import Expected, about, chunks, laid_out
from consilience.engines.peers.wire.frames import Pieces
from consilience.engines.peers.wire.messages import About


class Spoken:
    """A message, by one peer since one of its starts, under what was agreed on; the first link that sends it makes it.

    Looking through all of it for a checksum takes about as long as sending it.
    """

    def __init__(self, said: Said, incarnation: int, agreed: Agreed, own_id: str) -> None:
        self._said, self._incarnation, self._agreed, self._own_id = said, incarnation, agreed, own_id
        self._lock = threading.Lock()
        self._ready: tuple[About, Pieces] | None = None

    def frames(self) -> Iterator[bytes]:
        """Its pieces."""
        with self._lock:
            self._ready = self._ready or self._made()
        announced, body = self._ready
        return chunks(announced, *body)

    def _made(self) -> tuple[About, Pieces]:
        said, agreed = self._said, self._agreed
        expected = expected_of(agreed, self._own_id)
        if not agreed.several:
            body = laid_out(said.entries[0].arrays, agreed.schema, agreed.form)
            return about(expected, self._incarnation, said.round, *body), body
        names = {number: id for id, number in agreed.number_of.items()}
        announced = tuple(
            Announced(names[entry.owner], as_count(entry.version), entry.signature) for entry in said.entries
        )
        arrays = {
            f"{names[entry.owner]}/{name}": array for entry in said.entries for name, array in entry.arrays.items()
        }
        body = laid_out(arrays, agreed.schema.of_each([each.owner for each in announced]), agreed.form)
        return about(expected, self._incarnation, said.round, *body, entries=announced), body


class Speech:
    """What is said in a round, to everybody: listeners who hear the same versions hear one message."""

    def __init__(self) -> None:
        self._round = -1
        self._messages: dict[tuple[object, ...], Spoken] = {}

    def spoken(self, said: Said, incarnation: int, agreed: Agreed, own_id: str) -> Spoken:
        """A message, as it was made for the first who hears it."""
        if said.round != self._round:
            self._round, self._messages = said.round, {}
        same = (incarnation, agreed.epoch, *((entry.owner, entry.version) for entry in said.entries))
        return self._messages.setdefault(same, Spoken(said, incarnation, agreed, own_id))


def expected_of(agreed: Agreed, sender: str) -> Expected:
    """What is taken of a sender under what was agreed on."""
    return Expected(
        agreed.study,
        agreed.epoch,
        sender,
        agreed.schema,
        agreed.form,
        (-1, -1),
        agreed.most_bytes,
        agreed.several,
        agreed.upcoming,
    )
