"""How long a run takes on this machine: a few of its rounds are played, timed and thrown away."""

from __future__ import annotations

import time
from typing import NamedTuple

import jax

from consilience.engines.simulate import Simulation
from consilience.experiments import arms
from consilience.runs.description import RunConfig

NOT_SPEED = {"experiment", "seed", "rounds", "record_every", "record_also", "checkpoint_every", "per_seed", "watched"}


class Speed(NamedTuple):
    """Seconds that a round takes, and that recording one takes besides."""

    of_round: float
    of_record: float

    def seconds(self, config: RunConfig, done: int = 0) -> float:
        """How long the rounds that are left take."""
        recorded = sum(number > done for number in config.recorded_rounds())
        return self.of_round * (config.rounds - done) + self.of_record * recorded


def kind_of(config: RunConfig) -> str:
    """Runs of one kind have one speed: they differ in how far they go, and in whom the agents trust."""
    values = config.model_dump(mode="json", exclude=NOT_SPEED)
    for network in values.get("networks", {}).values():
        network.pop("trust", None)
    values.pop("partition", None)
    return repr(values)


def measure(config: RunConfig) -> Speed:
    """Play a few rounds."""
    total = Speed(0.0, 0.0)
    with jax.enable_x64(config.precision == "float64"):
        for arm in arms(config).values():
            simulation = Simulation(arm, config.seeds())
            total = Speed(*(mine + its for mine, its in zip(total, _of_arm(simulation), strict=True)))
    return total


def _of_arm(simulation: Simulation) -> Speed:
    """From pieces as `run` plays them: light work many stops at a time, heavy work one."""
    light = simulation.arm.steps is None
    stops = 10 if light else 1
    few, many = [(list(range(step, step * stops + 1, step)), step) for step in ((1, 10) if light else (1, 3))]
    progress = simulation.start()
    seconds = []
    for at, _ in (few, few, many):  # the same program three times; the first time it is compiled, too
        began = time.perf_counter()
        progress, _ = simulation.play(1, at, [True] * stops, progress)
        jax.block_until_ready(progress)
        seconds.append(time.perf_counter() - began)
    _, short, long = seconds
    of_round = max(long - short, 0.0) / (stops * (many[1] - few[1]))
    of_record = max(short / stops - of_round, 0.0)
    return Speed(of_round, of_record)
