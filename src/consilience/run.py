"""A run in its folder: begin it, carry it on from its last checkpoint, report it.

The folder holds `config.toml` (what to do), `run.json` (versions, seeds, status), `record.csv` (what happened), where
a network changes `turns-ARM.csv` (who learns and who hears whom in every round),
`checkpoint.safetensors` (where it stands), and, once finished, `summary.json` and `figures/`. Of several hosts only the
first touches the folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import platform
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from heapq import merge
from importlib.metadata import version
from itertools import count, groupby, islice
from pathlib import Path
from typing import Any

import jax
import numpy as np

from consilience import hosts
from consilience.checkpoint import clear_unfinished, load_checkpoint, save_checkpoint, write_atomically
from consilience.config import RunConfig, pinned, to_toml
from consilience.engines.arm import Arm, Metrics, Progress, require_memory
from consilience.engines.simulate import Simulation
from consilience.errors import InputError
from consilience.experiments import described, load, module_of
from consilience.network import Network, turns_as_csv
from consilience.record import Record, RecordWriter
from consilience.strict_json import strict_json

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
    config = pinned(config)
    ours = False
    try:
        with jax.enable_x64(config.precision == "float64"):
            arms = module_of(config.experiment).arms(config)
            require_memory(arms, config.replicates, hosts.count())
        # Asked last: meanwhile another process may have begun a run there.
        if (folder.exists() or folder.is_symlink()) and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"--out: '{folder}' already exists; `consilience resume {folder}` carries a run on")
        folder.mkdir(parents=True, exist_ok=True)
        ours = True
        for name, arm in arms.items():
            if not isinstance(arm.hears, Network):
                write_atomically(folder / f"turns-{name}.csv", turns_as_csv(arm.hears, config.rounds).encode())
        _note(folder, status="begun", started=_now(), seeds=_seeds(config), command=_command(), versions=_versions())
        write_atomically(folder / CONFIG, to_toml(config).encode())  # the last: with it, it is a run's folder
    except BaseException:
        if ours:
            shutil.rmtree(folder)
        elif folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
        raise


def new_folder(experiment: str, parent: Path = Path("runs")) -> Path:
    """Make the first free folder for a run, runs/NAME-1, runs/NAME-2, …; two runs begun at once get different ones."""
    parent.mkdir(parents=True, exist_ok=True)
    for n in count(1):
        folder = parent / f"{experiment}-{n}"
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise AssertionError("unreachable")


def opened(folder: Path) -> RunConfig:
    """The description in a run's folder."""
    if not (folder / CONFIG).is_file():
        raise InputError(f"run: '{folder}' is not a run folder, it has no {CONFIG}")
    return load(str(folder / CONFIG))


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a run's folder alone: two processes on one run would destroy its record."""
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"run: '{folder}' is being carried on by another process") from None
        clear_unfinished(folder)
        yield


def carry_on(
    folder: Path,
    on_round: OnRound = lambda *_: None,
    stop: Callable[[], bool] = lambda: False,
    data_dir: Path | None = None,
) -> dict[str, Any]:
    """Play the rounds that are left, from the last checkpoint, and report. Returns the summary.

    `on_round` is told the last round played and a few words on how it goes, now and then. Where `stop` comes to say
    yes, a checkpoint is written and `Stopped` raised. The numbers are those of a run that was never interrupted.
    Several hosts call this together; the folder is the first one's, `data_dir` a host's own.
    """
    config = described(hosts.from_first(lambda: opened(folder).model_dump(mode="json", exclude_none=True)))
    digest = _digest(config)
    config = _with_data(config, data_dir)
    with jax.enable_x64(config.precision == "float64"):
        arms: dict[str, Arm] = module_of(config.experiment).arms(config)
        with ExitStack() as held:
            hosts.from_first(lambda: held.enter_context(locked(folder)))
            hours = _facts(folder).get("hours")
            before = hours if isinstance(hours, int | float) else 0.0
            began, status = time.monotonic(), "stopped"
            _note(folder, status="running")
            try:
                _play_all(config, digest, arms, folder, on_round, stop)
                status = "finished"
            except RunFailed:
                status = "failed"
                raise
            finally:
                spent = round(before + (time.monotonic() - began) / 3600, 4)
                _note(folder, status=status, hours=spent, **{status: _now()})
            return hosts.from_first(lambda: report(folder, data_dir=data_dir))


def note_stopped(folder: Path) -> None:
    """Say in run.json that the run was stopped."""
    _note(folder, status="stopped", stopped=_now())


def report(folder: Path, to: Path | None = None, data_dir: Path | None = None) -> dict[str, Any]:
    """Read the record; write the summary and the figures anew, into the run's folder or another one."""
    from consilience.report import draw

    config, to = _with_data(opened(folder), data_dir), to or folder
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
    write_atomically(to / SUMMARY, f"{strict_json(summary)}\n".encode())
    return summary


def _with_data(config: RunConfig, data_dir: Path | None) -> RunConfig:
    """The description with the place where this host has its data."""
    return config if data_dir is None else config.model_copy(update={"data_dir": data_dir})


