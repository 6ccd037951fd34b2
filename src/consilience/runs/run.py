"""A run in its folder: begin it, carry it on from its last checkpoint, report it.

The folder holds `config.toml` (what to do), `run.json` (versions, seeds, status, checksums), `record.csv` (what
happened), `shares.json` (who held what), where a network changes `turns-ARM.csv` (who learns and who hears whom in
every round), `checkpoint.safetensors` (where it stands, and the one before), and, once finished, `summary.json` and
`figures/`. Of several hosts only the first touches the folder.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jax

from consilience import experiments
from consilience.described.settings import to_toml
from consilience.engines import hosts
from consilience.engines.arm import Arm, Engine, require_memory
from consilience.engines.simulate import Simulation
from consilience.errors import InputError
from consilience.files.strict_json import strict_json
from consilience.files.whole import sha256_of, write_atomically
from consilience.network import Network, heard_of, turns_as_csv
from consilience.runs import folder as files
from consilience.runs.description import RunConfig, pinned
from consilience.runs.folder import CONFIG, FIGURES, RECORD, SUMMARY, locked, new_folder
from consilience.runs.heard import AMONG
from consilience.runs.play import OnRound, RunFailed, Stopped, prepared
from consilience.runs.provenance import provenance
from consilience.runs.record import Record
from consilience.runs.sent import SENT, sent_by

__all__ = [
    "RunFailed",
    "Stopped",
    "begin",
    "carry_on",
    "extend",
    "locked",
    "new_folder",
    "note_stopped",
    "opened",
    "recorded",
    "report",
    "reported",
]


def begin(config: RunConfig, folder: Path | None = None, command: str | None = None) -> Path:
    """Make a run's folder, or the next free one: the description and how it came about. All of it is checked first.

    `command` is what a reader can type to have the same, where it is not the one that was typed.
    """
    config = pinned(config)
    arms = _checked_arms(config)
    with jax.enable_x64(config.precision == "float64"):
        kept = experiments.shares(config)
    if folder is None:
        folder = new_folder(config.experiment)
    elif (folder.exists() or folder.is_symlink()) and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"--out: '{folder}' already exists; `consilience resume {folder}` carries a run on")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        for name, content in config.carried().items():
            files.write(folder, name, content)
        if kept is not None:
            files.write_shares(folder, {**kept, SENT: _sent(config, arms)})
        _write_turns(folder, arms, config.rounds)
        files.note(folder, status="begun", started=_now(), seeds=config.seeds(), **provenance(command))
        files.write(folder, CONFIG, to_toml(config).encode())  # the last: with it, it is a run's folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


def opened(folder: Path) -> RunConfig:
    """The description in a run's folder."""
    if not (folder / CONFIG).is_file():
        raise InputError(f"run: '{folder}' is not a run folder, it has no {CONFIG}")
    files.read(folder, CONFIG)
    try:
        return experiments.load(str(folder / CONFIG))
    except InputError as error:
        raise InputError(f"run: '{folder / CONFIG}': {error}") from None


def extend(folder: Path, rounds: int) -> None:
    """Let a run go on to another last round."""
    config = opened(folder)
    if type(config).recorded_rounds is not RunConfig.recorded_rounds:
        raise InputError(f"rounds: {config.experiment} spaces its records by its last round; begin a new run instead")
    if rounds < (least := max(files.played(folder), 1)):
        raise InputError(f"rounds: must be at least {least}, which have been played, got {rounds}")
    before = _checked_arms(config)
    config = config.model_copy(update={"rounds": rounds})
    arms = _checked_arms(config)
    for name, arm in arms.items():
        if _oldest(arm) != (kept := _oldest(before[name])):
            raise InputError(
                f"rounds: in {rounds} rounds '{name}' comes to hear what was said {_oldest(arm)} publications before, "
                f"the run keeps {kept}; begin a new run instead"
            )
    with locked(folder):
        if experiments.has_shares(config):
            files.write_shares(folder, {**files.shares(folder), SENT: _sent(config, arms)})
        _write_turns(folder, arms, rounds)
        files.write(folder, CONFIG, to_toml(config).encode())


def _checked_arms(config: RunConfig) -> dict[str, Arm]:
    """The arms of a description, where they can be had and fit into memory."""
    with jax.enable_x64(config.precision == "float64"):
        arms = experiments.arms(config)
        require_memory(arms, config.replicates, hosts.count())
    return arms


def _sent(config: RunConfig, arms: dict[str, Arm]) -> dict[str, Any]:
    """What is sent in every round, with numbers of the run's precision."""
    with jax.enable_x64(config.precision == "float64"):
        return sent_by(arms, config.rounds)


def _oldest(arm: Arm) -> int:
    """How many publications ago something was said that is still heard, at most."""
    return 0 if isinstance(arm.hears, Network) else arm.hears.most.age


