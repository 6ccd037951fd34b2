"""A user's own files: tables that `new` looks at, shares that `learn` reads, arrays beside a description."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from consilience.errors import InputError
from consilience.experiments import load
from consilience.files.whole import sha256_of

from . import tables
from .fields import setting
from .invariants import FOLDER, Case, Content, Ending, Link
from .templates import data_files
from .wild import Rng, chance, damaged, pick

COLUMNS = """[columns.a]
kind = "number"
[columns.b]
kind = "number"
missing = "centre"
[columns.label]
kind = "label"
levels = ["no", "yes"]
"""
HEAD = 'experiment = "learn"\nrounds = 3\n[network]\nkind = "ring"\nagents = 2\n'


def _share(rng: Rng, kind: str) -> Content:
    """Somebody's table, most often a sound one."""
    content: Content = data_files()[f"own.{kind}"]
    if chance(rng, 0.15):
        _, content = tables.dataset(rng)
    if chance(rng, 0.3) and isinstance(content, bytes):
        content, _ = damaged(rng, content, data_files()[pick(rng, ("own.csv", "own.npz", "own.parquet"))])
    return content if not chance(rng, 0.02) else pick(rng, (FOLDER, Link("nowhere"), b""))


def files(rng: Rng) -> Case:
    """Shares of two agents, or arrays beside the description, damaged or described oddly; a run is begun."""
    kind = pick(rng, ("csv", "csv", "parquet", "npz", "arrays", "table"))
    made: dict[str, Content] = {}
    if kind == "arrays":
        kept, described = data_files()["mine/data.npz"], data_files()["mine/learn.toml"]
        if chance(rng, 0.8):
            hurt, _ = damaged(rng, kept, data_files()["own.npz"])
            if chance(rng, 0.6):  # somebody knows how to make a checksum
                described = described.replace(sha256_of(kept).encode(), sha256_of(hurt).encode())
            kept = hurt
        made = {"data.npz": kept, "study.toml": described}
    elif kind == "table":
        dealt = pick(rng, ('owner = "label"', 'owner = "b"', "", *(f'partition = {{kind = "{k}"}}' for k in DEALT)))
        text = f'{HEAD}[shares]\nkind = "table"\nfile = "own.csv"\n{dealt}\n{COLUMNS}'
        made = {"own.csv": _share(rng, "csv"), "study.toml": text.encode()}
    else:
        named = f'a = "1.{kind}"\nb = "2.{kind}"\n'
        text = f'{HEAD}[shares]\nkind = "files"\n[shares.files]\n{named}' + COLUMNS * (kind != "npz")
        made = {"study.toml": text.encode(), f"1.{kind}": data_files()[f"own.{kind}"], f"2.{kind}": _share(rng, kind)}
    words = ["run", "study.toml", "--out", "run"]
    for _ in range(int(pick(rng, (0, 0, 0, 1, 2)))):
        words += ["--set", setting(rng, "learn")]
    if chance(rng, 0.15):
        words += ["--set", f"test={pick(rng, tuple(made))}"]
    if chance(rng, 0.2):
        words += ["--set", f"likelihood.kind={pick(rng, ('gaussian', 'poisson', 'bernoulli', 'given'))}"]
    return Case("", words, made, only_begin=True, also=tables.folder_reads_back)


DEALT = ("iid", "dirichlet", "skewed", "shards", "feature", "labels", "file")


def new(rng: Rng) -> Case:
    """`new` on tables: a description that can be read, or one line and nothing written."""
    kinds = [pick(rng, ("csv",) * 8 + ("parquet",) * 4 + ("npz",)) for _ in range(int(pick(rng, (1, 2, 2, 3))))]
    made = {f"{number}.{kind}": _share(rng, kind) for number, kind in enumerate(kinds)}
    words = [
        "new",
        "study",
        *made,
        pick(rng, ("--label", "--label", "--target")),
        pick(rng, ("label", "label", "a", "x")),
    ]
    words += ["--counts"] if chance(rng, 0.1) else []
    words += ["--owner", pick(rng, ("label", "b"))] if chance(rng, 0.15) and len(made) == 1 else []
    words += ["--json"] if chance(rng, 0.4) else []
    if chance(rng, 0.1):
        made["study.toml"] = b"mine"
        words += ["--force"] if chance(rng, 0.5) else []
    return Case("", words, made, also=_described)


def _described(ending: Ending) -> Iterator[str]:
    """What was written is a description of an experiment; what was refused wrote nothing."""
    written = "study.toml"
    if ending.code != 0:
        if ending.after != ending.before:
            yield "a refused `new` leaves something behind"
        return
    if written not in ending.after:
        yield "`new` wrote nothing"
        return
    try:
        load(str(Path(ending.folder) / written))
    except InputError as error:
        yield f"what `new` wrote is refused: {error}"
