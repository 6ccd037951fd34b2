"""Random order without sorting: a keyed permutation of 0 … n−1, evaluated only where it is needed.

An epoch of an agent with 47,335 examples may use 1,550 of them. Sorting random keys would touch all of them every
epoch; a Feistel network is a bijection that can be asked for its first 1,550 values, and n can differ between agents
without changing the program.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray, UInt32

_ROUNDS = 4


def shuffled(key: PRNGKeyArray, places: Int[Array, "places"], n: int | Int[Array, ""]) -> Int[Array, "places"]:
    """The permutation's values at these places (each below n): distinct places have distinct values, all below n.

    The bijection acts on the smallest 2^2h ≥ n numbers; what falls outside 0 … n−1 is permuted again until it is in.

    >>> sorted(shuffled(jax.random.key(0), jnp.arange(7), 7).tolist())
    [0, 1, 2, 3, 4, 5, 6]
    """
    n = jnp.asarray(n, jnp.uint32)
    half = (32 - jax.lax.clz(jnp.maximum(n, 2) - 1) + 1) // 2
    mask = (jnp.uint32(1) << half) - 1
    words = jax.random.bits(key, (_ROUNDS,), jnp.uint32)

    def permute(x: UInt32[Array, "places"]) -> UInt32[Array, "places"]:
        left, right = x >> half, x & mask
        for word in words:
            left, right = right, left ^ (_mixed(right ^ word) & mask)
        return jnp.asarray((left << half) | right)

    def walk(x: UInt32[Array, "places"]) -> UInt32[Array, "places"]:
        return jnp.where(x < n, x, permute(x))

    inside = jax.lax.while_loop(lambda x: (x >= n).any(), walk, permute(places.astype(jnp.uint32)))
    return jnp.asarray(inside, jnp.int32)


def _mixed(x: UInt32[Array, "places"]) -> UInt32[Array, "places"]:
    x = (x ^ (x >> 16)) * jnp.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * jnp.uint32(0x846CA68B)
    return x ^ (x >> 16)
