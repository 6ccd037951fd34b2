"""Figures of rates in networks that change."""

from __future__ import annotations

from pathlib import Path

from consilience.experiments.changing_rates.description import Config
from consilience.experiments.changing_rates.theory import predict
from consilience.report.style import CYCLE, finish, small_multiples
from consilience.runs.record import Record


def draw(config: Config, record: Record, folder: Path) -> list[Path]:
    """Decay against what the realised W_t predict, for every network."""
    figure, panels = small_multiples(len(record.arms()))
    theory = predict(config)
    for axes, name in zip(panels, record.arms(), strict=True):
        rounds, measured, told = record.rounds(name), record.select(name, "log_ratio"), theory[name]
        axes.plot(rounds, measured[:, 1:], ".", color=CYCLE[0], ms=4, alpha=0.7)
        axes.plot(rounds, measured[:, 0], ".", color=CYCLE[0], ms=4, alpha=0.7, label="measured (1/n) log q(θ*)/q(θ)")
        exact = told.exact[: len(rounds)]
        axes.plot(rounds, exact[:, 1:], color=CYCLE[1], lw=0.8)
        axes.plot(rounds, exact[:, 0], color=CYCLE[1], lw=0.8, label="its exact mean from the realised W_t")
        axes.axhline(told.K, color="black", ls="--", lw=1, label="K with the realised centrality")
        axes.axhline(told.K_of_W, color=CYCLE[3], ls=":", lw=1.5, label="Σ v_j I_j of W, as if nothing changed")
        title = f"{name}: N = {told.agents}"
        axes.set(xscale="log", ylim=(0, None), xlabel="turn n", ylabel="decay, nats a turn", title=title)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    caption = (
        "Each agent's log ratio follows the exact mean that the turns which happened predict, and tends to K of their\n"
        f"centrality, not to that of W ({config.replicates} seeds; one line and one row of dots an agent)."
    )
    return [finish(figure, caption, folder / "rates.png")]
