"""Figures of the linear regression (the paper's Fig. 1)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from consilience.experiments.linear_regression.description import Config
from consilience.experiments.linear_regression.summary import summarise
from consilience.report.style import COLOURS, canvas, finish, plain_ticks
from consilience.runs.record import Record

LABELS = {"central": "central agent, all data", "alone": "agents alone", "cooperating": "agents cooperating"}


def draw(config: Config, record: Record, folder: Path) -> list[Path]:
    """MSE of the three arms, and every agent's distance to the truth."""
    return [_mse(config, record, folder / "mse.png"), _distance(record, folder / "distance.png")]


def _mse(config: Config, record: Record, file: Path) -> Path:
    floor = summarise(config, record)["mse_of_the_truth"]
    figure, (axes,) = canvas(1, 1, 7.2, 5.0)
    for arm in record.arms():
        rounds, mse = record.rounds(arm), record.select(arm, "mse")
        axes.plot(
            rounds, mse.mean(1), color=COLOURS[arm], label=LABELS[arm], ls="--" if arm == "central" else "-", lw=2
        )
        if mse.shape[1] > 1:
            axes.fill_between(rounds, mse.min(1), mse.max(1), color=COLOURS[arm], alpha=0.15, lw=0)
    axes.axhline(floor, color="#888888", lw=1, ls=":", label="θ* itself (noise)")
    axes.set(xscale="log", xlabel="round", ylabel="MSE on the global test set", title=_title(record))
    plain_ticks(axes.xaxis)
    figure.legend(loc="outside upper center", ncols=2)
    caption = "Cooperating agents fall to the central agent's error; alone they cannot. Bands: best to worst agent."
    return finish(figure, caption, file)


def _distance(record: Record, file: Path) -> Path:
    figure, panels = canvas(1, 3, 10.5, 4.2, sharey=True)
    for axes, arm in zip(panels, record.arms(), strict=True):
        distance = record.select(arm, "distance")
        shown = np.linspace(0, distance.shape[1] - 1, min(distance.shape[1], 20)).astype(int)
        axes.plot(record.rounds(arm), distance[:, shown], color=COLOURS[arm], alpha=0.8, lw=1.3)
        axes.set(title=LABELS[arm], xlabel="round", xscale="log", yscale="log")
        plain_ticks(axes.xaxis)
    plain_ticks(panels[0].yaxis)
    panels[0].set_ylabel("‖posterior mean − θ*‖")
    return finish(figure, "One line for each agent. Alone, an agent stays away from what it cannot see.", file)


def _title(record: Record) -> str:
    return f"Linear regression: {record.select('cooperating', 'mse').shape[1]} agents, one coordinate each"
