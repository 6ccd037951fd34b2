"""The paper's runs in one folder: begin what is missing, carry on what is not finished, tell what came out."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import jax

from consilience.errors import InputError
from consilience.experiments import load, summarise
from consilience.files.strict_json import strict_json
from consilience.files.whole import write_atomically
from consilience.paper.claims import Claim
from consilience.paper.parts import Part
from consilience.paper.plays import Play
from consilience.paper.told import Runs, Told
from consilience.runs import run
from consilience.runs.description import RunConfig
from consilience.runs.estimate import Speed, kind_of, measure
from consilience.runs.folder import check_place, facts

CLAIMS, FIGURES = "paper.json", "figures"


class Due(NamedTuple):
    """A run of the paper: where it is, what it is to do and how far it is."""

    play: Play
    folder: Path
    config: RunConfig
    done: int
    finished: bool


def due(parts: Iterable[Part], out: Path, data_dir: Path | None = None) -> list[Due]:
    """The runs of these parts, each once, with how far they are."""
    if (out.exists() or out.is_symlink()) and not out.is_dir():
        raise InputError(f"--out: '{out}' must be a folder")
    check_place(out)
    if (out / CLAIMS).is_dir():
        raise InputError(f"--out: '{out / CLAIMS}' must be a file, got a folder")
    plays = {play.name: play for part in parts for play in part.plays}
    return [_due(play, out / play.name, data_dir) for play in plays.values()]


def _due(play: Play, folder: Path, data_dir: Path | None) -> Due:
    config = load(play.experiment, play.settings)
    if data_dir is not None:
        config = config.model_copy(update={"data_dir": data_dir})
    if not folder.exists():
        return Due(play, folder, config, 0, False)
    there, own = run.opened(folder), {"files", "data_dir"}  # which the place has, not the paper
    if there.model_dump(exclude=own) != config.model_dump(exclude=own):
        raise InputError(f"--out: '{folder}' is not the run of `{play.command()}`; move it away")
    return Due(play, folder, there, run.played(folder), facts(folder).get("status") == "finished")


def speeds(runs: Iterable[Due]) -> dict[str, Speed]:
    """How fast this machine plays every kind of run that is left."""
    kinds = {kind_of(one.config): one.config for one in runs if not one.finished}
    return {kind: measure(config) for kind, config in kinds.items()}


def tell(parts: Iterable[Part], out: Path) -> list[Claim]:
    """What the finished runs say of every claim; draws the figures and writes the claims for machines."""
    parts = list(parts)
    runs: Runs = {play.name: _told(out / play.name) for part in parts for play in part.plays}
    (out / FIGURES).mkdir(parents=True, exist_ok=True)
    for part in parts:
        for draw in part.drawings:
            draw(runs, out / FIGURES)
    told = [claim for part in parts for claims in part.claims for claim in claims(runs)]
    write_atomically(out / CLAIMS, f"{strict_json([claim._asdict() for claim in told])}\n".encode())
    return told


def _told(folder: Path) -> Told:
    config, record = run.recorded(folder)
    with jax.enable_x64(config.precision == "float64"):
        return Told(config, record, summarise(config, record))