def _play_all(
    config: RunConfig, digest: str, arms: dict[str, Arm], folder: Path, on_round: OnRound, stop: Callable[[], bool]
) -> None:
    seeds = _seeds(config)
    simulations = {name: Simulation(arm) for name, arm in arms.items()}
    progress, position = _where_it_stands(config, digest, simulations, folder)
    changing = any(not isinstance(arm.hears, Network) for arm in arms.values())
    heavy = any(arm.steps is not None for arm in arms.values())
    record = _opened_record(folder / RECORD, position["record_bytes"])
    done = saved = position["round"]
    words = ""
    try:
        on_round(done, words)
        for stops, measured in _chunks(config, done, heavy):
            recorded = [n for n, wanted in zip(stops, measured, strict=True) if wanted]
            for name, simulation in simulations.items():
                progress[name], metrics = simulation.play(seeds, done + 1, stops, measured, progress[name])
                columns = _over_seeds(metrics, measured)
                if changing:
                    columns["time"] = _times(simulation, recorded)
                _refuse_nan(name, recorded, columns)
                if recorded and record:
                    record.append(name, recorded, columns)
                if recorded and name == next(iter(arms)) and "accuracy" in columns:
                    words = f"accuracy {columns['accuracy'][-1].mean():.1%}"
            done = stops[-1]
            interrupted = hosts.anywhere(stop())
            if done - saved >= config.checkpoint_every or done == config.rounds or interrupted:
                position = {"round": done, "record_bytes": record.sync() if record else 0, "digest": digest}
                _save(folder / CHECKPOINT, seeds, simulations, progress, position)
                saved = done
            on_round(done, words)
            if interrupted and done < config.rounds:
                raise Stopped(done)
    finally:
        if record:
            record.close()


def _opened_record(file: Path, length: int) -> RecordWriter | None:
    """The record, on the first host."""
    opened_there: list[RecordWriter] = []
    hosts.from_first(lambda: opened_there.append(RecordWriter(file, length)))
    return opened_there[0] if opened_there else None


def _where_it_stands(
    config: RunConfig, digest: str, simulations: dict[str, Simulation], folder: Path
) -> tuple[dict[str, Progress], dict[str, Any]]:
    """Everybody's state and the position in the run: from the checkpoint, or at the start."""
    seeds, file = _seeds(config), folder / CHECKPOINT
    shapes = {name: simulation.shapes(seeds) for name, simulation in simulations.items()}
    stored: Iterator[np.ndarray] | None = None

    def position_of() -> dict[str, Any] | None:
        nonlocal stored
        if not file.exists():
            return None
        position, stored = load_checkpoint(file, shapes)
        _check_position(position, digest, config, folder)
        return position

    position = hosts.from_first(position_of)
    if position is None:
        progress = {name: simulation.start(seeds) for name, simulation in simulations.items()}
        return progress, {"round": 0, "record_bytes": 0, "digest": digest}

    def restored(simulation: Simulation, shape: Any) -> Any:
        array = next(stored) if stored is not None else np.zeros(shape.shape, shape.dtype)
        return simulation.slots(hosts.same(array))

    progress = {name: jax.tree.map(partial(restored, simulations[name]), shapes[name]) for name in sorted(shapes)}
    return progress, position


def _save(
    file: Path, seeds: list[int], simulations: dict[str, Simulation], progress: dict[str, Progress], position: Any
) -> None:
    """Agents in order: a checkpoint does not depend on the devices, or hosts, that made it."""
    shapes = {name: simulation.shapes(seeds) for name, simulation in simulations.items()}
    # A tree made of a table has its leaves in the order of the names.
    arrays = (simulations[name].agents(leaf) for name in sorted(progress) for leaf in jax.tree.leaves(progress[name]))
    if hosts.is_first():
        save_checkpoint(file, shapes, arrays, position)
    else:
        for _ in arrays:  # all hosts take part in bringing them together
            pass


def _times(simulation: Simulation, rounds: list[int]) -> np.ndarray:
    """The simulated clock at these rounds, the same for all agents."""
    times = np.array([simulation.schedule.turn(number).time for number in rounds])
    return np.repeat(times[:, None], simulation.schedule.agents, axis=1)


def _digest(config: RunConfig) -> str:
    """Names the experiment that a checkpoint belongs to: everything but how often to write, and how far to go."""
    free = {"checkpoint_every"} | ({"rounds"} if type(config).recorded_rounds is RunConfig.recorded_rounds else set())
    return hashlib.sha256(config.model_dump_json(exclude=free).encode()).hexdigest()[:16]


def _check_position(position: dict[str, Any], digest: str, config: RunConfig, folder: Path) -> None:
    done, length = position.get("round"), position.get("record_bytes")
    if not (isinstance(done, int) and isinstance(length, int) and 0 <= done <= config.rounds and length >= 0):
        raise InputError(f"checkpoint: '{folder / CHECKPOINT}' does not say a round and a length that can be")
    if position.get("digest") != digest:
        raise InputError(f"checkpoint: {CONFIG} in '{folder}' was changed since; begin a new run with it instead")


def _chunks(config: RunConfig, done: int, heavy: bool) -> Iterator[tuple[list[int], list[bool]]]:
    """The rounds to stop at, in pieces that one call of the jitted program plays, and which of them are recorded.

    Light work goes ten recorded rounds at a time; heavy work stops after a few rounds, so that progress shows and an
    interruption is soon heard. Padding with stops already made keeps the pieces of one length, for one compilation.
    """
    recorded = set(config.recorded_rounds())
    pace = range(done - done % HEAVY_PACE + HEAVY_PACE, config.rounds + 1, HEAVY_PACE) if heavy else range(0)
    stops = (n for n, _ in groupby(merge(sorted(n for n in recorded if n > done), pace)))
    length = 1 if heavy else LIGHT_STOPS
    while piece := list(islice(stops, length)):
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
    """Add facts to run.json; the first host does."""
    if not hosts.is_first():
        return
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
