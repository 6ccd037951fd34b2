"""Figures of a user's own task."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from consilience.experiments.learn.arms import TOGETHER
from consilience.experiments.learn.description import Config
from consilience.experiments.learn.summary import SHOWN, judged_by, scores_of
from consilience.report.style import CYCLE, accuracy_axis, canvas, finish, plain
from consilience.runs.record import Record
from consilience.task.consensus import ALONE

MOST_SHOWN = 40  # agents of a bar chart
WORDS = {"accuracy": "accuracy", "rmse": "RMSE", "nll": "negative log likelihood"}


def draw(config: Config, record: Record, folder: Path) -> list[Path]:
    """How good everybody's predictions get, where anybody is judged, and who holds how much."""
    judged = [_scores(record, folder / "scores.png")] if np.isfinite(_judged(record, TOGETHER)).any() else []
    return [*judged, _shares(record, folder / "shares.png")]


def _judged(record: Record, arm: str) -> np.ndarray:
    """The score that is drawn, by round, of those who are judged by anything."""
    values = record.select(arm, f"pooled_{judged_by(record)}_{_first(record)}")
    return values[:, np.isfinite(values[-1])]


def _first(record: Record) -> str:
    """The first score that people ask for."""
    known = scores_of(record, judged_by(record))
    return next(name for name in (*SHOWN, *known) if name in known)


def _scores(record: Record, file: Path) -> Path:
    where, first = judged_by(record), _first(record)
    figure, (axes,) = canvas(1, 1, 6.6, 4.6)
    lowest, highest = np.inf, -np.inf
    for colour, arm in zip(CYCLE, record.arms(), strict=False):
        values = _judged(record, arm)
        rounds = record.rounds(arm)
        who = "each alone" if arm == ALONE else "hearing each other"
        axes.fill_between(rounds, values.min(1), values.max(1), color=colour, alpha=0.18, lw=0)
        axes.plot(rounds, values.mean(1), ".-", ms=4, color=colour, label=f"{who} (mean, range over agents)")
        lowest, highest = min(lowest, float(values.min())), max(highest, float(values.mean(1).max()))
    judge = "the test set" if where == "test" else "each agent's held-out rows"
    axes.set(xlabel="round", xlim=(0, None), ylabel=f"{WORDS.get(first, first)} on {judge}")
    if first == "accuracy":
        accuracy_axis(axes, lowest, min(highest, 0.995), to_one=True)  # by the averages: few rows are easily all right
    figure.legend(loc="outside upper center")
    caption = "What agents predict with after pooling" + (
        "; without the others each has only its own data." if ALONE in record.arms() else ", round by round."
    )
    return finish(figure, caption, file)


def _shares(record: Record, file: Path) -> Path:
    names = [plain(str(name)) for name in record.shares["agents"]][:MOST_SHOWN]
    figure, (axes,) = canvas(1, 1, 6.6, 0.32 * len(names) + 1.8)
    counts, labels = record.shares["counts"], record.shares["label_names"]
    left, places = np.zeros(len(names)), np.arange(len(names))
    parts = np.array(counts).T if counts else np.array([record.shares["rows"]])
    for number, part in enumerate(parts[:, : len(names)]):
        name = plain(labels[number]) if counts else "rows"
        axes.barh(places, part, left=left, color=CYCLE[number % len(CYCLE)], label=name)
        left = left + part
    axes.set(yticks=places, xlabel="rows that are learnt from")
    axes.set_yticklabels(names)
    axes.invert_yaxis()
    if 1 < len(parts) <= 12:
        figure.legend(loc="outside right upper")
    return finish(figure, "Who holds how much" + (", by label." if counts else "."), file)
