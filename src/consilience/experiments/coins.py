"""Agents that toss coins: finitely many hypotheses, of which every agent can reject some, and exact Bayes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray
from pydantic import Field

from consilience.agent import Agent, Learner
from consilience.beliefs import Categorical
from consilience.consensus import pooling
from consilience.engines.arm import Arm, Data, Metrics, Progress, agent_key
from consilience.errors import InputError
from consilience.learners import exact_learner
from consilience.network import Network, Schedule
from consilience.runs.description import RunConfig
from consilience.theory.information import check_likelihoods

TRUTH = 0


class Coins(RunConfig):
    """Every agent tosses a coin that is bent under one hypothesis only; hypothesis 0 is true."""

    points: int = Field(
        24, ge=2, le=10**5, description="recorded rounds, evenly spaced in log n, from round 4 to the last"
    )
    hypotheses: int = Field(4, ge=2, description="|Θ|; wrong hypothesis k is told from the truth by agents j ≡ k−1")
    straight: float = Field(0.1, gt=0, lt=1, description="probability of outcome 1 where the hypothesis says nothing")
    bent: float = Field(0.9, gt=0, lt=1, description="probability of outcome 1 where the hypothesis bends the coin")
    likelihoods: list[list[list[float]]] | None = Field(
        None, description="own tables ℓ_j(y|θ) instead: agents × hypotheses × outcomes"
    )

    def recorded_rounds(self) -> list[int]:
        """Evenly spaced in log n."""
        return [int(n) for n in np.unique(np.geomspace(4, self.rounds, self.points).round().astype(int))]


class Outcome(NamedTuple):
    """What one agent saw in one round."""

    agent: Int[Array, ""]
    y: Int[Array, ""]


def tables_for(config: Coins, agents: int) -> Float[np.ndarray, "agents hypotheses outcomes"]:
    """ℓ_j(y | θ) for every agent."""
    if config.likelihoods is not None:
        try:
            tables = np.array(config.likelihoods, dtype=np.float64)
        except ValueError:
            raise InputError("likelihoods: every agent needs the same number of hypotheses and outcomes") from None
        if tables.ndim != 3 or not tables.size:
            raise InputError("likelihoods: must be agents × hypotheses × outcomes")
        if len(tables) != agents:
            raise InputError(f"likelihoods: must have a table for each of {agents} agents, got {len(tables)}")
        check_likelihoods(tables)
        return tables
    if agents < config.hypotheses - 1:
        raise InputError(
            f"hypotheses: {config.hypotheses - 1} wrong ones need as many agents to reject them, got {agents} agents"
        )
    bends = np.arange(agents)[:, None] % (config.hypotheses - 1) + 1 == np.arange(config.hypotheses)
    one = np.where(bends, config.bent, config.straight)
    return np.stack([1 - one, one], axis=-1)


def arm_of(
    tables: Float[np.ndarray, "agents hypotheses outcomes"],
    hears: Network | Schedule,
    measure: Callable[[Data, Progress, Int[Array, ""], PRNGKeyArray], Metrics],
    compare: Callable[[Metrics], Metrics] = lambda measured: measured,
    consensus: Callable[[Learner], Agent] = pooling,
) -> Arm:
    """Agents that see an outcome a round under the truth and apply Bayes' rule, by any consensus."""
    log_tables, below = jnp.log(jnp.array(tables)), jnp.cumsum(jnp.array(tables)[:, TRUTH], axis=-1)[:, :-1]

    def draw(data: Data, key: PRNGKeyArray, number: Int[Array, ""]) -> Outcome:
        # By the distribution function: four times cheaper than jax.random.categorical, which takes logarithms.
        return Outcome(number, jnp.sum(jax.random.uniform(agent_key(key, number)) >= below[number]))

    def log_likelihood(seen: Outcome) -> Float[Array, "hypotheses"]:
        return log_tables[seen.agent, :, seen.y]

    learner = exact_learner(Categorical.uniform(tables.shape[1]), log_likelihood)
    return Arm(consensus(learner), draw, hears, measure, compare)
