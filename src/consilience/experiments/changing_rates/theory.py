"""What the turns that happen say of every network."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from consilience.experiments.changing_rates.description import Config
from consilience.experiments.coins import TRUTH, tables_for
from consilience.machine import memory
from consilience.network import Fixed, Network, Schedule, check_union
from consilience.theory import finite_information, mixing_window, rate, realised_at, stationary

LEVEL = 0.5  # the contraction that makes a mixing window


class Prediction(NamedTuple):
    """What the turns of a schedule say: its realised centrality and rate, and what W alone would have said.

    exact: the exact mean of (1/n) log q(θ*)/q(θ) at the recorded rounds, an agent a column.
    window: the most turns it took to contract to a half.
    """

    agents: int
    centrality: Float[np.ndarray, "agents"]
    K: float
    hardest: int
    K_of_W: float
    exact: Float[np.ndarray, "rounds agents"]
    window: int | None


def schedule_of(description: Any) -> Schedule:
    """How a described network changes."""
    hears = description.schedule()
    return Fixed(hears) if isinstance(hears, Network) else hears


def predict(config: Config) -> dict[str, Prediction]:
    """The theory for every network."""
    return {name: _predict(config.model_dump_json(), name) for name in config.networks}


@cache  # a run asks when it begins, when it plays and when it reports
def _predict(described: str, name: str) -> Prediction:
    config = Config.model_validate_json(described)
    schedule = schedule_of(config.networks[name])
    check_union(schedule, config.rounds)
    rounds = config.recorded_rounds()
    shares = float(schedule.agents) ** 2 * (schedule.most.age + 5 + len(rounds))
    memory.require(8 * shares, f"networks: the shares of {schedule.agents:,} agents in each other's beliefs")
    information = finite_information(tables_for(config, schedule.agents), TRUTH)
    history = realised_at(schedule, rounds)
    K, hardest = rate(history[-1].centrality, information, TRUTH)
    fixed = stationary(config.networks[name].build())
    exact = [after.mean_log_ratio(information[:, hardest]) / after.turns for after in history]
    return Prediction(
        schedule.agents,
        history[-1].centrality,
        K,
        hardest,
        float(fixed @ information[:, hardest]),
        np.stack(exact),
        mixing_window(schedule, config.rounds, LEVEL),
    )
