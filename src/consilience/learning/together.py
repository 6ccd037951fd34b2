"""The folders of several peers put together: what a simulation of all of them would have reported."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from consilience.errors import InputError, printable
from consilience.experiments.learn.arms import TOGETHER
from consilience.experiments.learn.description import Config
from consilience.files.whole import write_atomically
from consilience.network import Replay, Turn, turns_as_csv
from consilience.runs import folder as files
from consilience.runs import run as runs
from consilience.runs.heard import STUDY, Heard, Participants, heard_in, taking_part
from consilience.runs.record import KEYS, Record

OWN = {"shares", "network", "rounds", "files"}  # of a description what is a peer's own, or the study's policy
TURNS = "turns-together.csv"


class Folder(NamedTuple):
    """What one peer has left: who it is, its record, and whom it heard."""

    name: str
    config: Config
    record: Record
    heard: tuple[Heard, ...]
    facts: dict[str, Any]
    played: int
    participants: Participants | None


def gathered(folders: Sequence[Path]) -> list[Folder]:
    """The folders of peers of one study, or one line why they are not."""
    peers = [read(folder) for folder in folders]
    check_alike(peers)
    return peers


def report(peers: Sequence[Folder], to: Path) -> dict[str, Any]:
    """Write the summary and the figures of peers that learnt together, as a run of all of them has them.

    Where agents pool, `turns-together.csv` says who heard whom in every round: `changes.replay` plays that again.
    """
    to.mkdir(parents=True, exist_ok=True)
    files.check_place(to)
    if (turns := realised(peers)) is not None:
        write_atomically(to / TURNS, turns_as_csv(Replay(len(peers), turns), len(turns)).encode())
    return runs.reported(described(peers), put_together(peers), _facts(peers), to)


def read(folder: Path) -> Folder:
    """A peer's folder, which may be its home."""
    inner = folder / "run"
    folder = inner if (inner / files.CONFIG).is_file() else folder
    config, record = runs.recorded(folder)
    facts = files.facts(folder)
    if not isinstance(config, Config) or not isinstance(name := facts.get("peer"), str):
        raise InputError(f"run: '{printable(str(folder))}' is not a peer's; only those of peers are put together")
    played = files.played(folder) or int(record.rounds(TOGETHER)[-1])
    heard = tuple(heard_in(folder))
    return Folder(name, config, record, heard, facts, played, taking_part(facts, heard))


def check_alike(peers: Sequence[Folder]) -> None:
    """Refuse peers of different studies, and the same one twice."""
    first = peers[0]
    for number, other in enumerate(peers[1:], 1):
        if other.name in (one.name for one in peers[:number]):
            raise InputError(f"run: '{other.name}' is given twice")
        own, theirs = (one.config.model_dump(mode="json", exclude=OWN) for one in (first, other))
        if first.facts.get(STUDY) and other.facts.get(STUDY) not in (None, first.facts[STUDY]):
            raise InputError(f"run: {first.name} and {other.name} were not in one study")
        if differs := [name for name in own if own[name] != theirs[name]]:
            raise InputError(f"run: {first.name} and {other.name} were not in one study: {differs[0]} differs")
        if (one := first.record.metrics()) != (two := other.record.metrics()):
            missing = sorted({*one} ^ {*two})
            raise InputError(f"record: {first.name} and {other.name} do not have the same columns: {missing[0]}")


def put_together(peers: Sequence[Folder]) -> Record:
    """One record of all, from the first round that everybody has recorded.

    Who was away, or has left, is judged by the belief that it had: that of the last round it has recorded.
    """
    recorded = [peer.record.rounds(TOGETHER) for peer in peers]
    begin = max(int(rounds[0]) for rounds in recorded)
    rounds = np.unique(np.concatenate(recorded))
    rounds = rounds[rounds >= begin]
    latest = np.stack([np.searchsorted(own, rounds, side="right") - 1 for own in recorded], axis=1)
    columns: dict[str, np.ndarray] = {
        "arm": np.full(latest.size, TOGETHER),
        "round": np.repeat(rounds, len(peers)),
        "agent": np.tile(np.arange(len(peers)), len(rounds)),
    }
    assert tuple(columns) == KEYS
    for name in peers[0].record.metrics():
        known = [peer.record.select(TOGETHER, name)[:, 0] for peer in peers]
        columns[name] = np.stack([own[latest[:, k]] for k, own in enumerate(known)], axis=1).ravel()
    return Record(columns, _shares(peers))


def realised(peers: Sequence[Folder]) -> list[Turn] | None:
    """Who learnt and who heard whom, round by round, as it really was; `None` where no turns of all can say that.

    They can where agents pool what is said in the same round, and the folders of all who were heard are there. Weight
    that was not heard has returned to the agent itself, and who left a round out has not learnt in it.
    """
    numbers = {peer.name: number for number, peer in enumerate(peers)}
    entries = [(numbers[peer.name], heard) for peer in peers for heard in peer.heard]
    if peers[0].config.consensus.kind != "pooling" or any(one.age or one.name not in numbers for _, one in entries):
        return None
    rows: dict[int, list[tuple[int, int, float]]] = {number: [] for number in range(1, last_round(peers) + 1)}
    for receiver, one in entries:
        if one.round in rows:
            rows[one.round].append((receiver, numbers[one.name], one.weight))
    turns = []
    for number, heard in rows.items():
        receivers, senders, weights = np.array(sorted(heard), float).reshape(-1, 3).T
        who = receivers.astype(np.int32)
        new = np.zeros(len(who), np.int32)
        turns.append(Turn(np.unique(who), who, senders.astype(np.int32), weights, new, float(number)))
    return turns


def last_round(peers: Sequence[Folder]) -> int:
    """The last round that anybody has played."""
    return max(peer.played for peer in peers)


def described(peers: Sequence[Folder]) -> Config:
    """The description that they share, with the files of all."""
    first = peers[0].config
    lying = {peer.name: file for peer in peers for file in getattr(peer.config.shares, "files", {}).values()}
    known = {field: sha256 for peer in peers for field, sha256 in (peer.config.files or {}).items()}
    return first.model_copy(update={"shares": first.shares.model_copy(update={"files": lying}), "files": known})


def _shares(peers: Sequence[Folder]) -> dict[str, Any]:
    """Who held what, of all."""
    kept = [peer.record.shares for peer in peers]
    merged = {name: [one[name][0] for one in kept] for name in ("rows", "held_out_rows")}
    counts = None if kept[0]["counts"] is None else [one["counts"][0] for one in kept]
    last = max(peer.record.rounds(TOGETHER)[-1] for peer in peers)
    behind = [f"{peer.name} after round {own}" for peer in peers if (own := peer.record.rounds(TOGETHER)[-1]) < last]
    notes = [f"{', '.join(behind)} recorded no more; what it had then is told"] if behind else []
    notes += [
        f"at {peer.name}: {peer.participants.note}" for peer in peers if peer.participants and peer.participants.note
    ]
    return {
        **kept[0],
        **merged,
        "counts": counts,
        "agents": [peer.name for peer in peers],
        "note": "; ".join(notes) or None,
    }


def _facts(peers: Sequence[Folder]) -> dict[str, Any]:
    """What of how they came about is the same for all."""
    first = peers[0].facts
    return {name: first[name] for name in ("seeds", "versions", "commit") if name in first}
