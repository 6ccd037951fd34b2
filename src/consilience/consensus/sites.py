"""Sites: partitioned inference without a server. Everybody keeps the newest site of everybody that has reached it."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from consilience.agent import Agent, Batch, Given, Inbox, Info, Learner, Own
from consilience.consensus.evidence import Damping, at_least, checked_damping, nothing, plus, renewed


class Sited(NamedTuple):
    """What an agent keeps: its learner's own, its site t_i, the first prior, and q_i, that times all sites.

    learnt: whether it has learnt since it last pooled. floored: the share of coordinates that had to be kept from
    losing their precision.
    """

    own: Own
    site: Any
    first: Any
    q: Any
    learnt: Float[Array, ""]
    floored: Float[Array, ""]


def sites(learner: Learner, damping: float = 1.0) -> Agent:
    """An agent that publishes what its own data says, and believes the prior times everybody's newest site.

    The posterior of all data is prior · Π_j t_j. An inbox holds Σ_j t_j over all agents of whom the newest version has
    arrived at any distance (`network.tables.Tables`), each with weight 1: every agent's data counts once.

    >>> from consilience.beliefs import Gaussian
    >>> from consilience.learners import Observations
    >>> from consilience.learners.conjugate import conjugate_learner
    >>> agent = sites(conjugate_learner(Gaussian.from_moments(jnp.zeros(1), jnp.eye(1)), noise=1.0))
    >>> key = jax.random.key(0)
    >>> state, _ = agent.learn(key, agent.init(key), Observations(jnp.ones((3, 1)), jnp.ones(3)))
    >>> twice = jax.tree.map(lambda site: 2 * site, agent.publish(state))  # somebody else saw the same
    >>> round(float(agent.pool(state, Inbox(twice)).q.mean[0]), 4)
    0.8571
    """
    damping = checked_damping(learner, damping)

    def init(given: Given) -> Sited:
        prior = learner.prior(given)
        return Sited(learner.init(given), nothing(prior), prior, prior, jnp.zeros(()), jnp.zeros(()))

    def learn(key: PRNGKeyArray, state: Sited, batch: Batch) -> tuple[Sited, Info]:
        own, info = learner.fit(key, state.own, batch)
        return state._replace(own=own, learnt=jnp.ones(())), info

    def publish(state: Sited) -> Any:
        return updated(learner, damping, state)[0]

    def pool(state: Sited, inbox: Inbox) -> Sited:
        site, floored = updated(learner, damping, state)
        q = plus(state.first, inbox.pooled)
        own, raised = started(learner, state.own, state.first, site, q)
        return Sited(own, site, state.first, q, jnp.zeros(()), jnp.maximum(floored, raised))

    return Agent(init, learn, publish, pool)


def updated(learner: Learner, damping: Damping, state: Any) -> tuple[Any, Float[Array, ""]]:
    """An agent's site: as it was, or, where it has learnt since it pooled, with what it learnt."""
    new, floored = renewed(state.site, learner.belief(state.own), state.q, damping)
    learnt = state.learnt > 0
    return jax.tree.map(lambda x, y: jnp.where(learnt, x, y), new, state.site), jnp.where(learnt, floored, 0)


def started(learner: Learner, own: Own, first: Any, site: Any, q: Any) -> tuple[Own, Float[Array, ""]]:
    """The learner at its next round: with the cavity q / t_i as its prior, where it learns from the same data again."""
    if not learner.reuses:
        return learner.start(own, q, q), jnp.zeros(())
    cavity, raised = at_least(plus(q, site, -1.0), first)
    return learner.start(own, cavity, q), raised
