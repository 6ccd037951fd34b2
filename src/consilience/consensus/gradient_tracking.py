"""Gradient tracking with local steps: shifts make every agent's descent point where all of them together would go.

With local steps (K-GT, Liu et al. 2023): agent i descends along g_i + c_i; z_i is its mean direction over the round.
Weights and directions are averaged over the neighbours, and c_i ← c_i − z_i + Σ_j W_ij z_j. Where W is doubly
stochastic Σ_i c_i stays 0, and where everybody agrees nobody moves unless all together would.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from consilience.agent import Agent, Batch, Given, Inbox, Info, Learner
from consilience.beliefs import Point
from consilience.learners.gradient import GradientOptions, GradientState
from consilience.learners.packing import Packing


class Descended(NamedTuple):
    """What is sent: the weights after a round, and the mean direction in which they went."""

    weights: Point
    direction: Point


class Tracking(NamedTuple):
    """The learner's own, and what a step along a direction of 1 would have come to in the last round."""

    own: GradientState
    length: Float[Array, ""]


def gradient_tracking(learner: Learner, packing: Packing, options: GradientOptions) -> Agent:
    """An agent of gradient steps with a shift (`gradient_learner(…, shifted=True)`), on point weights."""

    def init(given: Given) -> Tracking:
        return Tracking(learner.init(given), jnp.ones(()))

    def learn(key: PRNGKeyArray, state: Tracking, batch: Batch) -> tuple[Tracking, Info]:
        rate = options.learning_rate * options.decay**state.own.rounds
        own, info = learner.fit(key, state.own, batch)
        steps = jnp.maximum(jnp.asarray(batch.steps, rate.dtype), 1)
        return Tracking(own, rate * steps / (1 - options.momentum)), info

    def direction(state: Tracking) -> Float[Array, "size"]:
        return (state.own.prior.value - packing.flatten(state.own.weights)) / state.length

    def publish(state: Tracking) -> Descended:
        return Descended(learner.belief(state.own), Point(direction(state)))

    def pool(state: Tracking, inbox: Inbox) -> Tracking:
        heard: Descended = inbox.pooled
        turned = packing.split(heard.direction.value - direction(state))
        shift = jax.tree.map(jnp.add, state.own.shift, turned)
        own = learner.start(state.own, heard.weights, heard.weights)
        return Tracking(own._replace(shift=shift), state.length)

    return Agent(init, learn, publish, pool)
