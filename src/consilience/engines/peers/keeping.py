"""What a peer keeps in its run's folder: where it stands, before it says so to anybody; what happened; who was heard.

The folder is that of any run, with one agent: what reads runs reads it.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import jax
import numpy as np

from consilience.engines.arm import Progress
from consilience.engines.peers.life import Position
from consilience.engines.peers.mailboxes import Filled, Kept
from consilience.engines.peers.messages import Arrays
from consilience.engines.peers.wire.schema import named
from consilience.errors import InputError
from consilience.files.whole import write_atomically
from consilience.runs import folder as files
from consilience.runs.checkpoint import load_checkpoint, read_header, save_checkpoint
from consilience.runs.record import NOTHING, Extent, RecordWriter

HEARD, HEADER = "heard.csv", ("round", "heard", "weight", "age")
MAIL = "mail"


class Standing(NamedTuple):
    """Where a peer stood when it last said anything."""

    state: Any
    public: Arrays
    position: Position
    mail: Kept
    incarnation: int


class Keeper:
    """A peer's run folder, opened by one process alone."""

    def __init__(self, folder: Path, arm: str, digest: str) -> None:
        self.folder, self._arm, self._digest = folder, arm, digest
        self._record: RecordWriter | None = None
        self._heard: TextIO | None = None
        self._known, self._next_round = NOTHING, 1

    def load(self, shapes: Any) -> Standing | None:
        """Where it stood, from the last checkpoint; nothing where there is none. `shapes`: of a state."""
        file = files.latest_checkpoint(self.folder)
        if file is None:
            return None
        header = read_header(file)
        mail = {
            name[len(f"['{MAIL}']['") : -2]: kind
            for name, kind in header.kinds.items()
            if name.startswith(f"['{MAIL}']")
        }
        like = {self._arm: _as_run(shapes), MAIL: {name: _shape(*kind) for name, kind in mail.items()}}
        position, arrays = load_checkpoint(file, like)
        if position.get("digest") != self._digest:
            raise InputError(f"checkpoint: '{file}' is of another study")
        found = jax.tree.unflatten(jax.tree.structure(like), list(arrays))
        progress = jax.tree.map(lambda x: np.asarray(x)[0, 0], found[self._arm])
        peer = position["peer"]
        self._known, self._next_round = Extent(*position["record"]), position["round"] + (not peer["published"])
        kept = Kept(found[MAIL], peer["mail"])
        where = Position(position["round"], peer["published"])
        return Standing(progress.state, named(progress.public), where, kept, peer["incarnation"])

    def open(self) -> None:
        """Go on writing from where it stood: what was recorded of later rounds goes, because they are played anew."""
        self._record = RecordWriter(self.folder / files.RECORD, self._known)
        write_atomically(self.folder / HEARD, as_csv([HEADER, *self._heard_before()]).encode())
        self._heard = (self.folder / HEARD).open("a", encoding="utf-8")

    def save(self, state: Any, public: Any, position: Position, mail: Kept, incarnation: int) -> None:
        """Where it stands now; the checkpoint before is kept."""
        assert self._record is not None
        assert self._heard is not None
        extent = self._record.sync()
        self._heard.flush()
        os.fsync(self._heard.fileno())
        progress = jax.tree.map(lambda x: np.asarray(x)[None, None], Progress(state, public))
        tree = {self._arm: progress, MAIL: mail.arrays}
        where = {
            "round": position.round,
            "record": list(extent),
            "digest": self._digest,
            "peer": {"published": position.published, "mail": mail.known, "incarnation": incarnation},
        }
        save_checkpoint(self.folder / files.CHECKPOINT, tree, jax.tree.leaves(tree), where)
        files.note(self.folder, record=list(extent), rounds_played=position.round)

    def played(self, number: int, filled: Filled, names: Mapping[int, str], scores: Mapping[str, float] | None) -> None:
        """Record a round: who was heard, with what weight, how old; and scores, where they were measured."""
        assert self._record is not None
        assert self._heard is not None
        rows = [
            (number, names.get(sender, sender), repr(weight), filled.ages.get(sender, 0))
            for sender, weight in filled.weights.items()
        ]
        self._heard.write(as_csv(rows))
        if scores is not None:
            self._record.append(self._arm, [number], {name: np.array([[value]]) for name, value in scores.items()})

    def close(self) -> None:
        """Everything on disk."""
        for file in (self._record, self._heard):
            if file is not None:
                file.close()
        self._record = self._heard = None

    def _heard_before(self) -> Iterator[list[str]]:
        """Who was heard in the rounds that are not played anew; a line that a crash has torn is of one that is."""
        if not (self.folder / HEARD).exists():
            return
        with (self.folder / HEARD).open(newline="", encoding="utf-8", errors="replace") as stream:
            for row in csv.reader(stream):
                if len(row) == len(HEADER) and row[0].isdecimal() and int(row[0]) < self._next_round:
                    yield row


def as_csv(rows: Iterable[Iterable[object]]) -> str:
    """Lines of values that need no quotes.

    >>> as_csv([("round", "heard"), (1, "north")])
    'round,heard\\n1,north\\n'
    """
    return "".join(",".join(map(str, row)) + "\n" for row in rows)


def _as_run(shapes: Progress) -> Any:
    """With the leading axes of a run: one repetition, one agent."""
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct((1, 1, *x.shape), x.dtype), shapes)


def _shape(kind: str, shape: tuple[int, ...]) -> Any:
    types = {"F32": np.float32, "F64": np.float64}
    if kind not in types:
        raise InputError(f"checkpoint: holds mail of type {kind}")
    return jax.ShapeDtypeStruct(shape, types[kind])
