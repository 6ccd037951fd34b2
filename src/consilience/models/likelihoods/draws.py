"""A network's outputs under a belief over its weights: Monte Carlo, with few examples in memory's way at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, Shaped

from consilience.models.likelihoods.likelihood import Apply

CHUNK = 500  # examples at a time
WEIGHTS = 65536  # at a time: the draws of a small model are one matrix, a large model is drawn once and again


def outputs_of(
    apply: Apply, weights: Float[Array, "size"], inputs: Shaped[Array, "examples *shape"]
) -> Float[Array, "examples outputs"]:
    """f_θ(x) of every example."""
    outputs: Array = jax.lax.map(lambda chunk: apply(weights, chunk), _in_chunks(inputs))
    return outputs.reshape(-1, outputs.shape[-1])[: inputs.shape[0]]


def by_chunks(of_chunk: Callable[[Array], Any], inputs: Shaped[Array, "examples *shape"], size: int) -> Any:
    """A function of a few examples, for all of them: arrays with a row for each."""
    found = jax.lax.map(of_chunk, _in_chunks(inputs, size))
    return jax.tree.map(lambda part: part.reshape(-1, *part.shape[2:])[: inputs.shape[0]], found)


def draws_of(
    apply: Apply, belief: Any, inputs: Shaped[Array, "examples *shape"], key: PRNGKeyArray, samples: int
) -> Float[Array, "examples draws outputs"]:
    """f_θk(x) of every example and every draw θ_k of the belief.

    >>> from consilience.beliefs import Point
    >>> draws_of(lambda w, x: x * w, Point(jnp.array([2.0])), jnp.ones((5, 1)), jax.random.key(0), samples=3).shape
    (5, 3, 1)
    """

    def of_draw(own: PRNGKeyArray) -> Float[Array, "examples outputs"]:
        return outputs_of(apply, belief.sample(own, 1)[0], inputs)

    size = jax.eval_shape(lambda own: belief.sample(own, 1), key).size
    together = min(samples, max(1, WEIGHTS // size))
    drawn = jax.lax.map(of_draw, jax.random.split(key, samples), batch_size=together)
    return jnp.moveaxis(drawn, 0, 1)


def _in_chunks(inputs: Shaped[Array, "examples *shape"], most: int = CHUNK) -> Shaped[Array, "chunks chunk *shape"]:
    """Inputs in pieces whose hidden layers stay in a core's cache, the last one filled up with zeros."""
    examples = inputs.shape[0]
    size = min(examples, most)
    spare = -examples % size
    padded = jnp.concatenate([inputs, jnp.zeros((spare, *inputs.shape[1:]), inputs.dtype)]) if spare else inputs
    return padded.reshape(-1, size, *inputs.shape[1:])
