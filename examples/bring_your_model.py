"""Bring a model from Flax or Equinox: anything with `init` and `apply` learns over a graph.

Nine agents on the embedded digits; the hub holds 2-9, eight edges share 0 and 1. Needs `pip install flax equinox`.

    python examples/bring_your_model.py
"""

from __future__ import annotations

from typing import Any

from consilience.machine.runtime import use_all_cores

use_all_cores()

import equinox as eqx  # noqa: E402
import flax.linen as nn  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

from consilience.data import by_label, load_dataset  # noqa: E402
from consilience.engines.arm import Arm, agent_key  # noqa: E402
from consilience.engines.simulate import Simulation  # noqa: E402
from consilience.learners import Minibatches, Options, variational  # noqa: E402
from consilience.models import Model  # noqa: E402
from consilience.network import star  # noqa: E402

ROUNDS, STEPS, BATCH = 40, 30, 10


def flax_model() -> Model:
    """A Flax module: its own `init` and `apply`, inputs made flat."""
    module: Any = nn.Sequential([nn.Dense(32), nn.relu, nn.Dense(10)])
    return Model(
        init=lambda key: module.init(key, jnp.zeros((1, 64))),
        apply=lambda parameters, x: module.apply(parameters, x.reshape(len(x), -1)),
    )


def equinox_model() -> Model:
    """An Equinox module: its arrays are the parameters, the rest stays behind."""
    _, static = eqx.partition(eqx.nn.MLP(64, 10, 32, 1, key=jax.random.key(0)), eqx.is_array)

    def init(key: jax.Array) -> Any:
        return eqx.filter(eqx.nn.MLP(64, 10, 32, 1, key=key), eqx.is_array)

    def apply(parameters: Any, x: jax.Array) -> jax.Array:
        module: Any = eqx.combine(parameters, static)
        logits: jax.Array = jax.vmap(module)(x.reshape(len(x), -1))
        return logits

    return Model(init, apply)


def accuracy_of_pooled_means(model: Model) -> float:
    """Learn over a star, then let every agent predict with the means of what it has pooled."""
    digits = load_dataset("digits")
    holders = {label: [0] if label > 1 else list(range(1, 9)) for label in range(10)}
    partition = by_label(digits.labels, holders, agents=9)
    size = int(partition.sizes().max())
    shares = jnp.stack([jnp.resize(jnp.asarray(partition.share(i)), (size,)) for i in range(9)])
    data = (jnp.asarray(digits.inputs), jnp.asarray(digits.labels), shares)

    def draw(data: tuple[jax.Array, ...], key: jax.Array, number: jax.Array) -> Minibatches:
        inputs, labels, shares = data
        chosen = jax.random.choice(agent_key(key, number), shares[number], (STEPS, BATCH))
        return Minibatches(inputs, labels, chosen, samples=STEPS * BATCH)

    initial = model.init(jax.random.key(0))
    agent = variational(model, initial, Options(learning_rate=3e-3))
    arm = Arm(agent, draw, star(8), lambda *_: {}, data=lambda agents, seeds: data, steps=STEPS)
    simulation = Simulation(arm)
    progress, _ = simulation.play(1, [ROUNDS], [False], simulation.start())
    progress = simulation.agents(progress)

    from consilience.learners.packing import packing_of

    packing = packing_of(initial)
    tests, answers = jnp.asarray(digits.test_inputs) / 255, jnp.asarray(digits.test_labels)
    right = [
        (model.apply(packing.unpack(packing.split(mean)), tests).argmax(-1) == answers).mean()
        for mean in progress.state.prior.mean[0]
    ]
    return float(jnp.stack(right).mean())


def main() -> None:
    """Print the average accuracy of both."""
    for name, model in (("Flax", flax_model()), ("Equinox", equinox_model())):
        print(f"{name:>8}: {accuracy_of_pooled_means(model):.1%} average accuracy on all ten digits")


if __name__ == "__main__":
    main()
