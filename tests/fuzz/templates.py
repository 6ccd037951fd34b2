"""Runs as they should be, and what carrying them on or reporting them must give: the measure of every damaged copy."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import chdir, suppress
from functools import cache
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from consilience.data.arrays import as_archive
from consilience.experiments import load
from consilience.files.whole import sha256_of
from consilience.runs import run

from .invariants import GONE, Case, Content, Ending, Link, _fill, judge
from .stage import staged

RUN = "run"
REGRESSION = ("rounds=24", "replicates=2", "checkpoint_every=10", "test_samples=20", "network.kind=ring")
REGRESSION += ("network.agents=2", "theta=[0.1, 0.2, 0.3]", "half_widths=[1.0, 1.0]")
CHANGING = ("rounds=60", "replicates=2", "checkpoint_every=5", "points=16", "hypotheses=3")
CHANGING += ('networks={lossy={kind="star", edges=2, changes={loss=0.3}}}',)
OWN = ("rounds=6", "record_every=2", "checkpoint_every=2", "partition.kind=iid", "model.hidden=[]", "learner.epochs=1")
OWN += ('networks={cooperating={kind="star", edges=2}}', "learner.batch=4", "samples=2", "watched=[]", "alone=false")
DATA = ("own.csv", "own.npz", "own.parquet")
LEARN = ("rounds=6", "record_every=2", "checkpoint_every=2", "samples=2", "learner.batch=8", "learner.epochs=1")
RUNS = {
    "regression": ("linear-regression", REGRESSION),
    "changing": ("changing-rates", CHANGING),
    **{file: ("star-digits", (*OWN, f"dataset={file}")) for file in DATA},
    "learn": ("mine/learn.toml", LEARN),
}
NEEDED = {"learn": ("mine/learn.toml", "mine/data.npz")}
STATES = ("stopped", "cut", "finished")
FROM_NOTE = ("command", "seeds", "hours", "versions", "commit", "machine")
WHERE: list[Path] = []  # the folder in which all cases live: absolute paths are in descriptions


@cache
def data_files() -> dict[str, bytes]:
    """A small table of two numbers and a label, in every format."""
    rng = np.random.default_rng(0)
    x, y = np.round(rng.normal(size=(60, 2)), 3), np.array(["no", "yes"])[np.arange(60) % 2]
    rows = [f"{a},{b},{label}" for (a, b), label in zip(x.tolist(), y, strict=True)]
    arrays, table = BytesIO(), BytesIO()
    test = np.arange(60) % 5 == 4
    np.savez(arrays, x=x[~test], y=y[~test], x_test=x[test], y_test=y[test])
    pyarrow.parquet.write_table(pa.table({"a": x[:, 0], "b": x[:, 1], "label": y.tolist()}), table)
    text = "\n".join(["a,b,label", *rows]) + "\n"
    whole = {"x": x.astype(np.float32), "y": np.arange(60, dtype=np.int32) % 2, "sizes": np.array([1, 0, 59])}
    whole |= {"names": np.array(["a", "b", "c"]), "labels": np.array(["no", "yes"])}
    kept = as_archive(whole)
    described = f'experiment = "learn"\n[shares]\nkind = "arrays"\nsha256 = "{sha256_of(kept)}"\n'
    described += '[network]\nkind = "ring"\nagents = 3\n'
    made = {"own.csv": text.encode(), "own.npz": arrays.getvalue(), "own.parquet": table.getvalue()}
    return made | {"mine/learn.toml": described.encode(), "mine/data.npz": kept}


@cache
def template(name: str, state: str) -> dict[str, bytes]:
    """The files of a run of this name that has stopped after a checkpoint, was cut off later, or is finished."""
    if state == "cut":
        files, whole = dict(template(name, "stopped")), template(name, "finished")
        stopped = len(files[f"{RUN}/record.csv"])
        files[f"{RUN}/record.csv"] = whole[f"{RUN}/record.csv"][: stopped + 150]  # rows, and one that is torn
        return files
    folder = WHERE[0]
    _fill(folder, {file: data_files()[file] for file in NEEDED.get(name, (name,)) if file in data_files()})
    experiment, settings = RUNS[name]
    clock = SimpleNamespace(monotonic=lambda: 0.0, time=lambda: 0.0)
    with chdir(folder), staged(False, False), mock.patch.object(run, "time", clock):
        run.begin(load(experiment, settings), Path(RUN))
        with suppress(run.Stopped):
            run.carry_on(Path(RUN), stop=lambda: state == "stopped")
    return read(folder)


def read(folder: Path) -> dict[str, bytes]:
    """All files below; locks aside."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@cache
def reference(name: str, state: str, words: tuple[str, ...]) -> tuple[object, dict[str, bytes], list[str]]:
    """The exit code and the files after these words on the undamaged run, and what does not hold even there."""
    codes: list[object] = []

    def note(ending: Ending) -> Iterator[str]:
        codes.append(ending.code)
        yield from ()

    found = judge(Case("reference", list(words), dict(template(name, state)), also=note), WHERE[0])
    return (codes or [1])[0], read(WHERE[0]), [finding.what for finding in found]


def refused_or_same(
    name: str, state: str, words: tuple[str, ...], damaged: dict[str, Content | str]
) -> Callable[[Ending], Iterator[str]]:
    """A damaged run is refused in a line that names the damaged file, or gives exactly what the undamaged one gives."""
    code, expected, broken = reference(name, state, words)
    unread = {f"{RUN}/checkpoint-before.safetensors"} | ({f"{RUN}/summary.json"} if "--to" in words else set())
    if f"{RUN}/run.json" in damaged:  # it has the checksums of those that cannot have their own
        unread |= {file for file in expected if Path(file).name.startswith("turns-")}
    without_note = damaged.get(f"{RUN}/run.json") in (GONE, Link("nowhere"))
    free = without_note and f"{RUN}/config.toml" in damaged  # without its checksum, rounds can be changed by hand
    names = Path(next(iter(damaged))).name if len(damaged) == 1 else "several files"
    what = f"{words[0]} of {state}, {names} damaged"

    def check(ending: Ending) -> Iterator[str]:
        yield from (f"undamaged, {words[0]} of {state} {name}: {what}" for what in broken)
        if ending.code != 0:
            if code == 0 and ending.code != 2:
                yield f"{what}: refused with code 1"
            # Of a record and a checkpoint that do not fit each other, nobody can say which one was damaged.
            if not any(_called(file) in ending.err for file in damaged):
                yield f"{words[0]}, {names} damaged: refused without the name of the file"
            return
        if code != 0:
            yield f"{what}: accepted, the undamaged is not"
            return
        found = read(ending.folder)
        for file, content in expected.items():
            if free or (file in unread and file in damaged):
                continue
            if Path(file).name == "summary.json":
                lost = FROM_NOTE if without_note else ("hours",)
                if _summary(found.get(file), lost) != _summary(content, lost):
                    yield f"{what}: another {file}"
            elif words[0] == "resume" and file.startswith(f"{RUN}/") and _lasting(file) and found.get(file) != content:
                yield f"{what}: another {file}"

    return check


def _called(file: str) -> str:
    return "checkpoint" if "checkpoint" in file else Path(file).name


def _lasting(file: str) -> bool:
    return "figures" not in file and not file.endswith("run.json")


def _summary(content: bytes | None, without: tuple[str, ...]) -> Any:
    try:
        summary = json.loads(content or b"")
    except ValueError:
        return "unreadable"
    return {key: value for key, value in summary.items() if key not in without}
