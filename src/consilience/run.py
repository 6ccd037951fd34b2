"""A run in its folder: begin it, carry it on from its last checkpoint, report it.

The folder holds `config.toml` (what to do), `run.json` (versions, seeds, status), `record.csv` (what happened),
`checkpoint.safetensors` (where it stands), and, once finished, `summary.json` and `figures/`.
"""

from __future__ import annotations

import json
import platform
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from consilience.checkpoint import load_checkpoint, save_checkpoint, write_atomically
from consilience.config import RunConfig, to_toml
from consilience.engines.simulate import Arm, Metrics, Progress, play, start
from consilience.errors import InputError
from consilience.experiments import load, module_of
from consilience.record import Record, RecordWriter

CONFIG, RUN, RECORD, CHECKPOINT, SUMMARY = (
    "config.toml",
    "run.json",
    "record.csv",
    "checkpoint.safetensors",
    "summary.json",
)
LIGHT_STOPS, HEAVY_PACE = 10, 2  # recorded rounds, or rounds, that one call of the jitted program plays
OnRound = Callable[[int, str], None]


class RunFailed(Exception):
    """A run that cannot go on; its message is one line."""


class Stopped(Exception):
    """A run that was asked to stop, and did after this round, with a checkpoint."""


def begin(config: RunConfig, folder: Path) -> None:
    """Make a run's folder: the description and how it came about. The description is checked as a whole first."""
    with jax.enable_x64(config.precision == "float64"):
        module_of(config.experiment).arms(config)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"--out: '{folder}' already exists; `consilience resume {folder}` carries a run on")
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / CONFIG, to_toml(config).encode())
    _note(folder, status="begun", started=_now(), seeds=_seeds(config), command=_command(), versions=_versions())


def next_folder(experiment: str, parent: Path = Path("runs")) -> Path:
    """The first free folder name for a run: runs/NAME-1, runs/NAME-2, …"""
    return next(folder for n in count(1) if not (folder := parent / f"{experiment}-{n}").exists())


def opened(folder: Path) -> RunConfig:
    """The description in a run's folder."""
    if not (folder / CONFIG).is_file():
        raise InputError(f"run: '{folder}' is not a run folder, it has no {CONFIG}")
    return load(str(folder / CONFIG))


def carry_on(
    folder: Path, on_round: OnRound = lambda *_: None, stop: Callable[[], bool] = lambda: False
) -> dict[str, Any]:
    """Play the rounds that are left, from the last checkpoint, and report. Returns the summary.

    `on_round` is told the last round played and a few words on how it goes, now and then. Where `stop` comes to say
    yes, a checkpoint is written and `Stopped` raised. The numbers are those of a run that was never interrupted.
    """
    config = opened(folder)
    with jax.enable_x64(config.precision == "float64"):
        arms: dict[str, Arm] = module_of(config.experiment).arms(config)
        hours = float(_facts(folder).get("hours", 0.0))
        began = time.monotonic()
        try:
            _play_all(config, arms, folder, on_round, stop)
        finally:
            _note(folder, hours=round(hours + (time.monotonic() - began) / 3600, 4))
        _note(folder, status="finished", finished=_now())
        return report(folder)


def report(folder: Path, to: Path | None = None) -> dict[str, Any]:
    """Read the record; write the summary and the figures anew, into the run's folder or another one."""
    from consilience.report import draw

    config, to = opened(folder), to or folder
    with jax.enable_x64(config.precision == "float64"):
        record = Record.read(folder / RECORD)
        figures = draw(config, record, to / "figures")
        facts = _facts(folder)
        summary: dict[str, Any] = {
            "experiment": config.experiment,
            **module_of(config.experiment).summarise(config, record),
            "figures": [str(file.relative_to(to)) for file in figures],
            **{key: facts[key] for key in ("command", "seeds", "hours", "versions") if key in facts},
            "configuration": config.model_dump(mode="json", exclude_none=True),
        }
    write_atomically(to / SUMMARY, (json.dumps(summary, indent=2) + "\n").encode())
    return summary


