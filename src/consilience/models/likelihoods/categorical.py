"""Labels: a network gives a logit for each, and the softmax of the logits is their probability."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from consilience.errors import InputError, brief
from consilience.models.likelihoods.draws import by_chunks, outputs_of
from consilience.models.likelihoods.likelihood import Apply, Told
from consilience.models.networks import Model
from consilience.models.scores import TINY, average, calibration_error, entropy

AT_ONCE = 100  # examples whose outputs, of all draws, stay in a core's cache


class Predictive(NamedTuple):
    """P(y) of every example (the mean over draws of θ), and the mean entropy of the probabilities of a draw."""

    probabilities: Float[Array, "examples labels"]
    draw_entropy: Float[Array, "examples"]


@dataclass(frozen=True)
class Categorical:
    """y ~ Softmax(f_θ(x)), with an output for each label.

    >>> likelihood = Categorical(("cat", "dog", "owl"))
    >>> likelihood.log_density(jnp.zeros((1, 3)), jnp.array([2])).round(4).tolist()  # −log 3
    [-1.0986]
    >>> told = likelihood.told(Predictive(jnp.array([[0.25, 0.5, 0.25]]), jnp.zeros(1)))
    >>> told["prediction"].item(), told["p_cat"].item()
    ('dog', 0.25)
    """

    label_names: tuple[str, ...]
    concave: ClassVar[bool] = True
    name: ClassVar[str] = "categorical"

    def __post_init__(self) -> None:
        require_distinct(self.label_names)

    @property
    def outputs(self) -> int:
        """One for each label."""
        return len(self.label_names)

    def model(self, network: Model) -> Model:
        """The network."""
        return network

    def log_density(self, outputs: Float[Array, "batch labels"], targets: Int[Array, "batch"]) -> Float[Array, "batch"]:
        """log Softmax(y, f(x)) of each example's label."""
        return log_likelihood(outputs, targets)

    def probabilities(self, outputs: Float[Array, "examples labels"]) -> Float[Array, "examples labels"]:
        """Softmax(y, f(x)) of every label."""
        return jax.nn.softmax(outputs)

    def predictive(self, apply: Apply, belief: Any, inputs: Array, key: PRNGKeyArray, samples: int) -> Predictive:
        """P(y) = (1/L) Σ_k Softmax(y, f_θk(x)) with θ_k drawn from the belief (Sec. 4.2)."""
        return mean_over_draws(self.probabilities, apply, belief, inputs, key, samples)

    def scores(
        self, predicted: Predictive, targets: Int[Array, "examples"], weights: Float[Array, "examples"] | None = None
    ) -> dict[str, Float[Array, ""]]:
        """Those of `label_scores`."""
        return label_scores(predicted, targets, weights)

    def told(self, predicted: Predictive, level: float = 0.9) -> Told:
        """The likeliest label, the probability of each, and the entropy in two parts; there is no interval."""
        return told_of_labels(predicted, self.label_names)


def log_likelihood(logits: Float[Array, "batch labels"], labels: Any) -> Float[Array, "batch"]:
    """log Softmax(y, f(x)) of each example's label."""
    of_label = labels[:, None] == jnp.arange(logits.shape[-1])  # cheaper to differentiate than a gather
    return jnp.where(of_label, jax.nn.log_softmax(logits), 0).sum(-1)


def mean_over_draws(
    probabilities_of: Callable[[Float[Array, "examples outputs"]], Float[Array, "examples labels"]],
    apply: Apply,
    belief: Any,
    inputs: Array,
    key: PRNGKeyArray,
    samples: int,
) -> Predictive:
    """Mean probabilities, and mean entropy of the probabilities, over draws that are made one after another."""

    def of_draw(own: PRNGKeyArray) -> Predictive:
        probabilities = probabilities_of(outputs_of(apply, belief.sample(own, 1)[0], inputs))
        return Predictive(probabilities, entropy(probabilities))

    def add(total: Predictive, own: PRNGKeyArray) -> tuple[Predictive, None]:
        return jax.tree.map(jnp.add, total, of_draw(own)), None

    zero = jax.tree.map(lambda like: jnp.zeros(like.shape), jax.eval_shape(of_draw, key))
    total, _ = jax.lax.scan(add, zero, jax.random.split(key, samples))
    mean: Predictive = jax.tree.map(lambda x: x / samples, total)
    return mean


