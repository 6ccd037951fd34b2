"""Likelihoods: what a network's outputs say of the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Likelihood = Callable[[Float[Array, "batch outputs"], Array], Float[Array, "batch"]]


def log_likelihood(logits: Float[Array, "batch labels"], labels: Any) -> Float[Array, "batch"]:
    """log Softmax(y, f(x)) of each example's label."""
    of_label = labels[:, None] == jnp.arange(logits.shape[-1])  # cheaper to differentiate than a gather
    return jnp.where(of_label, jax.nn.log_softmax(logits), 0).sum(-1)
