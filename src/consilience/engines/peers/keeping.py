"""What a peer keeps in its run's folder: where it stands, before it says so to anybody; what happened; who was heard.

The folder is that of any run, with one agent: what reads runs reads it. In a round only the checkpoint is put on disk;
it holds the last rows of the other files, which are put there now and then. So are the messages of others that are
passed on, in a file of their own: who has lost some of them hears them again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from consilience.engines.arm import Progress
from consilience.engines.peers.life import Position
from consilience.engines.peers.mail import NO_MAIL, Kept
from consilience.engines.peers.mailboxes import Filled
from consilience.engines.peers.messages import Arrays
from consilience.engines.peers.wire.schema import named
from consilience.errors import InputError
from consilience.runs import folder as files
from consilience.runs.appended import NOTHING, Appended, Extent, Tail, rows_of
from consilience.runs.checkpoint import load_checkpoint, read_header, save_checkpoint
from consilience.runs.heard import AMONG, HEADER, HEARD
from consilience.runs.record import RecordWriter

MAIL = "mail"
PASSED_ON = "passed-on.safetensors"
SYNCED_EVERY = 20  # rounds


class Standing(NamedTuple):
    """Where a peer stood when it last said anything."""

    state: Any
    public: Arrays
    position: Position
    mail: Kept
    incarnation: int
    passed_on: Kept = NO_MAIL


class Keeper:
    """A peer's run folder, opened by one process alone."""

    def __init__(self, folder: Path, arm: str, digest: str) -> None:
        self.folder, self._arm, self._digest = folder, arm, digest
        self._record: RecordWriter | None = None
        self._heard: Appended | None = None
        self._known = {files.RECORD: NOTHING, HEARD: NOTHING}
        self._tails = dict.fromkeys(self._known, Tail(NOTHING, ""))
        self._saved = 0  # checkpoints since the other files were put on disk

    def among(self, names: Sequence[str]) -> None:
        """Whom the peer is to hear from now on, itself included."""
        files.note(self.folder, **{AMONG: list(names)})

    def load(self, shapes: Any) -> Standing | None:
        """Where it stood, from the last checkpoint; nothing where there is none. `shapes`: of a state."""
        file = files.latest_checkpoint(self.folder)
        if file is None:
            if (self.folder / HEARD).exists() and sum(1 for _ in rows_of(self.folder / HEARD)) > 1:
                raise InputError(
                    f"checkpoint: '{self.folder / files.CHECKPOINT}' is gone, and rounds were played; put it back, or "
                    "begin anew in another home (consilience peer init --key-of)"
                )
            return None
        position, found = self._loaded(file, {self._arm: _as_run(shapes)})
        progress = jax.tree.map(lambda x: np.asarray(x)[0, 0], found[self._arm])
        peer = position["peer"]
        if "tails" not in position:
            raise InputError(f"checkpoint: '{file}' is of an earlier version, which kept other things in it")
        self._known = {files.RECORD: Extent(*position["record"]), HEARD: Extent(*position["heard"])}
        self._tails = {name: Tail(Extent(*synced), text) for name, (synced, text) in position["tails"].items()}
        kept = Kept(found[MAIL], peer["mail"])
        where = Position(position["round"], peer["published"])
        public = named(progress.public)
        return Standing(progress.state, public, where, kept, peer["incarnation"], self._loaded_passed_on())

    def _loaded_passed_on(self) -> Kept:
        """What others have said, as it was when it was last put on disk."""
        file = self.folder / PASSED_ON
        if not file.exists():
            return NO_MAIL
        position, found = self._loaded(file, {}, "; remove it: neighbours say again what is in it")
        return Kept(found[MAIL], position["mail"])

    def _loaded(self, file: Path, like: dict[str, Any], remedy: str = "") -> tuple[dict[str, Any], dict[str, Any]]:
        """Where it stood, and these arrays and those of its mail."""
        try:
            mail = {
                name[len(f"['{MAIL}']['") : -2]: kind
                for name, kind in read_header(file).kinds.items()
                if name.startswith(f"['{MAIL}']")
            }
            like = {**like, MAIL: {name: _shape(*kind) for name, kind in mail.items()}}
            position, arrays = load_checkpoint(file, like)
            if position.get("digest") != self._digest:
                raise InputError(f"checkpoint: '{file}' is of another study")
        except InputError as error:
            raise InputError(f"{error}{remedy}") from None
        return position, jax.tree.unflatten(jax.tree.structure(like), list(arrays))

    def open(self) -> None:
        """Go on writing from where it stood: what was recorded of later rounds goes, because they are played anew."""
        for name, extent in self._known.items():  # before either is cut
            self._tails[name].mend(self.folder / name, extent)
        self._record = RecordWriter(self.folder / files.RECORD, self._known[files.RECORD])
        self._heard = Appended(self.folder / HEARD, self._known[HEARD])
        if self._known[HEARD] == NOTHING:
            self._heard.write([HEADER])
        self._sync()  # who was killed has written more than is on disk

    def save(
        self, state: Any, public: Any, position: Position, mail: Kept, incarnation: int, passed_on: Callable[[], Kept]
    ) -> None:
        """Where it stands now; the checkpoint before is kept."""
        assert self._record is not None
        assert self._heard is not None
        self._saved += 1
        if self._saved % SYNCED_EVERY == 0 or not position.published:  # or it ends
            self._sync()
            self._save_passed_on(passed_on())
        rows = {files.RECORD: self._record.rows, HEARD: self._heard}
        grown = {Path(name).stem: list(each.flush()) for name, each in rows.items()}
        progress = jax.tree.map(lambda x: _looked_at(x)[None, None], Progress(state, public))
        tree = {self._arm: progress, MAIL: mail.arrays}
        where = {
            "round": position.round,
            **grown,
            "tails": {name: each.tail() for name, each in rows.items()},
            "digest": self._digest,
            "peer": {"published": position.published, "mail": mail.known, "incarnation": incarnation},
        }
        save_checkpoint(self.folder / files.CHECKPOINT, tree, jax.tree.leaves(tree), where)

    def _save_passed_on(self, mail: Kept) -> None:
        if mail.arrays:
            where, tree = {"digest": self._digest, "mail": mail.known}, {MAIL: mail.arrays}
            save_checkpoint(self.folder / PASSED_ON, tree, jax.tree.leaves(tree), where, keep=False)

    def _sync(self) -> None:
        """Put what happened on disk, and note how much that is."""
        assert self._record is not None
        assert self._heard is not None
        grown = {"record": list(self._record.sync()), "heard": list(self._heard.sync())}
        files.note(self.folder, **grown)

    def played(self, number: int, filled: Filled, names: Mapping[int, str], scores: Mapping[str, float] | None) -> None:
        """Record a round: who was heard, with what weight, how old; and scores, where they were measured."""
        assert self._record is not None
        assert self._heard is not None
        rows = [
            (number, names.get(sender, sender), repr(weight), filled.ages.get(sender, 0))
            for sender, weight in filled.weights.items()
        ]
        self._heard.write(rows)
        if scores is not None:
            self._record.append(self._arm, [number], {name: np.array([[value]]) for name, value in scores.items()})

    def close(self) -> None:
        """Everything on disk; where that cannot be, both files are closed all the same."""
        with ExitStack() as closing:
            for file in (self._record, self._heard):
                if file is not None:
                    closing.callback(file.close)
            self._record = self._heard = None


def _looked_at(array: Any) -> np.ndarray:
    """An array where it is, for as long as it is looked at: `np.asarray` would hold its memory from then on."""
    return np.from_dlpack(array) if isinstance(array, jax.Array) else np.asarray(array)  # type: ignore[arg-type]


def _as_run(shapes: Progress) -> Any:
    """With the leading axes of a run: one repetition, one agent."""
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct((1, 1, *x.shape), x.dtype), shapes)


def _shape(kind: str, shape: tuple[int, ...]) -> Any:
    types = {"F32": np.float32, "F64": np.float64}
    if kind not in types:
        raise InputError(f"checkpoint: holds mail of type {kind}")
    return jax.ShapeDtypeStruct(shape, types[kind])
