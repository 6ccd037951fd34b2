"""A run in its folder: begin it, carry it on from its last checkpoint, report it.

The folder holds `config.toml` (what to do), `run.json` (versions, seeds, status, checksums), `record.csv` (what
happened), `shares.json` (who held what), where a network changes `turns-ARM.csv` (who learns and who hears whom in
every round), `checkpoint.safetensors` (where it stands, and the one before), and, once finished, `summary.json` and
`figures/`. Of several hosts only the first touches the folder.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from heapq import merge
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import jax
import numpy as np

from consilience import folder as files
from consilience import hosts
from consilience.checkpoint import load_checkpoint, read_header, save_checkpoint
from consilience.config import RunConfig, pinned, to_toml
from consilience.engines.arm import Arm, Progress, require_memory
from consilience.engines.simulate import Simulation
from consilience.errors import InputError
from consilience.experiments import described, load, module_of
from consilience.files import sha256_of, write_atomically
from consilience.folder import CHECKPOINT, CONFIG, FIGURES, RECORD, SUMMARY, locked, new_folder
from consilience.network import Network, turns_as_csv
from consilience.provenance import provenance
from consilience.record import NOTHING, Extent, Record, RecordWriter
from consilience.strict_json import strict_json

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
    "played",
    "recorded",
    "report",
]
LIGHT_STOPS, HEAVY_PACE = 10, 2  # recorded rounds, or rounds, that one call of the jitted program plays
OnRound = Callable[[int, str], None]


class RunFailed(Exception):
    """A run that cannot go on; its message is one line."""


class Stopped(Exception):
    """A run that was asked to stop, and did after this round, with a checkpoint."""


def begin(config: RunConfig, folder: Path | None = None, command: str | None = None) -> Path:
    """Make a run's folder, or the next free one: the description and how it came about. All of it is checked first.

    `command` is what a reader can type to have the same, where it is not the one that was typed.
    """
    module = module_of(config.experiment)
    config = pinned(config)
    arms = _checked_arms(config)
    with jax.enable_x64(config.precision == "float64"):
        kept = module.shares(config) if hasattr(module, "shares") else None
    if folder is None:
        folder = new_folder(config.experiment)
    elif (folder.exists() or folder.is_symlink()) and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"--out: '{folder}' already exists; `consilience resume {folder}` carries a run on")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        if kept is not None:
            files.write_shares(folder, kept)
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
        return load(str(folder / CONFIG))
    except InputError as error:
        raise InputError(f"run: '{folder / CONFIG}': {error}") from None


def played(folder: Path) -> int:
    """The rounds that a run's last checkpoint knows of."""
    file = files.latest_checkpoint(folder)
    return int(read_header(file).position.get("round", 0)) if file else 0


def extend(folder: Path, rounds: int) -> None:
    """Let a run go on to another last round."""
    config = opened(folder)
    if type(config).recorded_rounds is not RunConfig.recorded_rounds:
        raise InputError(f"rounds: {config.experiment} spaces its records by its last round; begin a new run instead")
    if rounds < (least := max(played(folder), 1)):
        raise InputError(f"rounds: must be at least {least}, which have been played, got {rounds}")
    config = config.model_copy(update={"rounds": rounds})
    arms = _checked_arms(config)
    with locked(folder):
        _write_turns(folder, arms, rounds)
        files.write(folder, CONFIG, to_toml(config).encode())


def _checked_arms(config: RunConfig) -> dict[str, Arm]:
    """The arms of a description, where they can be had and fit into memory."""
    with jax.enable_x64(config.precision == "float64"):
        arms: dict[str, Arm] = module_of(config.experiment).arms(config)
        require_memory(arms, config.replicates, hosts.count())
    return arms


def _write_turns(folder: Path, arms: dict[str, Arm], rounds: int) -> None:
    """Where a network changes: who learns and who hears whom in every round."""
    for name, arm in arms.items():
        if not isinstance(arm.hears, Network):
            files.write(folder, f"turns-{name}.csv", turns_as_csv(arm.hears, rounds).encode())


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

    def arms_here() -> dict[str, Arm]:
        pinned(config)  # the files that this host reads are those of the run
        return _checked_arms(config)

    with jax.enable_x64(config.precision == "float64"), ExitStack() as held:
        arms = hosts.on_all(arms_here)
        hosts.from_first(lambda: held.enter_context(locked(folder)))
        hosts.from_first(lambda: files.check(folder))
        hours = hosts.from_first(lambda: files.facts(folder).get("hours"))
        run = _prepared(config, digest, arms, folder)  # what is refused leaves the folder as it is
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
    if extent == NOTHING and (folder / RECORD).exists() and (folder / RECORD).stat().st_size:
        raise InputError(f"record: nothing says how '{folder / RECORD}' should be, no checkpoint and no run.json")
    shares = files.shares(folder) if hasattr(module_of(config.experiment), "shares") else None
    return config, Record.read(folder / RECORD, extent, shares)


