"""What is measured of an agent: how good its predictions of the test set are, how sure it is, whom it finds strange."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from consilience.beliefs import Point
from consilience.engines.arm import Metrics, Progress
from consilience.models.likelihoods.categorical import Predictive, confidence_by_label, doubts
from consilience.models.scores import auroc, confusion, disagreement
from consilience.task.rule import Rule, doubt, draws
from consilience.task.shared import Shared
from consilience.task.task import Task, flat_apply

MOST_STRANGERS = 2000  # images, and as many of the test set: telling them apart is to stay cheap
CHOICES = "choices"  # measured of each agent to compare them; not recorded


def measure(
    task: Task,
    samples: int,
    label_names: tuple[str, ...],
    confused: bool,
    rule: Rule,
    data: Shared,
    progress: Progress,
    number: Int[Array, ""],
    key: PRNGKeyArray,
) -> Metrics:
    """Scores of an agent's public belief b_i, as in the paper, and of the pooled q_i beside it."""
    likelihood, apply = task.likelihood, flat_apply(task.model)

    def predicted(belief: Any, inputs: Array) -> Predictive:
        inputs = inputs / 255.0 if inputs.dtype == jnp.uint8 else inputs
        found: Predictive = likelihood.predictive(apply, belief, inputs, key, draws(belief, samples))
        return found

    def judged(belief: Any) -> tuple[Predictive, Metrics]:
        usual = predicted(belief, data.test_inputs)
        if data.strangers is None:
            return usual, {}
        return usual, told_apart(isinstance(belief, Point), usual, predicted(belief, data.strangers))

    own, q = rule.own(progress), rule.pooled(progress)
    public, apart = judged(own)
    pooled, pooled_apart = (public, apart) if q is own else judged(q)
    confidence = confidence_by_label(public, data.test_targets, len(label_names))
    of_pooled = likelihood.scores(pooled, data.test_targets)
    choices = public.probabilities.argmax(-1)
    taken = confusion(choices, data.test_targets, len(label_names)) if confused else None
    return {
        **likelihood.scores(public, data.test_targets),
        CHOICES: choices,
        **{f"confidence_{name}": confidence[k] for k, name in enumerate(label_names)},
        **{f"pooled_{name}": of_pooled[name] for name in ("accuracy", "nll", "brier", "ece")},
        **doubt(own, progress.state),
        **apart,
        **{f"pooled_{name}": value for name, value in pooled_apart.items()},
        **({} if taken is None else {name: taken[pair] for name, pair in taken_for(label_names).items()}),
    }


def told_apart(by_points: bool, usual: Predictive, strange: Predictive) -> Metrics:
    """How well strangers are told from test images by epistemic doubt, and by the whole entropy of predictions.

    Points have no epistemic doubt; of theirs both are by the entropy.
    """
    known, unknown = doubts(jax.tree.map(lambda x: x[:MOST_STRANGERS], usual)), doubts(strange)
    by = {"stranger_auroc": "entropy" if by_points else "epistemic", "stranger_auroc_entropy": "entropy"}
    return {name: auroc(known[score], unknown[score]) for name, score in by.items()}


def taken_for(label_names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """The columns of a recorded confusion matrix: what a label is taken for."""
    pairs = product(enumerate(label_names), repeat=2)
    return {f"{true}_taken_for_{chosen}": (row, column) for (row, true), (column, chosen) in pairs}


def compare(kinds: int, measured: Metrics) -> Metrics:
    """How often agents choose differently, in place of what they chose."""
    choices = measured.pop(CHOICES)
    return {**measured, "disagreement": disagreement(choices, kinds)}
