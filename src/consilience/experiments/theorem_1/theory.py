"""What the theory says of every network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from consilience.experiments.coins import TRUTH, tables_for
from consilience.experiments.theorem_1.description import Config
from consilience.network import Network, check
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


def exact_means(
    config: Config, name: str, theory: Prediction, rounds: Sequence[int]
) -> Float[np.ndarray, "rounds agents"]:
    """(1/n) Σ_k W^k I at each of these rounds: the exact mean of the log ratio, an agent a column."""
    totals = mean_log_ratio(config.networks[name].fixed(), theory.information, rounds)
    return np.asarray(totals / np.asarray(rounds)[:, None])
