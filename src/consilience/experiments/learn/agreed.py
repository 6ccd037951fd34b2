"""A task that peers agree on before anybody has shown any data: a `learn` description without shares and network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from consilience.described.settings import validate
from consilience.errors import InputError, brief
from consilience.experiments.learn.arms import check_outputs
from consilience.experiments.learn.description import Config
from consilience.machine.memory import require
from consilience.task.columns import Label, Target, features, predicted
from consilience.task.consensus import Pooling, Sites
from consilience.task.learner import VARIATIONAL, Laplace
from consilience.task.learnt import Learnt
from consilience.task.rule import check_linear, check_rule

AGREED = (  # what a study says of a task; the rest is everybody's own, or that of a simulation
    "seed",
    "precision",
    "record_every",
    "held_out",
    "samples",
    "model",
    "likelihood",
    "learner",
    "consensus",
    "columns",
)
TOGETHER = ("pooling", "sites", "tracking")  # how evidence comes together without a server
BETWEEN = {"shares": {"kind": "files", "files": {"own": "own.csv"}}}  # in the place of what only a peer itself can say


def agreed(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """What a study takes of the values of a description, all defaults written out, and the fields that it leaves out.

    >>> task, left = agreed({"experiment": "learn", "rounds": 9, "model": {"kind": "mlp", "hidden": [3]}})
    >>> task["model"]["hidden"], left
    ([3], [])
    """
    kept = {name: value for name, value in values.items() if name in AGREED}
    known = {"experiment", "rounds", *AGREED}
    if unknown := [name for name in values if name not in Config.model_fields]:
        described_by({unknown[0]: values[unknown[0]]})
    return _written(described_by(kept)), [name for name in values if name not in known]


def described_by(task: Mapping[str, Any], **own: Any) -> Config:
    """The description of a task that was agreed on, with what is a peer's own (its shares, its network, rounds)."""
    return validate(Config, {**BETWEEN, **task, **own})


def built(task: Mapping[str, Any], labels: Sequence[str] | None = None, shape: Sequence[int] | None = None) -> Learnt:
    """The model and the likelihood of a task that was agreed on, or one line why they cannot be.

    labels, shape: what is predicted and of one input, where no columns say it.
    """
    if unknown := [name for name in task if name not in AGREED]:
        raise InputError(f"task: {brief(unknown[0])} is not a study's to say")
    config = described_by(task)
    _check_between_peers(config)
    labels, shape = _seen(config, labels, shape)
    answer = None if config.columns is None else predicted(config.columns)[1]
    likelihood = config.likelihood.build(labels, answer if isinstance(answer, Target) else None)
    given = config.model.build(shape, likelihood.outputs)
    check_outputs(given, shape, likelihood)
    model = likelihood.model(given)
    require(12 * float(min(model.size, 10**300)), f"model: {float(min(model.size, 10**300)):.3g} parameters")
    if isinstance(config.learner, Laplace):
        check_linear(model, shape)
    return Learnt(model, likelihood, (), labels, shape, config.columns)


def check_wire(task: Mapping[str, Any], wire: str) -> None:
    """Refuse a short form of beliefs that have no means and sds to round."""
    config = described_by(task)
    if wire != "exact" and (
        config.learner.kind not in (VARIATIONAL, "natural") or not isinstance(config.consensus, Pooling)
    ):
        raise InputError(
            f"wire: {wire} rounds means and sds of pooled beliefs; with learner '{config.learner.kind}' and consensus "
            f"'{config.consensus.kind}' it must be exact"
        )


def check_limit(task: Mapping[str, Any], learnt: Learnt, most: int) -> None:
    """Refuse a limit that no message of anybody would keep."""
    config, size = described_by(task), learnt.model.size
    numbers = {"laplace": size * (size + 1), "gradient": size}.get(config.learner.kind, 2 * size)
    long = numbers * (8 if config.precision == "float64" or config.consensus.kind == "tracking" else 4)
    if long > most:
        raise InputError(f"limits.most_bytes: what somebody says has at least {long:,} bytes, got {most:,}")


def _written(config: Config) -> dict[str, Any]:
    return config.model_dump(mode="json", exclude_none=True, include=set(AGREED))


def _check_between_peers(config: Config) -> None:
    """Refuse rules that need a server, and what a peer alone cannot know."""
    consensus, learner = config.consensus, config.learner
    if consensus.kind not in TOGETHER:
        raise InputError(f"consensus: peers have {', '.join(TOGETHER)}, got {brief(consensus.kind)}")
    if isinstance(consensus, Sites) and consensus.passes > 1:
        raise InputError(
            "consensus.passes: peers pass on once a round what they have heard, which is enough where all are linked "
            f"with all; must be 1 (study new --set task.consensus.passes=1), got {consensus.passes}"
        )
    if isinstance(consensus, Pooling) and consensus.alike:
        raise InputError("consensus.alike: is for networks that stay the same; sites count data once in any")
    if learner.steps != "own":
        raise InputError(f"learner.steps: must be 'own', a peer does not know others' data, got {brief(learner.steps)}")
    for part, kind in {"model": config.model.kind, "likelihood": config.likelihood.kind}.items():
        if kind == "given":
            raise InputError(f"{part}: one that was given in Python cannot be written down for others")
    check_rule(learner, consensus)


def _seen(
    config: Config, labels: Sequence[str] | None, shape: Sequence[int] | None
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """What is predicted and the shape of one input: columns say it, or the study does."""
    if config.columns is None:
        if shape is None:
            raise InputError("input_shape: is required where there are no columns: the shape of one input, e.g. [8, 8]")
        if labels is not None and len(set(labels)) < max(len(labels), 2):
            raise InputError(f"labels: must be at least two, all different, got {brief(list(labels))}")
        return tuple(labels or ()), tuple(shape)
    if labels is not None or shape is not None:
        raise InputError(f"{'labels' if labels is not None else 'input_shape'}: the columns say that already")
    _, answer = predicted(config.columns)
    return tuple(answer.levels) if isinstance(answer, Label) else (), (len(features(config.columns)),)
