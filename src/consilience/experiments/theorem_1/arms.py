"""One arm for every network."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from consilience.engines.arm import Arm, Data, Metrics, Progress
from consilience.experiments.coins import TRUTH, arm_of, tables_for
from consilience.experiments.theorem_1.description import Config
from consilience.experiments.theorem_1.theory import Prediction, predict
from consilience.network import Network


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
