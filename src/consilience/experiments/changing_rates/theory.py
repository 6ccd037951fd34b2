"""What the turns that happen say of every network."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from consilience.experiments.changing_rates.description import Config, RuleName
from consilience.experiments.coins import TRUTH, tables_for
from consilience.machine import memory
from consilience.network import Fixed, Flows, Network, Schedule, Tables, check_union
from consilience.network.following import KEPT
from consilience.theory import (
    counted_by_sites,
    counted_by_tracking,
    finite_information,
    learnt_at,
    mixing_window,
    rate,
    realised_at,
    stationary,
)

LEVEL = 0.5  # the contraction that makes a mixing window


class Prediction(NamedTuple):
    """What the turns of a schedule say: its realised centrality and rate, and what W alone would have said.

    hardest: the wrong hypothesis θ that the paper's rule rejects most slowly; everything is told of it.
    allowed: at the recorded rounds, (1/n) Σ_j n_j I_j(θ), n_j being how often agent j has learnt: the mean of
    (1/n) log q(θ*)/q(θ) for one agent that had all data which anybody has learnt from.
    exact: by rule, that mean for every agent, one a column.
    window: the most turns it took to contract to a half.
    """

    agents: int
    centrality: Float[np.ndarray, "agents"]
    K: float
    hardest: int
    K_of_W: float
    allowed: Float[np.ndarray, "rounds"]
    exact: dict[RuleName, Float[np.ndarray, "rounds agents"]]
    window: int | None


def hears_of(config: Config, network: str, rule: RuleName) -> Schedule:
    """What agents hear by a rule: beliefs, everybody's newest sites, or their parts of running sums."""
    return _hears(config.model_dump_json(), network, rule)


def predict(config: Config) -> dict[str, Prediction]:
    """The theory for every network."""
    return {name: _predict(config.model_dump_json(), name) for name in config.networks}


@lru_cache(maxsize=64)  # following all turns takes a while, and theory and arms both need it
def _hears(described: str, network: str, rule: RuleName) -> Schedule:
    config = Config.model_validate_json(described)
    hears = config.networks[network].schedule()
    if rule == "sites":
        return Tables(hears, config.rounds)
    if rule == "tracking":
        return Flows(hears, config.rounds)
    return Fixed(hears) if isinstance(hears, Network) else hears


@cache  # a run asks when it begins, when it plays and when it reports
def _predict(described: str, name: str) -> Prediction:
    config = Config.model_validate_json(described)
    schedule = hears_of(config, name, "paper")
    check_union(schedule, config.rounds)
    rounds = config.recorded_rounds()
    kept = len(rounds) * len(config.rules) + config.rounds // KEPT * len(config.rules)
    shares = float(schedule.agents) ** 2 * (schedule.most.age + 5 + kept)
    memory.require(8 * shares, f"networks: the shares of {schedule.agents:,} agents in each other's beliefs")
    information = finite_information(tables_for(config, schedule.agents), TRUTH)
    history = realised_at(schedule, rounds)
    K, hardest = rate(history[-1].centrality, information, TRUTH)
    fixed = stationary(config.networks[name].build())
    told, turns = information[:, hardest], np.array(rounds)

    def exact(rule: RuleName) -> Float[np.ndarray, "rounds agents"]:
        hears = hears_of(config, name, rule)
        counts = [after.counts for after in history]
        if isinstance(hears, Tables):
            counts = counted_by_sites(hears, rounds)
        elif isinstance(hears, Flows):
            memory.require(8 * float(hears.agents) ** 2 * (hears.most.age + 3), f"networks: sums in '{name}'")
            counts = counted_by_tracking(hears, rounds)
        means: Float[np.ndarray, "rounds agents"] = np.stack(counts) @ told / turns[:, None]
        return means

    return Prediction(
        schedule.agents,
        history[-1].centrality,
        K,
        hardest,
        float(fixed @ told),
        np.stack(learnt_at(schedule, rounds)) @ told / turns,
        {rule: exact(rule) for rule in config.rules},
        mixing_window(schedule, config.rounds, LEVEL),
    )