def _play_all(
    config: RunConfig, arms: dict[str, Arm], folder: Path, on_round: OnRound, stop: Callable[[], bool]
) -> None:
    seeds = jnp.array(_seeds(config))
    progress: dict[str, Progress] = {name: start(arm, _seeds(config)) for name, arm in arms.items()}
    position = {"round": 0, "record_bytes": 0}
    if (folder / CHECKPOINT).exists():
        progress, position = load_checkpoint(folder / CHECKPOINT, progress)
    played = {name: play(arm) for name, arm in arms.items()}
    heavy = any(arm.heavy for arm in arms.values())
    record = RecordWriter(folder / RECORD, position["record_bytes"])
    done = saved = position["round"]
    words = ""
    try:
        on_round(done, words)
        for stops, measured in _chunks(config, done, heavy):
            recorded = [n for n, wanted in zip(stops, measured, strict=True) if wanted]
            for name, advance in played.items():
                progress[name], metrics = advance(
                    seeds, done + 1, jnp.array(stops), jnp.array(measured), progress[name]
                )
                columns = _over_seeds(metrics, measured)
                _refuse_nan(name, recorded, columns)
                if recorded:
                    record.append(name, recorded, columns)
                if recorded and name == next(iter(arms)) and "accuracy" in columns:
                    words = f"accuracy {columns['accuracy'][-1].mean():.1%}"
            done = stops[-1]
            interrupted = stop()
            if done - saved >= config.checkpoint_every or done == config.rounds or interrupted:
                save_checkpoint(folder / CHECKPOINT, progress, {"round": done, "record_bytes": record.sync()})
                saved = done
            on_round(done, words)
            if interrupted and done < config.rounds:
                raise Stopped(done)
    finally:
        record.close()


def _chunks(config: RunConfig, done: int, heavy: bool) -> Iterator[tuple[list[int], list[bool]]]:
    """The rounds to stop at, in pieces that one call of the jitted program plays, and which of them are recorded.

    Light work goes ten recorded rounds at a time; heavy work stops after a few rounds, so that progress shows and an
    interruption is soon heard. Padding with stops already made keeps the pieces of one length, for one compilation.
    """
    recorded = set(config.recorded_rounds())
    pace = {n for n in range(1, config.rounds + 1) if n % HEAVY_PACE == 0} if heavy else set()
    stops = sorted(n for n in recorded | pace if n > done)
    length = 1 if heavy else LIGHT_STOPS
    for first in range(0, len(stops), length):
        piece = stops[first : first + length]
        spare = length - len(piece)
        yield piece + [piece[-1]] * spare, [n in recorded for n in piece] + [False] * spare


def _over_seeds(metrics: Metrics, measured: list[bool]) -> dict[str, np.ndarray]:
    """Means over the seeds at the measured stops, of shape (stops, agents); with several seeds, standard errors too."""
    columns: dict[str, np.ndarray] = {}
    for name, values in metrics.items():
        numbers = np.asarray(values)[measured]
        columns[name] = numbers.mean(axis=1)
        if (seeds := numbers.shape[1]) > 1:
            columns[f"{name}_se"] = numbers.std(axis=1, ddof=1) / np.sqrt(seeds)
    return columns


def _refuse_nan(arm: str, stops: list[int], columns: dict[str, np.ndarray]) -> None:
    for name, values in columns.items():
        bad = np.argwhere(~np.isfinite(values))
        if bad.size:
            stop, agent = bad[0]
            raise RunFailed(f"{arm}: {name} of agent {agent} is {values[stop, agent]} at round {stops[stop]}")


def _command() -> str:
    """What was typed; a run begun from Python has no command line of ours."""
    program, *words = sys.argv
    return shlex.join(["consilience", *words]) if Path(program).name == "consilience" else "consilience.run.begin"


def _seeds(config: RunConfig) -> list[int]:
    return [config.seed + r for r in range(config.replicates)]


def _note(folder: Path, **facts: Any) -> None:
    """Add facts to run.json."""
    write_atomically(folder / RUN, (json.dumps({**_facts(folder), **facts}, indent=2) + "\n").encode())


def _facts(folder: Path) -> dict[str, Any]:
    """What run.json says; nothing where it is missing or damaged, because a run can be carried on without it."""
    try:
        known = json.loads((folder / RUN).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _versions() -> dict[str, str]:
    packages = {name: version(name) for name in ("consilience", "jax", "jaxlib", "numpy", "scipy")}
    return {**packages, "python": platform.python_version(), "platform": platform.platform()}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
