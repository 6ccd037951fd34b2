"""Figures of the classification experiments."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from consilience.data.labels import label_number
from consilience.experiments.images.confusion import at_the_end
from consilience.experiments.images.description import Config
from consilience.report.confusion import confusions
from consilience.report.style import CYCLE, accuracy_axis, canvas, finish, plain
from consilience.runs.record import Record
from consilience.task.consensus import ALONE

ACCURACIES = ("accuracy", "pooled_accuracy")
MOST_SHOWN = 40  # agents and labels of a partition


def draw(config: Config, record: Record, folder: Path) -> list[Path]:
    """Accuracy, confidence on known and unknown labels, and who holds what."""
    names, counts = tuple(record.shares["label_names"]), np.array(record.shares["counts"])
    centre = int((counts > 0).sum(1).argmax())
    figures = [
        _accuracy(record, counts, centre, folder / "accuracy.png"),
        _partition(counts, names, folder / "partition.png"),
    ]
    if any(described.changes and described.changes.clocks for described in config.networks.values()):
        figures.append(_against_time(record, folder / "time.png"))
    watched = [label_number(names, label) for label in config.watched]
    if watched:
        figures.append(_confidence(record, counts, centre, watched, names, folder / "confidence.png"))
    if config.confusion:
        figures.append(_confusion(record, centre, names, folder / "confusion.png"))
    return figures


def _accuracy(record: Record, counts: np.ndarray, centre: int, file: Path) -> Path:
    """Everybody's accuracy over rounds; where one agent is better informed than all others, beside the others'."""
    arms, held = record.arms(), (counts > 0).sum(1)
    informed = held[centre] > np.delete(held, centre).max(initial=0)
    figure, panels = canvas(1, len(arms), 4.6 * len(arms) + 0.6, 4.4, sharey=True)
    for axes, arm in zip(panels, arms, strict=True):
        rounds, accuracy = record.rounds(arm), record.select(arm, "accuracy")
        others, name = (np.delete(accuracy, centre, axis=1), "edges") if informed else (accuracy, "agents")
        if others.size:
            axes.fill_between(rounds, others.min(1), others.max(1), color=CYCLE[1], alpha=0.2, lw=0)
            axes.plot(rounds, others.mean(1), ".-", ms=3, color=CYCLE[1], label=f"{name} (mean, range)")
        if informed:
            axes.plot(rounds, accuracy[:, centre], color=CYCLE[0], label="centre")
            axes.plot(rounds, accuracy.mean(1), color="black", lw=2, label="average")
        pooled = record.select(arm, "pooled_accuracy").mean(1)
        axes.plot(rounds, pooled, color="#888888", ls="--", lw=1.2, label="average of pooled beliefs")
        axes.set(title=arm, xlabel="round", xlim=(0, None))
    shown = np.concatenate([record.select(arm, name).ravel() for arm in arms for name in ACCURACIES])
    accuracy_axis(panels[0], float(shown.min()), float(shown.max()))
    panels[0].set_ylabel("accuracy on the global test set")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4 if len(arms) > 1 else 2)
    return finish(figure, _what_to_see(bool(held.min() < counts.shape[1]), ALONE in arms), file)


def _what_to_see(labels_missing: bool, alone: bool) -> str:
    if labels_missing:
        return "Agents that talk come to recognise labels they never saw" + ("; agents alone cannot." if alone else ".")
    return "Every agent's own belief, on the same test set" + ("; talking brings all of them up." if alone else ".")


def _against_time(record: Record, file: Path) -> Path:
    figure, (axes,) = canvas(1, 1, 6.4, 4.4)
    for colour, arm in zip(CYCLE, record.arms(), strict=False):
        accuracy, time = record.select(arm, "accuracy"), record.select(arm, "time")[:, 0]
        axes.fill_between(time, accuracy.min(1), accuracy.max(1), color=colour, alpha=0.15, lw=0)
        axes.plot(time, accuracy.mean(1), color=colour, label=f"{plain(arm, 40)} (mean, range over agents)")
    axes.set(xlabel="simulated time (the fastest agent's round takes 1)", ylabel="accuracy on the global test set")
    shown = np.concatenate([record.select(arm, "accuracy").ravel() for arm in record.arms()])
    accuracy_axis(axes, float(shown.min()), float(shown.max()))
    figure.legend(loc="outside upper center")
    return finish(figure, "Who does not wait for the slowest agent gets further in the same time.", file)


def _confidence(
    record: Record, counts: np.ndarray, centre: int, watched: list[int], names: tuple[str, ...], file: Path
) -> Path:
    arms = record.arms()
    figure, panels = canvas(1, len(arms), 4.6 * len(arms) + 0.6, 4.4, sharey=True)
    shown = [(centre, "centre", "-"), (0 if centre else 1, "an edge", "--")][: len(counts)]
    for axes, arm in zip(panels, arms, strict=True):
        for colour, label in zip(CYCLE, watched, strict=False):
            values = record.select(arm, f"confidence_{names[label]}")
            for agent, who, dash in shown:
                known = "known" if counts[agent, label] else "never seen"
                line = f"{plain(names[label])} at {who} ({known})"
                axes.plot(record.rounds(arm), values[:, agent], color=colour, ls=dash, label=line)
        axes.set(title=arm, xlabel="round", ylim=(0, 1.02))
    panels[0].set_ylabel("mean confidence in the true label")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2 if len(arms) > 1 else 1)
    return finish(figure, "Confidence is higher on labels an agent holds itself; talking brings the others up.", file)


def _confusion(record: Record, centre: int, names: tuple[str, ...], file: Path) -> Path:
    """What the centre and the other agents take each label for at the end, in the first arm."""
    figure = confusions(at_the_end(record, centre), names)
    last = record.rounds(record.arms()[0])[-1]
    caption = f"Per cent of the test examples of a label that are taken for another one, round {last}."
    return finish(figure, caption, file)


def _partition(counts: np.ndarray, names: tuple[str, ...], file: Path) -> Path:
    shown, texts = counts[:MOST_SHOWN, :MOST_SHOWN], [plain(name) for name in names[:MOST_SHOWN]]
    agents, labels = shown.shape
    figure, (axes,) = canvas(1, 1, 0.75 * labels + 2, 0.32 * agents + 1.8)
    axes.imshow(np.log1p(shown), cmap="Blues", aspect="auto")
    for (row, column), value in np.ndenumerate(shown):
        if value:
            dark = np.log1p(value) > 0.6 * np.log1p(counts.max())
            axes.text(
                column, row, f"{value:,}", ha="center", va="center", fontsize=7, color="white" if dark else "black"
            )
    axes.set(xticks=range(labels), yticks=range(agents), xlabel="label", ylabel="agent", title="Who holds what")
    long = max(map(len, texts)) > 3
    axes.set_xticklabels(texts, rotation=30 if long else 0, ha="right" if long else "center")
    axes.grid(False)
    left_out = f" (the first {MOST_SHOWN})" if counts.shape != shown.shape else ""
    return finish(figure, f"Training examples of each label at each agent{left_out}.", file)
