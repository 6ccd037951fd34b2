"""An agent is four pure functions; every engine runs the same four."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from jaxtyping import Array, PRNGKeyArray

State: TypeAlias = Any
Message: TypeAlias = Any
Batch: TypeAlias = Any
Info: TypeAlias = dict[str, Array]


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


def from_update(prior: State, update: Callable[[State, Batch], State]) -> Agent:
    """An agent that keeps nothing but its belief, updates it without chance, publishes it, and adopts what it pools."""

    def init(key: PRNGKeyArray) -> State:
        return prior

    def learn(key: PRNGKeyArray, q: State, batch: Batch) -> tuple[State, Info]:
        return update(q, batch), {}

    def publish(b: State) -> Message:
        return b

    def pool(b: State, inbox: Inbox) -> State:
        return inbox.pooled

    return Agent(init, learn, publish, pool)
