"""How good an agent's predictions are, and how sure it is: scores of Monte Carlo predictive distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from consilience.beliefs import MeanField

BINS = 15
CHUNK = 500  # test examples at a time
TINY = 1e-12  # floors probabilities in logarithms


class Predictive(NamedTuple):
    """P(y) of every test example (the mean softmax over draws of θ), and the mean entropy of the softmax of a draw."""

    probabilities: Float[Array, "examples labels"]
    draw_entropy: Float[Array, "examples"]


def predictive(
    apply: Callable[[Float[Array, "size"], Array], Float[Array, "examples labels"]],
    belief: MeanField,
    inputs: Array,
    key: PRNGKeyArray,
    samples: int,
) -> Predictive:
    """P(y) = (1/L) Σ_k Softmax(y, f_θk(x)) with θ_k drawn from the belief (Sec. 4.2)."""

    chunks = _in_chunks(inputs)

    def add(total: Predictive, own: PRNGKeyArray) -> tuple[Predictive, None]:
        weights = belief.sample(own, 1)[0]
        logits = jax.lax.map(lambda chunk: apply(weights, chunk), chunks)
        probabilities = jax.nn.softmax(logits.reshape(-1, logits.shape[-1])[: inputs.shape[0]])
        return jax.tree.map(jnp.add, total, Predictive(probabilities, entropy(probabilities))), None

    outputs = jax.eval_shape(apply, belief.mean, inputs)
    zero = Predictive(jnp.zeros(outputs.shape), jnp.zeros(outputs.shape[:1]))
    total, _ = jax.lax.scan(add, zero, jax.random.split(key, samples))
    mean: Predictive = jax.tree.map(lambda x: x / samples, total)
    return mean


def _in_chunks(inputs: Array) -> Array:
    """Inputs in pieces whose hidden layers stay in a core's cache, the last one filled up with zeros."""
    examples = inputs.shape[0]
    size = min(examples, CHUNK)
    spare = -examples % size
    padded = jnp.concatenate([inputs, jnp.zeros((spare, *inputs.shape[1:]), inputs.dtype)]) if spare else inputs
    return padded.reshape(-1, size, *inputs.shape[1:])


def entropy(probabilities: Float[Array, "*batch labels"]) -> Float[Array, "*batch"]:
    """−Σ p log p, in nats."""
    return -jnp.sum(probabilities * jnp.log(jnp.maximum(probabilities, TINY)), axis=-1)


def calibration_error(
    confidence: Float[Array, "examples"], correct: Float[Array, "examples"], bins: int = BINS
) -> Float[Array, ""]:
    """Expected calibration error: |accuracy − confidence| in equal bins of confidence, weighted by their examples."""
    place = jnp.clip((confidence * bins).astype(int), 0, bins - 1)
    gap = jax.ops.segment_sum(correct - confidence, place, bins)
    return jnp.sum(jnp.abs(gap)) / confidence.shape[0]


def scores(predicted: Predictive, labels: Int[Array, "examples"]) -> dict[str, Float[Array, ""]]:
    """Accuracy, NLL, Brier score, calibration error, and entropy split into aleatoric and epistemic."""
    p = predicted.probabilities
    of_label = jnp.take_along_axis(p, labels[:, None], axis=-1)[:, 0]
    correct = (p.argmax(-1) == labels).astype(p.dtype)
    total, aleatoric = entropy(p).mean(), predicted.draw_entropy.mean()
    return {
        "accuracy": correct.mean(),
        "nll": -jnp.log(jnp.maximum(of_label, TINY)).mean(),
        "brier": jnp.mean(jnp.sum(p**2, axis=-1) - 2 * of_label + 1),
        "ece": calibration_error(p.max(-1), correct),
        "entropy": total,
        "aleatoric": aleatoric,
        "epistemic": total - aleatoric,
    }


def confidence_by_label(predicted: Predictive, labels: Int[Array, "examples"], kinds: int) -> Float[Array, "kinds"]:
    """Mean probability given to the true label, over the test examples of each label."""
    of_label = jnp.take_along_axis(predicted.probabilities, labels[:, None], axis=-1)[:, 0]
    counts = jax.ops.segment_sum(jnp.ones_like(of_label), labels, kinds)
    return jax.ops.segment_sum(of_label, labels, kinds) / jnp.maximum(counts, 1)


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
