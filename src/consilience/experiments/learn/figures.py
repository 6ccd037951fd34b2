"""Figures of a user's own task."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from consilience.experiments.learn.description import Config
from consilience.experiments.learn.summary import SHOWN, judged_by, scores_of
from consilience.report.style import CYCLE, accuracy_axis, canvas, finish, plain
from consilience.runs.record import Record
from consilience.task.consensus import ALONE

MOST_SHOWN = 40  # agents of a bar chart
WORDS = {"accuracy": "accuracy", "rmse": "RMSE", "nll": "negative log likelihood"}


def draw(config: Config, record: Record, folder: Path) -> list[Path]:
    """How good everybody's predictions get, and who holds how much."""
    return [_scores(record, folder / "scores.png"), _shares(record, folder / "shares.png")]


def _scores(record: Record, file: Path) -> Path:
    where = judged_by(record)
    first = next(name for name in (*SHOWN, *scores_of(record, where)) if name in scores_of(record, where))
    figure, (axes,) = canvas(1, 1, 6.6, 4.6)
    lowest, highest = np.inf, -np.inf
    for colour, arm in zip(CYCLE, record.arms(), strict=False):
        values = record.select(arm, f"pooled_{where}_{first}")
        values = values[:, np.isfinite(values[-1])]
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
