"""The rounds of a run, one after another: play, record, save, until the last round or until asked to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from heapq import merge
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import jax
import numpy as np

from consilience.engines import hosts
from consilience.engines.arm import Arm, Engine, Playing, Progress
from consilience.errors import InputError
from consilience.network import Network, heard_of
from consilience.runs import folder as files
from consilience.runs.appended import NOTHING, Extent
from consilience.runs.checkpoint import load_checkpoint, save_checkpoint
from consilience.runs.description import RunConfig
from consilience.runs.folder import CHECKPOINT, CONFIG, RECORD
from consilience.runs.record import HELD_OUT_ROWS, RecordWriter, average_score

LIGHT_STOPS, HEAVY_PACE = 10, 2  # recorded rounds, or rounds, that one call of the jitted program plays
OnRound = Callable[[int, str], None]


class RunFailed(Exception):
    """A run that cannot go on; its message is one line."""


class Stopped(Exception):
    """A run that was asked to stop, and did after this round, with a checkpoint."""


class Play:
    """A run that is ready to go on: its simulations and where they stand, and its record, open on the first host."""

    def __init__(
        self,
        config: RunConfig,
        folder: Path,
        simulations: dict[str, Playing],
        progress: dict[str, Progress],
        position: dict[str, Any],
    ) -> None:
        self.config, self.folder, self.simulations, self.progress = config, folder, simulations, progress
        self.done, self.digest = position["round"], position["digest"]
        self.extent = Extent(*position["record"])  # of the record at the last checkpoint
        self.seeds = config.seeds() if config.per_seed and config.replicates > 1 else None
        heard = [heard_of(simulation.arm.hears) for simulation in simulations.values()]
        self.changing = any(not isinstance(each, Network) for each in heard)
        self.record = _opened_record(folder, self.extent)

    def play(self, on_round: OnRound, stop: Callable[[], bool]) -> None:
        """Play to the last round."""
        config, saved, words = self.config, self.done, ""
        heavy = any(simulation.arm.steps is not None for simulation in self.simulations.values())
        try:
            on_round(self.done, "compiling" if self.done < config.rounds else words)  # what the first rounds wait for
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
            _refuse_nan(name, recorded, columns, _remedy(self.config))
            if recorded and self.record:
                self.record.append(name, recorded, columns, self.seeds)
            if recorded and number == 0:
                words = _how_it_goes(columns)
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


def prepared(config: RunConfig, digest: str, arms: dict[str, Arm], folder: Path, engine: Engine) -> Play:
    """The run as it stands, with everything checked that can be."""
    simulations = {name: engine(arm, config.seeds()) for name, arm in arms.items()}
    progress, position = _where_it_stands(config, digest, simulations, folder)
    return Play(config, folder, simulations, progress, position)


def _where_it_stands(
    config: RunConfig, digest: str, simulations: dict[str, Playing], folder: Path
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

    def restored(simulation: Playing, shape: Any) -> Any:
        array = next(stored) if stored is not None else np.zeros(shape.shape, shape.dtype)
        return simulation.slots(hosts.same(array))

    progress = {name: jax.tree.map(partial(restored, simulations[name]), shapes[name]) for name in sorted(shapes)}
    return progress, position


def _times(simulation: Playing, rounds: list[int], seeds: list[int] | None) -> np.ndarray:
    """The simulated clock at these rounds, the same for all agents (and seeds)."""
    times = np.array([simulation.schedule.turn(number).time for number in rounds])
    shape = simulation.schedule.agents if seeds is None else (len(seeds), simulation.schedule.agents)
    return np.asarray(np.multiply.outer(times, np.ones(shape)))


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


def _how_it_goes(columns: dict[str, np.ndarray]) -> str:
    """The average of the first score that people look at, as the summary has it."""
    for score, form in (("accuracy", ".1%"), ("rmse", ".4g"), ("nll", ".4g")):
        for place in ("", "pooled_test_", "pooled_held_out_"):
            if (name := place + score) in columns:
                values = columns[name][-1]
                rows = columns[HELD_OUT_ROWS][-1] if "held_out" in place else np.ones(values.shape)
                average = average_score(score, values, rows)
                return "" if average is None else f"{score} {average:{form}}"
    return ""


def _remedy(config: RunConfig) -> str:
    """What helps as a rule where numbers are none any more."""
    learner = getattr(config, "learner", None)
    if learner is None:
        return ""
    words = [] if getattr(config, "precision", "") == "float64" else ["precision=float64"]
    words += [f"a smaller learner.{name}" for name in ("learning_rate", "prior_sd") if hasattr(learner, name)]
    if getattr(getattr(config, "consensus", None), "damping", 0) > 0:
        words.append("a smaller consensus.damping")
    return f"; {' or '.join(words)} may help"


def _refuse_nan(arm: str, stops: list[int], columns: dict[str, np.ndarray], hint: str = "") -> None:
    """A run whose numbers are none cannot go on; who holds no rows out to be judged by has no scores, by right."""
    unjudged = columns.get(HELD_OUT_ROWS, np.ones(1)) == 0
    for name, values in columns.items():
        bad = np.argwhere(~(np.isfinite(values) | (unjudged & ("held_out_" in name))))
        if bad.size:
            stop, agent = bad[0][0], bad[0][-1]
            raise RunFailed(f"{arm}: {name} of agent {agent} is {values[tuple(bad[0])]} at round {stops[stop]}{hint}")


def _check_position(position: dict[str, Any], digest: str, config: RunConfig, folder: Path) -> None:
    done, extent = position.get("round"), position.get("record")
    if not (isinstance(done, int) and isinstance(extent, list) and len(extent) == 2 and 0 <= done <= config.rounds):
        raise InputError(f"checkpoint: '{folder / CHECKPOINT}' does not say a round and a record that can be")
    if position.get("digest") != digest:
        raise InputError(f"checkpoint: {CONFIG} in '{folder}' was changed since; begin a new run with it instead")
