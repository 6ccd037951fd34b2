"""How good predictions are, and how sure: what scores of any likelihood are made of."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

BINS = 15
TINY = 1e-12  # floors probabilities in logarithms


def average(values: Float[Array, "examples"], weights: Float[Array, "examples"] | None = None) -> Float[Array, ""]:
    """The mean over examples, each counted with its weight; one of weight 0 is not looked at.

    >>> average(jnp.array([1.0, 3.0, jnp.nan]), jnp.array([1.0, 1.0, 0.0])).item()
    2.0
    """
    if weights is None:
        return values.mean()
    return jnp.sum(jnp.where(weights > 0, values * weights, 0)) / weights.sum()


def entropy(probabilities: Float[Array, "*batch labels"]) -> Float[Array, "*batch"]:
    """−Σ p log p, in nats."""
    return -jnp.sum(probabilities * jnp.log(jnp.maximum(probabilities, TINY)), axis=-1)


def calibration_error(
    confidence: Float[Array, "examples"],
    correct: Float[Array, "examples"],
    bins: int = BINS,
    weights: Float[Array, "examples"] | None = None,
) -> Float[Array, ""]:
    """Expected calibration error: |accuracy − confidence| in equal bins of confidence, weighted by their examples."""
    place = jnp.clip((confidence * bins).astype(int), 0, bins - 1)
    excess = correct - confidence
    if weights is not None:
        excess = jnp.where(weights > 0, excess * weights, 0)
    gap = jax.ops.segment_sum(excess, place, bins)
    return jnp.sum(jnp.abs(gap)) / (confidence.shape[0] if weights is None else weights.sum())


def auroc(usual: Float[Array, "usual"], strange: Float[Array, "strange"]) -> Float[Array, ""]:
    """How often a strange example has a higher score than a usual one, of all pairs; a tie counts half.

    >>> auroc(jnp.array([0.0, 1.0, 1.0]), jnp.array([1.0, 2.0])).round(4).item()  # two of six pairs are ties
    0.8333
    """
    in_order = jnp.sort(usual)
    below, up_to = (jnp.searchsorted(in_order, strange, side=side) for side in ("left", "right"))
    return jnp.mean((below + up_to).astype(usual.dtype) / (2 * usual.shape[0]))


def confusion(
    choices: Int[Array, "examples"], labels: Int[Array, "examples"], kinds: int
) -> Float[Array, "kinds kinds"]:
    """Of the test examples of each label (row), the share that is taken for each label (column)."""
    pairs = jax.ops.segment_sum(jnp.ones(labels.shape), labels * kinds + choices, kinds * kinds).reshape(kinds, kinds)
    return pairs / jnp.maximum(pairs.sum(axis=1, keepdims=True), 1)


def disagreement(choices: Int[Array, "agents examples"], kinds: int) -> Float[Array, "agents"]:
    """The share of examples on which an agent's choice differs from another agent's, averaged over the others."""
    agents = choices.shape[0]
    votes = jax.nn.one_hot(choices, kinds).sum(0)  # examples × labels
    with_me = jnp.take_along_axis(votes[None], choices[..., None], axis=-1)[..., 0] - 1
    return 1 - with_me.mean(-1) / max(agents - 1, 1) if agents > 1 else jnp.zeros(1)