def _write_turns(folder: Path, arms: dict[str, Arm], rounds: int) -> None:
    """Where a network changes: who learns and who hears whom in every round."""
    for name, arm in arms.items():
        if not isinstance(heard := heard_of(arm.hears), Network):
            files.write(folder, f"turns-{name}.csv", turns_as_csv(heard, rounds).encode())


def _to_carry_on(folder: Path) -> dict[str, Any]:
    """The description of a run that can be played on here."""
    if AMONG in files.facts(folder):
        raise InputError(f"run: '{folder}' is a peer's: consilience peer start carries it on, with its neighbours")
    return opened(folder).model_dump(mode="json", exclude_none=True)


def carry_on(
    folder: Path,
    on_round: OnRound = lambda *_: None,
    stop: Callable[[], bool] = lambda: False,
    data_dir: Path | None = None,
    engine: Engine | None = None,
    complete: Callable[[RunConfig], RunConfig] = lambda config: config,
) -> dict[str, Any]:
    """Play the rounds that are left, from the last checkpoint, and report. Returns the summary.

    `on_round` is told the last round played and a few words on how it goes, now and then. Where `stop` comes to say
    yes, a checkpoint is written and `Stopped` raised. The numbers are those of a run that was never interrupted.
    Several hosts call this together; the folder is the first one's, `data_dir` a host's own.
    `engine` plays the arms, `simulate` unless another one is given; `complete` puts back into the description what only
    Python has (a model that was given).
    """
    config = experiments.described(hosts.from_first(lambda: _to_carry_on(folder)))
    digest = _digest(config)
    config = experiments.lying_in(complete(_with_data(config, data_dir)), folder)

    def arms_here() -> dict[str, Arm]:
        pinned(config)  # the files that this host reads are those of the run
        return _checked_arms(config)

    with jax.enable_x64(config.precision == "float64"), ExitStack() as held:
        arms = hosts.on_all(arms_here)
        hosts.from_first(lambda: held.enter_context(locked(folder)))
        hosts.from_first(lambda: files.check(folder))
        hours = hosts.from_first(lambda: files.facts(folder).get("hours"))
        run = prepared(config, digest, arms, folder, engine or Simulation)  # what is refused leaves the folder as it is
        before = hours if isinstance(hours, int | float) else 0.0
        began, ending = time.monotonic(), "stopped"
        _note(folder, status="running", record=run.extent)
        try:
            run.play(on_round, stop)
            ending = "finished"
        except RunFailed:
            ending = "failed"
            raise
        finally:
            spent = round(before + (time.monotonic() - began) / 3600, 4)
            _note(folder, status=ending, hours=spent, record=run.extent, **{ending: _now()})
        return hosts.from_first(lambda: report(folder))


def note_stopped(folder: Path) -> None:
    """Say in run.json that the run was stopped."""
    _note(folder, status="stopped", stopped=_now())


def recorded(folder: Path) -> tuple[RunConfig, Record]:
    """The description of a run and what of its record is known to be right."""
    config, extent = opened(folder), files.extent(folder)
    shares = files.shares(folder) if experiments.has_shares(config) else None
    return config, Record.read(folder / RECORD, extent, shares)


def report(folder: Path, to: Path | None = None) -> dict[str, Any]:
    """Read the record; write the summary and the figures anew, into the run's folder or another one."""
    to = to or folder
    files.check_place(to)
    config, record = recorded(folder)
    return reported(config, record, files.facts(folder), to)


def reported(config: RunConfig, record: Record, facts: dict[str, Any], to: Path) -> dict[str, Any]:
    """Write the summary and the figures of a record into a folder; `facts` are of how it came about."""
    with jax.enable_x64(config.precision == "float64"):
        figures = experiments.draw(config, record, to / FIGURES)
        summary: dict[str, Any] = {
            "experiment": config.experiment,
            **experiments.summarise(config, record),
            "figures": [str(file.relative_to(to)) for file in figures],
            **{
                name: facts[name]
                for name in ("command", "seeds", "hours", "versions", "commit", "machine")
                if name in facts
            },
            "configuration": config.model_dump(mode="json", exclude_none=True),
        }
    write_atomically(to / SUMMARY, f"{strict_json(summary)}\n".encode())
    return summary


def _with_data(config: RunConfig, data_dir: Path | None) -> RunConfig:
    """The description with the place where this host has its data."""
    return config if data_dir is None else config.model_copy(update={"data_dir": data_dir})


def _digest(config: RunConfig) -> str:
    """Names the experiment that a checkpoint belongs to: everything but how often to write, and how far to go."""
    free = {"checkpoint_every"} | ({"rounds"} if type(config).recorded_rounds is RunConfig.recorded_rounds else set())
    return sha256_of(config.model_dump_json(exclude=free).encode())[:16]


def _note(folder: Path, **facts: Any) -> None:
    """Add facts to run.json; the first host does."""
    if hosts.is_first():
        files.note(folder, **facts)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
