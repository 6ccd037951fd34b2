"""One round of the agents on a device (Sec. 2.1): learn, publish, hear, pool. Light agents at once, others in turn."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from consilience.agent import Batch, Inbox, Message, State
from consilience.beliefs import Edges, pool
from consilience.engines.arm import Arm, Data, Progress, agent_key, data_key
from consilience.engines.simulate.placement import AXIS, PARTS, Placement


class Round(NamedTuple):
    """A round on a device: the agents in its slots, what the plan has for them in this turn, and the round's key."""

    arm: Arm
    placement: Placement
    numbers: Int[Array, "slots"]
    turn: Any
    data: Data
    key: PRNGKeyArray

    def batch(self, agent: Int[Array, ""]) -> Batch:
        """An agent's private data of this round."""
        return self.arm.draw(self.data, data_key(self.key), agent)

    def learn(self, agent: Int[Array, ""], state: State, batch: Batch) -> State:
        """The agent's local update on a batch."""
        return self.arm.agent.learn(agent_key(self.key, agent), state, batch)[0]


def play_light(now: Round, before: Progress, everybody: bool) -> Progress:
    """Agents that are computed all at once; who does not take part keeps what it has."""
    agent, turn = now.arm.agent, now.turn

    def learn(number: Int[Array, ""], state: State) -> State:
        return now.learn(number, state, now.batch(number))

    def where(mask: Bool[Array, "slots"], new: Any, old: Any) -> Any:
        if everybody:
            return new
        return jax.tree.map(lambda x, y: jnp.where(mask.reshape(-1, *(1,) * (x.ndim - 1)), x, y), new, old)

    state = where(turn.learns, jax.vmap(learn)(now.numbers, before.state), before.state)
    public = where(turn.learns, jax.vmap(agent.publish)(state), before.public)
    said = before.said
    if said is not None:
        slots = jnp.arange(len(now.numbers))
        said = jax.tree.map(lambda x, new: x.at[slots, turn.position].set(new), said, public)
    own, sent = _said(public, said), _sent(now, _said(public, said))
    heard = own if sent is None else jax.tree.map(lambda x, y: jnp.concatenate([x, y]), own, sent)
    edges = Edges(turn.weights, turn.senders, turn.receivers, len(now.numbers))
    inbox = Inbox(pool(edges, heard))
    return Progress(where(turn.hears, jax.vmap(agent.pool)(state, inbox), state), public, said)


def play_heavy(now: Round, before: Progress) -> Progress:
    """Agents that learn one after another, in place; the others are not touched."""
    agent, placement, turn = now.arm.agent, now.placement, now.turn

    def piece(half: int, number: Int[Array, ""], at: Progress) -> Progress:
        slot, first, last = turn.work[half, number]
        state = row(at.state, slot)
        batch = now.batch(now.numbers[slot])
        some = batch.between(_step(first, batch.steps), _step(last, batch.steps))
        learnt = now.learn(now.numbers[slot], state, some)
        at = at._replace(state=with_row(at.state, learnt, slot, state))
        return at._replace(public=with_row(at.public, agent.publish(learnt), slot))

    def remember(half: int, number: Int[Array, ""], said: Any) -> Any:
        slot = turn.work[half, number, 0]

        def put(x: Array, new: Array) -> Array:
            its = lax.dynamic_update_index_in_dim(row(x, slot), row(new, slot), turn.position[slot], 0)
            return jnp.asarray(lax.dynamic_update_index_in_dim(x, its, slot, 0))

        return jax.tree.map(put, said, after.public)

    def hear(number: Int[Array, ""], states: State) -> State:
        slot, begin, end = turn.hearers[number], turn.begins[number], turn.begins[number + 1]

        def add_from(rows: Message, number: Int[Array, ""], weight: Array, total: Any) -> Any:
            return jax.tree.map(lambda x, eta: x + weight.astype(eta.dtype) * eta, total, row(rows, number))

        def add(edge: Int[Array, ""], total: Any) -> Any:
            number, weight = turn.senders[edge], turn.weights[edge]
            if sent is None:
                return add_from(own, number, weight, total)
            here = len(jax.tree.leaves(own)[0])
            from_here, from_elsewhere = partial(add_from, own, number), partial(add_from, sent, number - here)
            return lax.cond(number < here, from_here, from_elsewhere, weight, total)

        nothing = jax.tree.map(lambda x: jnp.zeros(x.shape[1:], x.dtype), own)
        inbox = Inbox(lax.fori_loop(begin, end, add, nothing))
        state = row(states, slot)
        return with_row(states, agent.pool(state, inbox), slot, state)

    after: Progress = lax.fori_loop(0, turn.pieces[0], partial(piece, 0), before)
    if placement.left:
        after = after._replace(state=_move(placement, after.state, from_first=True))
        after = lax.fori_loop(0, turn.pieces[1], partial(piece, 1), after)
        after = after._replace(state=_move(placement, after.state, from_first=False))
    if after.said is not None:  # who is cut ends its round, and is heard, where it plays its second half
        for half in range(2 if placement.left else 1):
            after = after._replace(said=lax.fori_loop(0, turn.pieces[half], partial(remember, half), after.said))
    own = _said(after.public, after.said)
    sent = _sent(now, own)
    return after._replace(state=lax.fori_loop(0, turn.hearing, hear, after.state))


