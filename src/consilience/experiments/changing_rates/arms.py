"""One arm for every network and rule."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from jaxtyping import Array, Int, PRNGKeyArray

from consilience.agent import Agent, Learner
from consilience.consensus import pooling, sites, tracking
from consilience.engines.arm import Arm, Data, Metrics, Progress
from consilience.experiments.changing_rates.description import Config, RuleName
from consilience.experiments.changing_rates.theory import Prediction, hears_of, predict
from consilience.experiments.coins import TRUTH, arm_of, tables_for


def arms(config: Config) -> dict[str, Arm]:
    """One arm for every network and rule."""
    theory = predict(config)
    return {arm: _arm(config, network, rule, theory[network]) for arm, (network, rule) in config.arms().items()}


def _arm(config: Config, network: str, rule: RuleName, theory: Prediction) -> Arm:
    def measure(data: Data, progress: Progress, number: Int[Array, ""], key: PRNGKeyArray) -> Metrics:
        weights = (progress.state if rule == "paper" else progress.state.q).log_weights
        return {"log_ratio": (weights[TRUTH] - weights[theory.hardest]) / number}

    consensus: dict[str, Callable[[Learner], Agent]] = {
        "paper": pooling,
        "sites": sites,
        "tracking": partial(tracking, agents=theory.agents),
    }
    tables = tables_for(config, theory.agents)
    return arm_of(tables, hears_of(config, network, rule), measure, consensus=consensus[rule])
