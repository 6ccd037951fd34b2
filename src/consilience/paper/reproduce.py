"""The paper's runs in one folder: begin what is missing, carry on what is not finished, tell what came out.

A finished run leaves `NAME.json` beside its folder: what it tells. With it the run counts as finished, whether its
folder is still there or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from consilience.errors import InputError
from consilience.experiments import described, load
from consilience.files.strict_json import strict_json
from consilience.files.whole import write_atomically
from consilience.paper import told_file
from consilience.paper.claims import Claim
from consilience.paper.from_run import told_by
from consilience.paper.parts import Part
from consilience.paper.plays import Play
from consilience.paper.told import Runs, Told
from consilience.runs import run
from consilience.runs.description import RunConfig
from consilience.runs.estimate import Speed, kind_of, measure
from consilience.runs.folder import check_place, facts, played

CLAIMS, FIGURES = "paper.json", "figures"


class Due(NamedTuple):
    """A run of the paper: where it is, what it is to do and how far it is; what it tells, where that is written."""

    play: Play
    folder: Path
    config: RunConfig
    done: int
    finished: bool
    told: Told | None = None


class Findings(NamedTuple):
    """What the finished runs say of the paper, and which runs the other parts wait for."""

    claims: list[Claim]
    missing: dict[str, list[str]]  # names of runs, by part
    figures: list[Path]

    def values(self) -> dict[str, object]:
        """For machines."""
        return {"claims": [claim._asdict() for claim in self.claims], "missing": self.missing}


def write_claims(file: Path, claims: Iterable[Claim]) -> None:
    """The table for machines: a list of claims."""
    write_atomically(file, f"{strict_json([claim._asdict() for claim in claims], indent=2)}\n".encode())


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
    if (file := told_in(folder)).exists() or file.is_symlink():
        told = told_file.read(file)
        _require_same(_described(told, file), config, file, play)
        return Due(play, folder, config, config.rounds, True, told)
    if data_dir is not None:
        config = config.model_copy(update={"data_dir": data_dir})
    if not folder.exists():
        return Due(play, folder, config, 0, False)
    there = run.opened(folder)
    _require_same(there, config, folder, play)
    return Due(play, folder, there, played(folder), facts(folder).get("status") == "finished")


def told_in(folder: Path) -> Path:
    """The file that holds what the run of a folder tells: beside it, because it outlives it.

    >>> str(told_in(Path("runs/paper/star-mnist-0.1")))
    'runs/paper/star-mnist-0.1.json'
    """
    return folder.with_name(f"{folder.name}.json")


def _described(told: Told, file: Path) -> RunConfig:
    try:
        return described(told.configuration)
    except (InputError, KeyError) as error:
        raise InputError(f"run: '{file}': {error}") from None


def _require_same(there: RunConfig, wanted: RunConfig, where: Path, play: Play) -> None:
    own = {"files", "data_dir"}  # which the place has, not the paper
    if there.model_dump(exclude=own) != wanted.model_dump(exclude=own):
        raise InputError(f"--out: '{where}' is not the run of `{play.command()}`; move it away")


def speeds(runs: Iterable[Due]) -> dict[str, Speed]:
    """How fast this machine plays every kind of run that is left."""
    kinds = {kind_of(one.config): one.config for one in runs if not one.finished}
    return {kind: measure(config) for kind, config in kinds.items()}


def kept(one: Due) -> Told:
    """What a finished run tells, written beside its folder where it is not yet."""
    if one.told is not None:
        return one.told
    told = told_by(one.play.name, one.folder)
    told_file.write(told, told_in(one.folder))
    return told


def tell(parts: Sequence[Part], out: Path) -> Findings:
    """What the finished runs say of every claim; draws the figures and writes the claims for machines.

    Parts that wait for a run are left out; the findings say for which.
    """
    runs: Runs = {one.play.name: kept(one) for one in due(parts, out) if one.finished}
    missing = missing_of(parts, runs)
    complete = [part for part in parts if part.name not in missing]
    (out / FIGURES).mkdir(parents=True, exist_ok=True)
    drawn = [draw(runs, out / FIGURES) for part in complete for draw in part.drawings]
    found = Findings(claims_of(complete, runs), missing, drawn)
    write_claims(out / CLAIMS, found.claims)
    return found


def missing_of(parts: Iterable[Part], runs: Runs) -> dict[str, list[str]]:
    """The runs that parts wait for."""
    waits = {part.name: [play.name for play in part.plays if play.name not in runs] for part in parts}
    return {name: plays for name, plays in waits.items() if plays}


def claims_of(parts: Iterable[Part], runs: Runs) -> list[Claim]:
    """The claims of parts whose runs are all there."""
    return [claim for part in parts for claims in part.claims for claim in claims(runs)]