def mean_over_draws_at_once(
    probabilities_of: Callable[[Float[Array, "examples outputs"]], Float[Array, "examples labels"]],
    apply: Apply,
    belief: Any,
    inputs: Array,
    key: PRNGKeyArray,
    samples: int,
) -> Predictive:
    """The same, up to rounding, with all draws of a small model as one matrix: half the time for many examples."""
    drawn = jax.vmap(lambda own: belief.sample(own, 1)[0])(jax.random.split(key, samples))

    def of_chunk(chunk: Array) -> Predictive:
        probabilities = jax.vmap(lambda weights: probabilities_of(apply(weights, chunk)))(drawn)
        return Predictive(probabilities.mean(0), entropy(probabilities).mean(0))

    found: Predictive = by_chunks(of_chunk, inputs, AT_ONCE)
    return found


def label_scores(
    predicted: Predictive, labels: Int[Array, "examples"], weights: Float[Array, "examples"] | None = None
) -> dict[str, Float[Array, ""]]:
    """Accuracy, NLL, Brier score, calibration error, and entropy split into aleatoric and epistemic."""
    p = predicted.probabilities
    of_label = jnp.take_along_axis(p, labels[:, None], axis=-1)[:, 0]
    correct = (p.argmax(-1) == labels).astype(p.dtype)
    total, aleatoric = average(entropy(p), weights), average(predicted.draw_entropy, weights)
    return {
        "accuracy": average(correct, weights),
        "nll": average(-jnp.log(jnp.maximum(of_label, TINY)), weights),
        "brier": average(jnp.sum(p**2, axis=-1) - 2 * of_label + 1, weights),
        "ece": calibration_error(p.max(-1), correct, weights=weights),
        "entropy": total,
        "aleatoric": aleatoric,
        "epistemic": total - aleatoric,
    }


def doubts(predicted: Predictive) -> dict[str, Float[Array, "examples"]]:
    """The entropy of every example's prediction, and how much of it is epistemic: what draws disagree about."""
    total = entropy(predicted.probabilities)
    return {"entropy": total, "epistemic": jnp.maximum(total - predicted.draw_entropy, 0)}  # but for rounding


def confidence_by_label(predicted: Predictive, labels: Int[Array, "examples"], kinds: int) -> Float[Array, "kinds"]:
    """Mean probability given to the true label, over the test examples of each label."""
    of_label = jnp.take_along_axis(predicted.probabilities, labels[:, None], axis=-1)[:, 0]
    counts = jax.ops.segment_sum(jnp.ones_like(of_label), labels, kinds)
    return jax.ops.segment_sum(of_label, labels, kinds) / jnp.maximum(counts, 1)


def told_of_labels(predicted: Predictive, label_names: tuple[str, ...]) -> Told:
    """The likeliest label, the probability of each, and the entropy (in nats) in two parts."""
    p, aleatoric = np.asarray(predicted.probabilities), np.asarray(predicted.draw_entropy)
    total = np.asarray(entropy(jnp.asarray(p)))
    return {
        "prediction": np.array(label_names)[p.argmax(-1)],
        **{f"p_{name}": p[:, k] for k, name in enumerate(label_names)},
        "aleatoric": aleatoric,
        "epistemic": np.maximum(total - aleatoric, 0),  # rounding alone makes it negative
    }


def require_distinct(label_names: tuple[str, ...]) -> None:
    """Refuse names of which two are the same, or fewer than two.

    >>> require_distinct(("a", "b", "a"))
    Traceback (most recent call last):
    consilience.errors.InputError: label_names: must be two or more, all different, got ('a', 'b', 'a')
    """
    if len(label_names) < 2 or len(set(label_names)) < len(label_names):
        raise InputError(f"label_names: must be two or more, all different, got {brief(label_names)}")
