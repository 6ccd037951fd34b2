"""Rates in networks that change: what the realised W_t predict, next to what is measured."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray
from pydantic import Field

from consilience import memory
from consilience.config import ArmName
from consilience.engines.arm import Arm, Data, Metrics, Progress
from consilience.experiments.coins import TRUTH, Coins, arm_of, tables_for
from consilience.network import Fixed, Network, Schedule, check_union
from consilience.network_config import (
    Changes,
    Clocks,
    Complete,
    Grid,
    NetworkConfig,
    RotatingStarNetwork,
    Star,
    WattsStrogatz,
)
from consilience.record import Record
from consilience.theory import finite_information, mixing_window, rate, realised_at, stationary

LEVEL = 0.5  # the contraction that makes a mixing window


class Config(Coins):
    """Coins over networks that change."""

    experiment: Literal["changing-rates"] = "changing-rates"
    rounds: int = Field(2000, ge=4)
    replicates: int = Field(1000, ge=1)
    points: int = Field(
        16, ge=2, le=10**5, description="recorded rounds, evenly spaced in log n, from round 4 to the last"
    )
    checkpoint_every: int = Field(1000, ge=1)
    networks: dict[ArmName, NetworkConfig] = Field(
        {
            "rotating star": RotatingStarNetwork(edges=8, at_once=2),
            "lossy star": Star(edges=8, trust=0.5, changes=Changes(loss=0.6)),
            "gossip on a grid": Grid(rows=3, columns=3, changes=Changes(gossip="matching")),
            "churn": WattsStrogatz(agents=12, neighbours=4, probability=0.3, changes=Changes(up=20, down=20)),
            "own clocks": Complete(agents=9, changes=Changes(clocks=Clocks(spread=0.7, delay=0.5))),
        },
        min_length=1,
    )


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


def arms(config: Config) -> dict[str, Arm]:
    """One arm for every network."""
    return {name: _arm(config, name, theory) for name, theory in predict(config).items()}


def _arm(config: Config, name: str, theory: Prediction) -> Arm:
    def measure(data: Data, progress: Progress, number: Int[Array, ""], key: PRNGKeyArray) -> Metrics:
        weights = progress.state.log_weights
        return {"log_ratio": (weights[TRUTH] - weights[theory.hardest]) / number}

    return arm_of(tables_for(config, theory.agents), schedule_of(config.networks[name]), measure)


def summarise(config: Config, record: Record) -> dict[str, Any]:
    """For every network: the measured rate against the realised one, and what W alone would have said."""
    theory = predict(config)
    return {
        "replicates": config.replicates,
        "rounds": min(int(record.rounds(name)[-1]) for name in record.arms()),
        "networks": {name: _summarise(record, name, theory[name]) for name in record.arms()},
    }


def _summarise(record: Record, name: str, theory: Prediction) -> dict[str, Any]:
    measured = record.select(name, "log_ratio")
    exact = theory.exact[: len(measured)]  # as far as it has been played
    row = {
        "agents": theory.agents,
        "K_of_W": theory.K_of_W,
        "K_realised": theory.K,
        "rate_measured": float(measured[-1].mean()),
        "measured_over_realised": float(measured[-1].mean() / theory.K) if theory.K else None,
        "worst_difference_of_any_agent": _worst(measured[-1], exact[-1]),
        "realised_centrality": theory.centrality.tolist(),
        "mixing_window": theory.window,
    }
    if "log_ratio_se" in record.columns:  # with several seeds
        error = record.select(name, "log_ratio_se")
        off = np.abs(measured - exact) / np.maximum(error, 1e-300)
        row["worst_in_standard_errors"] = float(off[error > 0].max(initial=0))
    return row


def _worst(measured: Float[np.ndarray, "agents"], exact: Float[np.ndarray, "agents"]) -> float | None:
    """The largest relative difference, of agents that have heard anything yet."""
    some = exact > 0
    return float(np.abs(measured[some] / exact[some] - 1).max()) if some.any() else None
