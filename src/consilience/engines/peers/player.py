"""An arm's agent on its own data: the same four functions, keys and batches as in `simulate`, for one agent alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from consilience.agent import Inbox
from consilience.consensus.tracking import Sums, Tracked
from consilience.engines.arm import Arm, Progress, agent_key, data_key, measuring_key, round_key
from consilience.engines.peers.messages import Arrays
from consilience.engines.peers.wire.schema import Schema, named
from consilience.machine.compiling import compiled, compiler_options


class Who(NamedTuple):
    """Whose randomness it is. Given to programs, not built into them: peers of a study have the same ones."""

    seed: Int[Array, ""]
    agent: Int[Array, ""]


class Program:
    """A function that is compiled as a whole, for arguments of the shapes that it is given first, and kept by itself.

    JAX's caches may then be emptied (`memory.forget_tracing`). Done step by step, beginning and publishing would be
    dozens of programs, which take seconds to compile and much memory. `uses_up`: the argument in whose memory the
    result may be put, which is gone then; memory that is new takes time.
    """

    def __init__(self, function: Callable[..., Any], uses_up: int | None = None) -> None:
        self._function, self._uses_up = function, uses_up
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *given: Any) -> Any:
        """What the function gives; the first call compiles it."""
        if self._compiled is None:
            program = jax.jit(self._function, donate_argnums=self._uses_up, compiler_options=compiler_options())
            self._compiled = compiled(program.lower(*given))
        return self._compiled(*given)


class ArmPlayer:
    """One agent of an arm. Whom it hears is not the arm's business here; everything random follows from its number."""

    def __init__(self, arm: Arm, number: int, seed: int, double: bool = False) -> None:
        self.arm, self.number, self.seed, self._double = arm, number, seed, double
        with self._precise():
            self._who = Who(jnp.asarray(seed), jnp.asarray(number))
            self._data = jax.device_put(
                arm.of_repetition(arm.data(np.array([number]), [seed]), jnp.zeros((), jnp.int32))
            )
            self._learn, self._pool = Program(self._learnt, uses_up=1), Program(self._pooled, uses_up=0)
            self._measure = Program(self._scores)
            self._init, self._publish = Program(arm.agent.init), Program(arm.agent.publish)
            self.shapes = jax.eval_shape(arm.agent.publish, jax.eval_shape(arm.agent.init, self._given()))
        self.spent = 0.0  # seconds of computing, on its last round of learning

    def start(self) -> Any:
        """The agent's state before its first round."""
        with self._precise():
            return self._init(self._given())

    def learn(self, state: Any, number: int) -> tuple[Any, Arrays]:
        """Learn in this round; what is published, by name."""
        began = time.process_time()
        with self._precise():
            state, public = self._learn(self._data, state, self._who, jnp.asarray(number))
            said = {name: np.asarray(array) for name, array in named(public).items()}
        self.spent = time.process_time() - began
        return state, said

    def pool(self, state: Any, inbox: Arrays) -> Any:
        """Take what was heard."""
        with self._precise():
            return self._pool(state, self.tree(inbox))

    def publish(self, state: Any) -> Any:
        """What a state says, as a tree."""
        with self._precise():
            return self._publish(state)

    def measure(self, state: Any, public: Any, number: int) -> dict[str, float]:
        """Its scores after a round."""
        with self._precise():
            found = self._measure(self._data, Progress(state, public), self._who, jnp.asarray(number))
            return {name: float(value) for name, value in found.items()}

    def schema(self, wide: bool = False) -> Schema:
        """The arrays of a message; `wide`: in double precision whatever the agent computes in."""
        leaves = Schema.of(self.shapes).leaves
        return Schema(tuple(leaf._replace(dtype="float64") if wide else leaf for leaf in leaves))

    def tree(self, arrays: Arrays) -> Any:
        """Arrays by name as the message that they are of."""
        shapes = named(self.shapes)
        with self._precise():
            leaves = [jnp.asarray(np.asarray(arrays[name], shape.dtype)) for name, shape in shapes.items()]
        return jax.tree.unflatten(jax.tree.structure(self.shapes), leaves)

    def begin_sums(self, state: Any) -> Any:
        """Running sums that begin anew, as they must when those who listen are others: its own site, and itself."""
        if not isinstance(state, Tracked):
            return state
        with self._precise():
            sums = Sums(jax.tree.map(jnp.copy, state.site), jnp.ones_like(state.sums.agents))
            return state._replace(sums=sums)  # a copy: the next round is learnt in the state's own memory

    def _precise(self) -> Any:
        return jax.enable_x64(self._double)

    def _given(self) -> Any:
        """What `init` is given: what all agents share at the start, or a key of its own."""
        begins_with = self.arm.begins_with
        if begins_with is None:
            return agent_key(round_key(self.seed, 0), self.number)
        return jax.tree.map(lambda x: jnp.asarray(x[0]), begins_with([self.seed]))

    def _learnt(self, data: Any, state: Any, who: Who, number: Int[Array, ""]) -> tuple[Any, Any]:
        key = round_key(who.seed, number)
        batch = self.arm.draw(data, data_key(key), who.agent)
        state, _ = self.arm.agent.learn(agent_key(key, who.agent), state, batch)
        return state, self.arm.agent.publish(state)

    def _pooled(self, state: Any, pooled: Any) -> Any:
        return self.arm.agent.pool(state, Inbox(pooled))

    def _scores(self, data: Any, progress: Progress, who: Who, number: Int[Array, ""]) -> Any:
        key = agent_key(measuring_key(round_key(who.seed, number)), who.agent)
        return self.arm.measure(self.arm.of_agent(data, who.agent), progress, number, key)
