"""Tracking: everybody's sites summed by running sums. Only sums are seen, and memory does not grow with the network."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from consilience.agent import Agent, Batch, Given, Inbox, Info, Learner, Own
from consilience.consensus.evidence import at_least, checked_damping, nothing, plus
from consilience.consensus.sites import started, updated

LEAST = 1e-30  # part of an agent from which all evidence is estimated: below, parts are rounding


class Sums(NamedTuple):
    """A part of all evidence, and of the number of agents: over all agents and all that is on the way, Σ t_j and N."""

    evidence: Any
    agents: Float[Array, ""]


class Tracked(NamedTuple):
    """What an agent keeps: its learner's own, its site t_i, the first prior, q_i, and its part of the sums.

    learnt: whether it has learnt since it last pooled. floored: the share of coordinates that had to be kept from
    losing their precision.
    """

    own: Own
    site: Any
    first: Any
    q: Any
    sums: Sums
    learnt: Float[Array, ""]
    floored: Float[Array, ""]


def tracking(learner: Learner, agents: int, damping: float = 1.0) -> Agent:
    """An agent that gives its part of all evidence away in parts, with what is new in its own site, and takes others'.

    State: z = t_i, ω = 1. It publishes (z + t_i' − t_i, ω), keeps nothing, and takes its own part and its part of all
    that its neighbours have published since it last heard them (`network.flows.Flows`). What is lost is only late. It
    believes the prior times the sites' product to its estimate, N z / ω: where all evidence is mixed, that of all data.
    Until it has mixed, what is new in a site counts N / ω times. So who has a small part of the agents takes on what it
    learns from the same data by as much less, and the rest in later rounds.
    """
    damping = checked_damping(learner, damping)

    def renewed(state: Tracked) -> tuple[Any, Float[Array, ""]]:
        slowed = damping * jnp.minimum(1.0, state.sums.agents) if learner.reuses else damping
        return updated(learner, slowed, state)

    def init(given: Given) -> Tracked:
        prior = learner.prior(given)
        sums = Sums(nothing(prior), jnp.ones(()))
        return Tracked(learner.init(given), nothing(prior), prior, prior, sums, jnp.zeros(()), jnp.zeros(()))

    def learn(key: PRNGKeyArray, state: Tracked, batch: Batch) -> tuple[Tracked, Info]:
        own, info = learner.fit(key, state.own, batch)
        return state._replace(own=own, learnt=jnp.ones(())), info

    def publish(state: Tracked) -> Sums:
        site, _ = renewed(state)
        return Sums(plus(state.sums.evidence, plus(site, state.site, -1.0)), state.sums.agents)

    def pool(state: Tracked, inbox: Inbox) -> Tracked:
        site, floored = renewed(state)
        given_away = state.learnt > 0  # who has learnt has published, and its own part comes back in its inbox
        kept = jax.tree.map(lambda x: jnp.where(given_away, 0, x), state.sums)
        sums: Sums = plus(kept, inbox.pooled)
        some = sums.agents > LEAST  # who gave all away for long, and heard nobody, knows no better than before
        estimate = plus(state.first, sums.evidence, agents / jnp.where(some, sums.agents, 1.0))
        believed = jax.tree.map(lambda new, old: jnp.where(some, new, old), estimate, state.q)
        q, low = at_least(believed, state.first)
        own, raised = started(learner, state.own, state.first, site, q)
        floored = jnp.maximum(floored, jnp.maximum(low, raised))
        return Tracked(own, site, state.first, q, sums, jnp.zeros(()), floored)

    return Agent(init, learn, publish, pool)
