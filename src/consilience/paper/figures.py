"""Figures that put several runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from consilience.network import star
from consilience.paper import plays
from consilience.paper.plays import Play, trusted, trusted_again
from consilience.paper.told import Runs, of
from consilience.report.confusion import confusions
from consilience.report.style import CYCLE, accuracy_axis, canvas, finish, plain, plain_ticks
from consilience.theory import stationary

SHADES = ("#BBD9EE", "#7FB8DF", "#3F93C8", "#0072B2", "#003F66")  # more trust, darker


def stars(runs: Runs, experiment: str, trusts: Sequence[float], file: Path) -> Path:
    """Fig. 2: the average accuracy for every trust."""
    figure, (axes,) = canvas(1, 1, 8.0, 4.8)
    lowest, highest = 1.0, 0.0
    for colour, trust in zip(SHADES[-len(trusts) :], trusts, strict=True):
        first, again = (of(runs, play(experiment, trust)) for play in (trusted, trusted_again))
        both = np.intersect1d(first.rounds, again.rounds)
        seeds = np.hstack([told.by_seed[np.isin(told.rounds, both)] for told in (first, again)])
        axes.fill_between(both, seeds.min(1), seeds.max(1), color=colour, alpha=0.3, lw=0)
        v = stationary(star(8, trust))[0]
        average = first.by_seed[:, 0]
        axes.plot(first.rounds, average, ".-", ms=4, color=colour, label=f"a = {trust} (v₁ = {v:.2f})")
        lowest, highest = min(lowest, float(seeds.min())), max(highest, float(average.max()))
    axes.set(xscale="log", xlabel="round", ylabel="average accuracy on the global test set")
    plain_ticks(axes.xaxis)
    accuracy_axis(axes, lowest, highest)
    figure.legend(loc="outside right upper", title="trust in the hub")
    caption = (
        "Darker is more trust; the paper has darker above. Lines: one seed; bands: the range of three, to round 100."
    )
    return finish(figure, caption, file)


def stated(runs: Runs, play: Play, plain_rule: Play, paper: float, file: Path) -> Path:
    """The run whose accuracy the paper states, by Bayes' rule as it is and with the KL term as chosen here."""
    figure, (axes,) = canvas(1, 1, 7.2, 4.8)
    shown = [np.array([paper])]
    for colour, run, rule in (
        (CYCLE[0], play, "KL term that begins at a tenth and grows"),
        (CYCLE[1], plain_rule, "plain rule"),
    ):
        told = of(runs, run)
        axes.fill_between(told.rounds, told.by_agent.min(1), told.by_agent.max(1), color=colour, alpha=0.2, lw=0)
        axes.plot(told.rounds, told.by_agent.mean(1), ".-", ms=4, color=colour, label=rule)
        shown.append(told.by_agent.ravel())
    axes.axhline(paper, color="#555555", ls=":", label=f"the paper's average at the end, {paper:.2%}")
    axes.set(xscale="log", xlabel="round", ylabel="accuracy on the global test set")
    plain_ticks(axes.xaxis)
    accuracy_axis(axes, float(np.concatenate(shown).min()), float(np.concatenate(shown).max()))
    figure.legend(loc="outside upper center")
    caption = "Lines: average over nine agents; bands: their range. Dotted: what the paper reports of the end."
    return finish(figure, caption, file)


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
                    told.rounds,
                    told.confidence(label, who),
                    color=colour,
                    ls="-" if owner == who else "--",
                    label=line,
                )
        axes.set(title=f"a = {trust}", xlabel="round", xscale="log", ylim=(0, 1.02))
        plain_ticks(axes.xaxis, narrow=True)
    panels[0].set_ylabel("mean confidence in the true label")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    caption = (
        "Full lines: labels that the agent holds; broken: labels that it never sees. The paper has these rise with a."
    )
    return finish(figure, caption, file)


def placement(runs: Runs, file: Path) -> Path:
    """Fig. 4: the informed agent in the middle of the grid, or in a corner."""
    figure, (axes,) = canvas(1, 1, 7.2, 4.8)
    shown: list[np.ndarray] = []
    for colour, play, where in zip(
        CYCLE, plays.GRIDS, ("in the middle (v = 5/33)", "in a corner (v = 3/33)"), strict=False
    ):
        told = of(runs, play)
        accuracy = told.by_agent
        axes.fill_between(told.rounds, accuracy.min(1), accuracy.max(1), color=colour, alpha=0.15, lw=0)
        axes.plot(told.rounds, accuracy.mean(1), color=colour, label=f"informed agent {where}")
        shown.append(accuracy)
    axes.set(xscale="log", xlabel="round", ylabel="accuracy on the global test set")
    plain_ticks(axes.xaxis)
    accuracy_axis(axes, min(float(a.min()) for a in shown), max(float(a.max()) for a in shown))
    figure.legend(loc="outside upper center")
    return finish(
        figure,
        "Lines: average over nine agents; bands: their range. The paper has the middle learn faster.",
        file,
    )


def ambiguous(runs: Runs, file: Path) -> Path:
    """Fig. 5: confidence on labels that look alike, at hub and edges, with and without an agent that holds both."""
    panels_of = [
        *zip(plays.SETUPS, plays.AMBIGUOUS, plays.ALIKE, strict=True),
        ("FMNIST-Setup1", plays.STAR_FMNIST, plays.ALIKE[-1]),
    ]
    figure, panels = canvas(2, 2, 11.0, 8.2, sharey=True)
    for axes, (title, play, labels) in zip(panels, panels_of, strict=True):
        told = of(runs, play)
        for colour, label in zip(CYCLE, labels, strict=False):
            for who, dash in (("centre", "-"), ("edges", "--")):
                line = f"{label} at the {who} ({'known' if told.holds(label, who) else 'never seen'})"
                axes.plot(told.rounds, told.confidence(label, who), color=colour, ls=dash, label=line)
        axes.set(xlabel="round", xscale="log", ylim=(0, 1.02), ylabel="mean confidence in the true label")
        axes.set_title(title, pad=36)  # room for the legend between title and data
        plain_ticks(axes.xaxis)
        axes.legend(fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    caption = "In Setup2 nobody holds both of two labels that look alike; the paper has the unseen one stay low."
    return finish(figure, caption, file)


def confusion(runs: Runs, number: int, file: Path) -> Path:
    """Fig. 5: what the centre and the edges take every label for, in one of the runs with labels that look alike."""
    told, (of_centre, of_edges) = of(runs, plays.AMBIGUOUS[number]), plays.ALIKE[number]
    caption = (
        f"{plays.SETUPS[number]}: per cent of a label's test examples taken for each label, round {told.rounds[-1]:,}. "
        f"See row {of_edges} at the centre and row {of_centre} at the edges."
    )
    return finish(confusions(told.confusions, told.label_names), caption, file)
