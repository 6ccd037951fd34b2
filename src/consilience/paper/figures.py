"""Figures that put several runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from consilience.network import star
from consilience.paper import plays
from consilience.paper.plays import Play, trusted, trusted_again
from consilience.paper.told import Runs, Told, of
from consilience.report.style import CYCLE, accuracy_axis, canvas, finish, plain, plain_ticks
from consilience.theory import stationary

SHADES = ("#BBD9EE", "#7FB8DF", "#3F93C8", "#0072B2", "#003F66")  # more trust, darker


def stars(runs: Runs, experiment: str, trusts: Sequence[float], file: Path) -> Path:
    """Fig. 2: the average accuracy for every trust."""
    figure, (axes,) = canvas(1, 1, 7.0, 4.8)
    lowest, highest = 1.0, 0.0
    for colour, trust in zip(SHADES[-len(trusts) :], trusts, strict=True):
        first, again = (of(runs, play(experiment, trust)) for play in (trusted, trusted_again))
        both = np.intersect1d(first.rounds(), again.rounds())
        seeds = np.hstack([told.averages()[np.isin(told.rounds(), both)] for told in (first, again)])
        axes.fill_between(both, seeds.min(1), seeds.max(1), color=colour, alpha=0.3, lw=0)
        v = stationary(star(8, trust))[0]
        average = first.averages()[:, 0]
        axes.plot(first.rounds(), average, ".-", ms=4, color=colour, label=f"a = {trust} (v₁ = {v:.2f})")
        lowest, highest = min(lowest, float(seeds.min())), max(highest, float(average.max()))
    axes.set(xscale="log", xlabel="round", ylabel="average accuracy on the global test set")
    plain_ticks(axes.xaxis)
    accuracy_axis(axes, lowest, highest)
    figure.legend(loc="outside right upper", title="trust in the hub")
    return finish(figure, "Lines: one seed. Bands: the range of three seeds, up to round 100.", file)


def confidences(
    runs: Runs, experiment: str, trusts: Sequence[float], of_edges: str, of_centre: str, file: Path
) -> Path:
    """Fig. 3: confidence on a known and an unknown label at hub and edges, a panel for every trust."""
    figure, panels = canvas(1, len(trusts), 3.1 * len(trusts), 4.0, sharey=True)
    for axes, trust in zip(panels, trusts, strict=True):
        told = of(runs, trusted(experiment, trust))
        for colour, who in zip(CYCLE, ("centre", "edges"), strict=False):
            for label, owner in ((of_centre, "centre"), (of_edges, "edges")):
                line = f"{plain(label)} at the {who} ({'ID' if owner == who else 'OOD'})"
                axes.plot(
                    told.rounds(),
                    told.confidence(label, who),
                    color=colour,
                    ls="-" if owner == who else "--",
                    label=line,
                )
        axes.set(title=f"a = {trust}", xlabel="round", xscale="log", ylim=(0, 1.02))
        plain_ticks(axes.xaxis)
    panels[0].set_ylabel("mean confidence in the true label")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    caption = (
        "Full lines: labels that the agent holds; broken: labels that it never sees. More trust lifts the broken ones."
    )
    return finish(figure, caption, file)


def placement(runs: Runs, file: Path) -> Path:
    """Fig. 4: the informed agent in the middle of the grid, or in a corner."""
    figure, (axes,) = canvas(1, 1, 6.4, 4.6)
    shown: list[np.ndarray] = []
    for colour, play, where in zip(
        CYCLE, plays.GRIDS, ("in the middle (v = 5/33)", "in a corner (v = 3/33)"), strict=False
    ):
        told = of(runs, play)
        accuracy = told.record.select(told.arm(), "accuracy")
        axes.fill_between(told.rounds(), accuracy.min(1), accuracy.max(1), color=colour, alpha=0.15, lw=0)
        axes.plot(told.rounds(), accuracy.mean(1), color=colour, label=f"informed agent {where}")
        shown.append(accuracy)
    axes.set(xscale="log", xlabel="round", ylabel="accuracy on the global test set")
    plain_ticks(axes.xaxis)
    accuracy_axis(axes, min(float(a.min()) for a in shown), max(float(a.max()) for a in shown))
    figure.legend(loc="outside upper center")
    return finish(
        figure,
        "Lines: average over nine agents; bands: their range. The middle is heard by more and learns faster.",
        file,
    )


def ambiguous(runs: Runs, file: Path) -> Path:
    """Fig. 5: confidence on labels that look alike, at hub and edges, with and without an agent that holds both."""
    panels_of: list[tuple[str, Play, tuple[str, str]]] = [
        ("MNIST-Setup2", plays.AMBIGUOUS[0], ("4", "9")),
        ("MNIST-Setup3", plays.AMBIGUOUS[1], ("4", "9")),
        ("FMNIST-Setup2", plays.AMBIGUOUS[2], ("coat", "pullover")),
        ("FMNIST-Setup1", plays.STAR_FMNIST, ("coat", "pullover")),
    ]
    figure, panels = canvas(2, 2, 8.0, 7.0, sharey=True)
    for axes, (title, play, labels) in zip(panels, panels_of, strict=True):
        told = of(runs, play)
        for colour, label in zip(CYCLE, labels, strict=False):
            for who, dash in (("centre", "-"), ("edges", "--")):
                line = f"{label} at the {who} ({_known(told, label, who)})"
                axes.plot(told.rounds(), told.confidence(label, who), color=colour, ls=dash, label=line)
        axes.set(title=title, xlabel="round", xscale="log", ylim=(0, 1.02), ylabel="mean confidence")
        plain_ticks(axes.xaxis)
        axes.legend(fontsize=7, loc="upper left")
    return finish(
        figure, "Where no agent holds both of two labels that look alike, one is taken for the other for long.", file
    )


def _known(told: Told, label: str, who: str) -> str:
    counts, names = np.array(told.record.shares["counts"]), list(told.record.shares["label_names"])
    agent = told.centre() if who == "centre" else (told.centre() + 1) % len(counts)
    return "known" if counts[agent, names.index(label)] else "never seen"
