"""Homes of peers and of a steward, with something in them damaged; then asked, joined, signed or put together."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from peer_homes import made

from consilience.learning.peer import Peer

from .invariants import FOLDER, GONE, Case, Content, Ending, Link, _fill, judge
from .templates import WHERE, read
from .wild import Rng, chance, damaged, pick, restructured

NAMES = ("north", "south")
BOTH, NEW = "both", "new.csv"  # a table to predict from is what it is
JOIN = ("peer", "join", "study.bundle", "--data", "north.csv", "--home", "north")
COMMANDS = (
    ("report", *NAMES, "--to", BOTH),
    ("report", *NAMES, "--to", BOTH),
    JOIN,
    ("peer", "status", "--home", "north"),
    ("peer", "block", "south", "--home", "north"),
    ("peer", "leave", "--home", "north"),
    ("study", "show", "study.bundle"),
    ("study", "show", "north/north.card"),
    ("study", "show", "north/study.bundle"),
    ("study", "add", "north/north.card", "--home", "steward"),
    ("study", "links", "complete", "--home", "steward"),
    ("study", "remove", "south", "--home", "steward"),
    ("study", "sign", "--home", "steward"),
    ("predict", "north/run", NEW),
    ("coefficients", "north/run"),
)
SIGNED = ("sign", "add", "links", "remove")  # of another moment, with another signature


@cache
def homes() -> dict[str, bytes]:
    """Two peers that have learnt together, their steward, and everything they wrote."""
    folder = WHERE[0]
    _fill(folder, {NEW: b"x0,x1,x2\n0.5,1,-1\n"})
    made(folder, "pooling", rounds=2, patience=10.0, names=NAMES, rows=(12, 9))
    threads = [threading.Thread(target=Peer(folder / name).run) for name in NAMES]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return read(folder)


@cache
def expected(words: tuple[str, ...]) -> tuple[object, str, dict[str, bytes], list[str]]:
    """The exit code, what is printed and the files after these words where nothing is damaged; and what is wrong."""
    ended: list[Ending] = []

    def note(ending: Ending) -> Iterator[str]:
        ended.append(ending)
        yield from ()

    found = judge(Case("reference", list(words), dict(homes()), also=note), WHERE[0])
    (ending,) = ended or [Ending(None, "", "", {}, {}, WHERE[0])]
    return ending.code, ending.out, read(WHERE[0]), [one.what for one in found]


def home(rng: Rng) -> Case:
    """A file of a home is damaged, gone, or something else."""
    words = pick(rng, COMMANDS)
    if words[1] != "status":  # which tells how a peer stands also where that is an error
        words += pick(rng, ((), ("--json",)))
    files: dict[str, Content] = dict(homes())
    folders = [word for word in words if word in (*NAMES, "steward", "north/run")] or ["north"]
    kept = [file for file in files if file != NEW]
    near = [file for file in kept if any(file.startswith(f"{one}/") for one in folders) or file in words]
    file = pick(rng, near if chance(rng, 0.95) else kept)
    content, how = files[file], rng.random()
    assert isinstance(content, bytes)
    if how < 0.06:
        files[file], note = pick(rng, (FOLDER, Link("nowhere"), b"")), "replaced"
    elif how < 0.12:
        del files[file]
        note = "removed"
    elif file.endswith((".json", ".card", ".bundle")) and how < 0.4 and (tree := _tree(content)) is not None:
        files[file], note = json.dumps(restructured(rng, tree), default=str).encode(), "restructured"
    else:
        others = [other for other in files if Path(other).name == Path(file).name and other != file]
        files[file], note = damaged(rng, content, homes()[pick(rng, others)] if others else b"other")
    return Case("", list(words), files, also=_refused_or_same(words, file, note), note=f"{file}: {note}")


def _tree(content: bytes) -> dict[str, object] | None:
    try:
        tree = json.loads(content)
    except ValueError:
        return None
    return tree if isinstance(tree, dict) else None


def _refused_or_same(words: tuple[str, ...], file: str, note: str) -> Callable[[Ending], Iterator[str]]:
    """What is damaged is refused, or was not needed: then all is as it would have been."""
    code, out, left, broken = expected(words)
    what = f"{' '.join(words[:2])}, {file} {note if note in ('removed', 'replaced') else 'damaged'}"

    def check(ending: Ending) -> Iterator[str]:
        yield from (f"undamaged, {' '.join(words)}: {one}" for one in broken)
        if code != 0 and ending.code == 0:
            yield f"{what}: accepted, the undamaged is not"
        if ending.code != 0 or code != 0 or words[1] in SIGNED:
            return
        if ending.out != out:
            yield f"{what}: says something else"
        found = read(ending.folder)
        for name, content in left.items():
            if name.startswith(f"{BOTH}/") and found.get(name, GONE) != content:
                yield f"{what}: another {name}"

    return check
