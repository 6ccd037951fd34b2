"""One arm for every network."""

from __future__ import annotations

from jaxtyping import Array, Int, PRNGKeyArray

from consilience.engines.arm import Arm, Data, Metrics, Progress
from consilience.experiments.changing_rates.description import Config
from consilience.experiments.changing_rates.theory import Prediction, predict, schedule_of
from consilience.experiments.coins import TRUTH, arm_of, tables_for


def arms(config: Config) -> dict[str, Arm]:
    """One arm for every network."""
    return {name: _arm(config, name, theory) for name, theory in predict(config).items()}


def _arm(config: Config, name: str, theory: Prediction) -> Arm:
    def measure(data: Data, progress: Progress, number: Int[Array, ""], key: PRNGKeyArray) -> Metrics:
        weights = progress.state.log_weights
        return {"log_ratio": (weights[TRUTH] - weights[theory.hardest]) / number}

    return arm_of(tables_for(config, theory.agents), schedule_of(config.networks[name]), measure)
