"""An agent is four pure functions; every engine runs the same four. A learner and a consensus make one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

State: TypeAlias = Any
Message: TypeAlias = Any
Batch: TypeAlias = Any
Info: TypeAlias = dict[str, Array]
Own: TypeAlias = Any
Given: TypeAlias = Any


class Inbox(NamedTuple):
    """What an agent heard in a round, already weighted by its row of W.

    `pooled` is Σ_j W_ij m_j over the natural parameters m_j of the messages. How it comes about (a sparse product in a
    simulation, messages from sockets between peers) is the engine's business.
    """

    pooled: Message


class Agent(NamedTuple):
    """A learning rule.

    init(key) -> state: the belief and whatever else the agent keeps to itself. In the place of its own key it may be
    given what all agents share at the start (`engines.arm.Arm.begins_with`).
    learn(key, state, batch) -> state, info: the local update on private data (eqs. 2 and 3).
    publish(state) -> message: the belief b_i; the only thing that ever leaves an agent.
    pool(state, inbox) -> state: the consensus step (eq. 4).
    """

    init: Callable[[PRNGKeyArray], State]
    learn: Callable[[PRNGKeyArray, State, Batch], tuple[State, Info]]
    publish: Callable[[State], Message]
    pool: Callable[[State, Inbox], State]


class Learner(NamedTuple):
    """Bayes' rule on private data (eqs. 2 and 3): from a prior to a belief. A consensus makes an agent of it.

    prior(given) -> belief: before any data. `given` is what all agents share at the start, or the agent's own key.
    init(given) -> own: what the agent keeps to itself: a prior, and where its learning stands.
    fit(key, own, batch) -> own, info: learn from a batch, with the prior that it has.
    belief(own) -> b: what is believed after that.
    start(own, prior, q) -> own: learn from this prior next, and begin at q, what is believed by now.
    adopt(own) -> own: believe the prior, having nothing to learn from: b = q minimises KL(b ‖ q).
    reuses: whether every round's data is the same again. If so, what it said before must not count in the prior from
    which it is learnt from anew; if not, every batch is new evidence, and comes to what was believed.
    """

    prior: Callable[[Given], Any]
    init: Callable[[Given], Own]
    fit: Callable[[PRNGKeyArray, Own, Batch], tuple[Own, Info]]
    belief: Callable[[Own], Any]
    start: Callable[[Own, Any, Any], Own]
    adopt: Callable[[Own], Own]
    reuses: bool


def adopting(learner: Learner) -> Learner:
    """The same learner; where a round's batch has no steps, there being no data, what is believed is the prior."""

    def fit(key: PRNGKeyArray, own: Own, batch: Batch) -> tuple[Own, Info]:
        learnt, info = learner.fit(key, own, batch)
        nothing = batch.steps == 0
        return jax.tree.map(lambda new, old: jnp.where(nothing, old, new), learnt, learner.adopt(own)), info

    return learner._replace(fit=fit)


def streaming(prior: Any, update: Callable[[Any, Batch], Any]) -> Learner:
    """A learner that keeps nothing but its belief, and updates it by new data without chance."""

    def same(given: Given) -> Any:
        return prior

    def fit(key: PRNGKeyArray, q: Any, batch: Batch) -> tuple[Any, Info]:
        return update(q, batch), {}

    def belief(b: Any) -> Any:
        return b

    def start(b: Any, prior: Any, q: Any) -> Any:
        return prior

    return Learner(same, same, fit, belief, start, belief, reuses=False)