def _step(part: Int[Array, ""], steps: Any) -> Any:
    """The step at which a part of the round begins: ⌊part · steps / PARTS⌋, with no number beyond 32 bits."""
    return part * (steps // PARTS) + part * (steps % PARTS) // PARTS


def _said(public: Message, said: Message | None) -> Message:
    """What a device's slots have said, a row each: the newest, or the last few of every slot."""
    return public if said is None else jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), said)


def _sent(now: Round, own: Message) -> Message | None:
    """What other devices say to agents of this one: only what is heard travels. Nothing where there are no others."""
    devices, room = now.turn.speaking.shape
    if devices == 1:
        return None

    def exchanged(x: Array) -> Array:
        mail = x[now.turn.speaking.reshape(-1)].reshape(devices, room, *x.shape[1:])
        received: Array = lax.all_to_all(mail, AXIS, split_axis=0, concat_axis=0)
        return received.reshape(-1, *x.shape[1:])

    return jax.tree.map(exchanged, own)


def _move(placement: Placement, states: State, from_first: bool) -> State:
    """Hand cut agents over: from a device's first slot to the last slot of the one before, or back."""
    pairs = [(device, device - 1) if from_first else (device - 1, device) for device in placement.left]
    source, target = (0, -1) if from_first else (-1, 0)
    takes = jnp.isin(lax.axis_index(AXIS), jnp.array([to for _, to in pairs]))

    def handed(x: Array) -> Array:
        return x.at[target].set(jnp.where(takes, lax.ppermute(x[source], AXIS, pairs), x[target]))

    return jax.tree.map(handed, states)


def from_all(placement: Placement, tree: Any) -> Any:
    """The slots of all devices, on every device."""
    if placement.mesh.size == 1:
        return tree
    return jax.tree.map(lambda x: lax.all_gather(x, AXIS, tiled=True), tree)


def row(tree: Any, number: Any) -> Any:
    """A row of every array."""
    return jax.tree.map(lambda x: lax.dynamic_index_in_dim(x, number, keepdims=False), tree)


def with_row(tree: Any, new: Any, number: Any, before: Any = None) -> Any:
    """The tree with a new row; what is the very array that was there before (a prior, unchanged) is not written."""

    def put(x: Array, its: Array, old: Array | None) -> Array:
        return x if its is old else lax.dynamic_update_index_in_dim(x, its, number, 0)

    if before is None:
        return jax.tree.map(partial(put, old=None), tree, new)
    return jax.tree.map(put, tree, new, before)
