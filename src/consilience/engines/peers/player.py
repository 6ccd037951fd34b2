"""An arm's agent on its own data: the same four functions, keys and batches as in `simulate`, for one agent alone."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from consilience.agent import Inbox
from consilience.consensus.tracking import Sums, Tracked
from consilience.engines.arm import Arm, Progress, agent_key, data_key, measuring_key, round_key
from consilience.engines.peers.messages import Arrays
from consilience.engines.peers.wire.schema import Schema, named


class ArmPlayer:
    """One agent of an arm. Whom it hears is not the arm's business here; everything random follows from its number."""

    def __init__(self, arm: Arm, number: int, seed: int, double: bool = False) -> None:
        self.arm, self.number, self.seed, self._double = arm, number, seed, double
        with self._precise():
            self._data = jax.device_put(
                arm.of_repetition(arm.data(np.array([number]), [seed]), jnp.zeros((), jnp.int32))
            )
            self.shapes = jax.eval_shape(arm.agent.publish, self._begun())
            self._learn, self._pool, self._measure = jax.jit(self._learnt), jax.jit(self._pooled), jax.jit(self._scores)

    def start(self) -> Any:
        """The agent's state before its first round."""
        with self._precise():
            return self._begun()

    def learn(self, state: Any, number: int) -> tuple[Any, Arrays]:
        """Learn in this round; what is published, by name."""
        with self._precise():
            state, public = self._learn(self._data, state, jnp.asarray(number))
            return state, {name: np.asarray(array) for name, array in named(public).items()}

    def pool(self, state: Any, inbox: Arrays) -> Any:
        """Take what was heard."""
        with self._precise():
            return self._pool(state, self.tree(inbox))

    def publish(self, state: Any) -> Any:
        """What a state says, as a tree."""
        with self._precise():
            return self.arm.agent.publish(state)

    def measure(self, state: Any, public: Any, number: int) -> dict[str, float]:
        """Its scores after a round."""
        with self._precise():
            found = self._measure(self._data, Progress(state, public), jnp.asarray(number))
            return {name: float(value) for name, value in found.items()}

    def schema(self, wide: bool = False) -> Schema:
        """The arrays of a message; `wide`: in double precision whatever the agent computes in."""
        leaves = Schema.of(self.shapes).leaves
        return Schema(tuple(leaf._replace(dtype="float64") if wide else leaf for leaf in leaves))

    def tree(self, arrays: Arrays) -> Any:
        """Arrays by name as the message that they are of."""
        shapes = named(self.shapes)
        with self._precise():
            leaves = [jnp.asarray(np.asarray(arrays[name]), shape.dtype) for name, shape in shapes.items()]
        return jax.tree.unflatten(jax.tree.structure(self.shapes), leaves)

    def begin_sums(self, state: Any) -> Any:
        """Running sums that begin anew, as they must when those who listen are others: its own site, and itself."""
        if not isinstance(state, Tracked):
            return state
        with self._precise():
            return state._replace(sums=Sums(state.site, jnp.ones_like(state.sums.agents)))

    def _precise(self) -> Any:
        return jax.enable_x64(self._double)

    def _begun(self) -> Any:
        begins_with = self.arm.begins_with
        if begins_with is None:
            return self.arm.agent.init(agent_key(round_key(self.seed, 0), self.number))
        return self.arm.agent.init(jax.tree.map(lambda x: jnp.asarray(x[0]), begins_with([self.seed])))

    def _learnt(self, data: Any, state: Any, number: Int[Array, ""]) -> tuple[Any, Any]:
        key, me = round_key(self.seed, number), jnp.asarray(self.number)
        batch = self.arm.draw(data, data_key(key), me)
        state, _ = self.arm.agent.learn(agent_key(key, me), state, batch)
        return state, self.arm.agent.publish(state)

    def _pooled(self, state: Any, pooled: Any) -> Any:
        return self.arm.agent.pool(state, Inbox(pooled))

    def _scores(self, data: Any, progress: Progress, number: Int[Array, ""]) -> Any:
        key = agent_key(measuring_key(round_key(self.seed, number)), self.number)
        return self.arm.measure(self.arm.of_agent(data, jnp.asarray(self.number)), progress, number, key)