def report(folder: Path, to: Path | None = None) -> dict[str, Any]:
    """Read the record; write the summary and the figures anew, into the run's folder or another one."""
    from consilience.report import draw

    to = to or folder
    files.check_place(to)
    config, record = recorded(folder)
    facts = files.facts(folder)
    with jax.enable_x64(config.precision == "float64"):
        figures = draw(config, record, to / FIGURES)
        summary: dict[str, Any] = {
            "experiment": config.experiment,
            **module_of(config.experiment).summarise(config, record),
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


class _Run:
    """A run that is ready to go on: its simulations and where they stand, and its record, open on the first host."""

    def __init__(
        self,
        config: RunConfig,
        folder: Path,
        simulations: dict[str, Simulation],
        progress: dict[str, Progress],
        position: dict[str, Any],
    ) -> None:
        self.config, self.folder, self.simulations, self.progress = config, folder, simulations, progress
        self.done, self.digest = position["round"], position["digest"]
        self.extent = Extent(*position["record"])  # of the record at the last checkpoint
        self.seeds = config.seeds() if config.per_seed and config.replicates > 1 else None
        self.changing = any(not isinstance(simulation.arm.hears, Network) for simulation in simulations.values())
        self.record = _opened_record(folder, self.extent)

    def play(self, on_round: OnRound, stop: Callable[[], bool]) -> None:
        """Play to the last round."""
        config, saved, words = self.config, self.done, ""
        heavy = any(simulation.arm.steps is not None for simulation in self.simulations.values())
        try:
            on_round(self.done, words)
            for stops, measured in _chunks(config, self.done, heavy):
                words = self._play_to(stops, measured) or words
                interrupted = hosts.anywhere(stop())
                if self.done - saved >= config.checkpoint_every or self.done == config.rounds or interrupted:
                    self._save()
                    saved = self.done
                on_round(self.done, words)
                if interrupted and self.done < config.rounds:
                    raise Stopped(self.done)
        finally:
            if self.record:
                self.record.close()

    def _play_to(self, stops: list[int], measured: list[bool]) -> str:
        """Play on to each stop and record; tells in a few words how it goes."""
        words, recorded = "", [n for n, wanted in zip(stops, measured, strict=True) if wanted]
        for number, (name, simulation) in enumerate(self.simulations.items()):
            played = simulation.play(self.done + 1, stops, measured, self.progress[name])
            self.progress[name], metrics = played
            columns = _of_each_seed(metrics, measured) if self.seeds else _over_seeds(metrics, measured)
            if self.changing:
                columns["time"] = _times(simulation, recorded, self.seeds)
            _refuse_nan(name, recorded, columns)
            if recorded and self.record:
                self.record.append(name, recorded, columns, self.seeds)
            if recorded and number == 0 and "accuracy" in columns:
                words = f"accuracy {columns['accuracy'][-1].mean():.1%}"
        self.done = stops[-1]
        return words

    def _save(self) -> None:
        """Write a checkpoint. Agents are in order: it does not depend on the devices, or hosts, that made it."""
        extent = self.record.sync() if self.record else self.extent
        shapes = {name: simulation.shapes() for name, simulation in self.simulations.items()}
        # A tree made of a table has its leaves in the order of the names.
        leaves = ((self.simulations[name], jax.tree.leaves(self.progress[name])) for name in sorted(self.progress))
        arrays = (simulation.agents(leaf) for simulation, its in leaves for leaf in its)
        if hosts.is_first():
            position = {"round": self.done, "record": extent, "digest": self.digest}
            save_checkpoint(self.folder / CHECKPOINT, shapes, arrays, position)
        else:
            for _ in arrays:  # all hosts take part in bringing them together
                pass
        self.extent = extent


def _prepared(config: RunConfig, digest: str, arms: dict[str, Arm], folder: Path) -> _Run:
    """The run as it stands, with everything checked that can be."""
    simulations = {name: Simulation(arm, config.seeds()) for name, arm in arms.items()}
    progress, position = _where_it_stands(config, digest, simulations, folder)
    return _Run(config, folder, simulations, progress, position)


def _opened_record(folder: Path, extent: Extent) -> RecordWriter | None:
    """The record, on the first host."""
    opened_there: list[RecordWriter] = []

    def open_it() -> None:
        try:
            opened_there.append(RecordWriter(folder / RECORD, extent))
        except InputError as error:
            raise InputError(f"{error}; {files.way_out(folder)}") from None

    hosts.from_first(open_it)
    return opened_there[0] if opened_there else None


def _where_it_stands(
    config: RunConfig, digest: str, simulations: dict[str, Simulation], folder: Path
) -> tuple[dict[str, Progress], dict[str, Any]]:
    """Everybody's state and the position in the run: from the checkpoint, or at the start."""
    shapes = {name: simulation.shapes() for name, simulation in simulations.items()}
    stored: Iterator[np.ndarray] | None = None

    def position_of() -> dict[str, Any] | None:
        nonlocal stored
        if (file := files.latest_checkpoint(folder)) is None:
            return None
        try:
            position, stored = load_checkpoint(file, shapes)
        except InputError as error:
            raise InputError(f"{error}; {files.way_out(folder)}") from None
        _check_position(position, digest, config, folder)
        return position

    position = hosts.from_first(position_of)
    if position is None:
        progress = {name: simulation.start() for name, simulation in simulations.items()}
        return progress, {"round": 0, "record": NOTHING, "digest": digest}

    def restored(simulation: Simulation, shape: Any) -> Any:
        array = next(stored) if stored is not None else np.zeros(shape.shape, shape.dtype)
        return simulation.slots(hosts.same(array))

    progress = {name: jax.tree.map(partial(restored, simulations[name]), shapes[name]) for name in sorted(shapes)}
    return progress, position


def _times(simulation: Simulation, rounds: list[int], seeds: list[int] | None) -> np.ndarray:
    """The simulated clock at these rounds, the same for all agents (and seeds)."""
    times = np.array([simulation.schedule.turn(number).time for number in rounds])
    shape = simulation.schedule.agents if seeds is None else (len(seeds), simulation.schedule.agents)
    return np.asarray(np.multiply.outer(times, np.ones(shape)))


def _digest(config: RunConfig) -> str:
    """Names the experiment that a checkpoint belongs to: everything but how often to write, and how far to go."""
    free = {"checkpoint_every"} | ({"rounds"} if type(config).recorded_rounds is RunConfig.recorded_rounds else set())
    return sha256_of(config.model_dump_json(exclude=free).encode())[:16]


def _check_position(position: dict[str, Any], digest: str, config: RunConfig, folder: Path) -> None:
    done, extent = position.get("round"), position.get("record")
    if not (isinstance(done, int) and isinstance(extent, list) and len(extent) == 2 and 0 <= done <= config.rounds):
        raise InputError(f"checkpoint: '{folder / CHECKPOINT}' does not say a round and a record that can be")
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


def _over_seeds(metrics: dict[str, np.ndarray], measured: list[bool]) -> dict[str, np.ndarray]:
    """Means over the seeds at the measured stops, of shape (stops, agents); with several seeds, standard errors too."""
    columns: dict[str, np.ndarray] = {}
    for name, values in metrics.items():
        numbers = np.asarray(values)[measured]
        with np.errstate(over="ignore", invalid="ignore"):  # what is no number is refused by name, next
            columns[name] = numbers.mean(axis=1)
            if (seeds := numbers.shape[1]) > 1:
                columns[f"{name}_se"] = numbers.std(axis=1, ddof=1) / np.sqrt(seeds)
    return columns


def _of_each_seed(metrics: dict[str, np.ndarray], measured: list[bool]) -> dict[str, np.ndarray]:
    """What was measured of every seed at the measured stops, of shape (stops, seeds, agents)."""
    return {name: np.asarray(values)[measured] for name, values in metrics.items()}


def _refuse_nan(arm: str, stops: list[int], columns: dict[str, np.ndarray]) -> None:
    for name, values in columns.items():
        bad = np.argwhere(~np.isfinite(values))
        if bad.size:
            stop, agent = bad[0][0], bad[0][-1]
            raise RunFailed(f"{arm}: {name} of agent {agent} is {values[tuple(bad[0])]} at round {stops[stop]}")


def _note(folder: Path, **facts: Any) -> None:
    """Add facts to run.json; the first host does."""
    if hosts.is_first():
        files.note(folder, **facts)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
