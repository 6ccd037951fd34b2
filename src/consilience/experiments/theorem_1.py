"""Theorem 1 measured: finite hypotheses over several networks, exact Bayes, many seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray
from pydantic import Field

from consilience.config import ArmName
from consilience.engines.arm import Arm, Data, Metrics, Progress
from consilience.experiments.coins import TRUTH, Coins, arm_of, tables_for
from consilience.network import Network, check
from consilience.network_config import Complete, Grid, NetworkConfig, Ring, Star, WattsStrogatz
from consilience.record import Record
from consilience.theory import (
    certain_sample_size,
    finite_information,
    lambda_max,
    lemma_1,
    mean_log_ratio,
    rate,
    sample_size,
    stationary,
    wrong_hypotheses,
)
from consilience.theory.rate import log_ratio_bound

SETTLED = (
    10  # from this round on −log b(θ) is shown as a rate; before, the truth does not have nearly all of the belief
)


class Config(Coins):
    """Coins over several networks, and Theorem 1's promise."""

    experiment: Literal["theorem-1"] = "theorem-1"
    rounds: int = Field(10_000, ge=4)
    replicates: int = Field(1000, ge=1)
    checkpoint_every: int = Field(2000, ge=1)
    networks: dict[ArmName, NetworkConfig] = Field(
        {
            "complete": Complete(agents=9),
            "star": Star(edges=8, trust=0.5),
            "grid": Grid(rows=3, columns=3),
            "directed-ring": Ring(agents=6, directed=True),
            "small-world": WattsStrogatz(agents=12, neighbours=4, probability=0.3),
        },
        min_length=1,
    )
    delta: float = Field(0.05, gt=0, lt=1)
    epsilon: float = Field(0.75, gt=0, lt=1, description="ε of Theorem 1, as a share of K")


class Prediction(NamedTuple):
    """What the theory says about one network."""

    agents: int
    v: Float[np.ndarray, "agents"]
    gap: float
    K: float
    hardest: int
    epsilon: float
    n_paper: int
    n_corrected: int
    n_certain: int | None
    wrong: list[int]
    information: Float[np.ndarray, "agents"]


def predict(config: Config) -> dict[str, Prediction]:
    """The theory for every network."""
    return {name: _predict(config, description.fixed()) for name, description in config.networks.items()}


def _predict(config: Config, network: Network) -> Prediction:
    check(network)
    tables = tables_for(config, network.agents)
    v = stationary(network)
    gap = 1 - lambda_max(network, v)
    information = finite_information(tables, TRUTH)
    K, hardest = rate(v, information, TRUTH)
    epsilon = config.epsilon * K
    C = log_ratio_bound(tables)
    n_paper, n_corrected = (
        sample_size(C, network.agents, tables.shape[1], gap, epsilon, config.delta, version)
        for version in ("paper", "corrected")
    )
    lemma = lemma_1(network, v, gap)
    size = tables.shape[1]
    certain = (
        certain_sample_size(C, network.agents, size, lemma.sum, epsilon, config.delta) if lemma.converged else None
    )
    return Prediction(
        network.agents,
        v,
        gap,
        K,
        hardest,
        epsilon,
        n_paper,
        n_corrected,
        certain,
        wrong_hypotheses(information),
        information[:, hardest],
    )


def arms(config: Config) -> dict[str, Arm]:
    """One arm for every network."""
    predictions = predict(config)
    return {name: _arm(config, d.fixed(), predictions[name]) for name, d in config.networks.items()}


def _arm(config: Config, network: Network, theory: Prediction) -> Arm:
    wrong = jnp.array(theory.wrong)

    def measure(data: Data, progress: Progress, number: Int[Array, ""], key: PRNGKeyArray) -> Metrics:
        log_b = progress.public.log_probabilities()
        return {
            "decay": -log_b[theory.hardest] / number,
            "log_ratio": (log_b[TRUTH] - log_b[theory.hardest]) / number,
            "event": (log_b[wrong].max() < -number * (theory.K - theory.epsilon)).astype(log_b.dtype),
            "wrong": _share_of_wrong_picks(log_b, wrong),
        }

    def compare(measured: Metrics) -> Metrics:
        """The event holds where it does for every agent."""
        return {**measured, "event": jnp.full_like(measured["event"], measured["event"].min())}

    return arm_of(tables_for(config, network.agents), network, measure, compare)


def _share_of_wrong_picks(log_b: Float[Array, "k"], wrong: Int[Array, "wrong"]) -> Float[Array, ""]:
    """How likely an agent that picks the likeliest hypothesis, at random among equals, picks a wrong one."""
    tied = log_b >= log_b.max() - 1e-9
    return tied[wrong].sum() / tied.sum()


def summarise(config: Config, record: Record) -> dict[str, Any]:
    """For every network: the measured rate against K and the exact mean, and the bound's event against its promise."""
    predictions = predict(config)
    return {
        "replicates": config.replicates,
        "delta": config.delta,
        "networks": {name: _summarise(config, record, name, predictions[name]) for name in record.arms()},
    }


def exact_means(
    config: Config, name: str, theory: Prediction, rounds: Sequence[int]
) -> Float[np.ndarray, "rounds agents"]:
    """(1/n) Σ_k W^k I at each of these rounds: the exact mean of the log ratio, an agent a column."""
    totals = mean_log_ratio(config.networks[name].fixed(), theory.information, rounds)
    return np.asarray(totals / np.asarray(rounds)[:, None])


def _summarise(config: Config, record: Record, name: str, theory: Prediction) -> dict[str, Any]:
    rounds = record.rounds(name)
    decay, log_ratio = record.select(name, "decay").mean(1), record.select(name, "log_ratio").mean(1)
    expected = exact_means(config, name, theory, rounds.tolist()).mean(1)
    each = record.select(name, "log_ratio") / exact_means(config, name, theory, rounds.tolist())
    event = record.select(name, "event")[:, 0]
    promised = rounds >= theory.n_corrected
    return {
        "agents": theory.agents,
        "gap": theory.gap,
        "K": theory.K,
        "decay_measured": float(decay[-1]),
        "decay_over_K": float(decay[-1] / theory.K),
        "worst_difference_from_exact_mean": float(np.abs(decay / expected - 1)[rounds >= SETTLED].max(initial=0)),
        "worst_difference_of_log_ratio": float(np.abs(log_ratio / expected - 1).max()),
        "worst_difference_of_any_agent": float(np.abs(np.nan_to_num(each, nan=1.0, posinf=1.0) - 1).max()),
        "n_paper": theory.n_paper,
        "n_corrected": theory.n_corrected,
        "n_certain": theory.n_certain,
        "event_promised": 1 - config.delta,
        "event_measured": float(event[promised].min()) if promised.any() else None,
        "wrong_at_first": float(record.select(name, "wrong")[0].mean()),
        "wrong_at_last": float(record.select(name, "wrong")[-1].mean()),
    }
