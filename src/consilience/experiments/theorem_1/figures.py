"""Figures of Theorem 1."""

from __future__ import annotations

from pathlib import Path

from consilience.experiments.theorem_1.description import Config
from consilience.experiments.theorem_1.summary import SETTLED
from consilience.experiments.theorem_1.theory import exact_means, predict
from consilience.report.style import CYCLE, canvas, finish, plain, small_multiples
from consilience.runs.record import Record


def draw(config: Config, record: Record, folder: Path) -> list[Path]:
    """Decay against the theory for every network; the bound's event and the probability of error."""
    return [_decay(config, record, folder / "decay.png"), _events(config, record, folder / "events.png")]


def _decay(config: Config, record: Record, file: Path) -> Path:
    figure, panels = small_multiples(len(record.arms()))
    theory = predict(config)
    for axes, name in zip(panels, record.arms(), strict=True):
        rounds = record.rounds(name)
        exact = exact_means(config, name, theory[name], rounds.tolist())
        for metric, first, mark, colour, label in (
            ("log_ratio", 0, ".", CYCLE[0], "measured (1/n) log b(θ*)/b(θ)"),
            ("decay", SETTLED, "+", CYCLE[3], f"measured −(1/n) log b(θ), n ≥ {SETTLED}"),
        ):
            shown = rounds >= first
            values = record.select(name, metric)[shown]
            axes.plot(rounds[shown], values[:, 1:], mark, color=colour, ms=4, alpha=0.7)
            axes.plot(rounds[shown], values[:, 0], mark, color=colour, ms=4, alpha=0.7, label=label)
        axes.plot(rounds, exact[:, 1:], color=CYCLE[1], lw=0.8)
        axes.plot(rounds, exact[:, 0], color=CYCLE[1], lw=0.8, label="exact mean of (1/n) log b(θ*)/b(θ)")
        axes.axhline(theory[name].K, color="black", ls="--", lw=1, label="K(Θ)")
        title = f"{name}: N = {theory[name].agents}, gap {theory[name].gap:.2f}"
        axes.set(xscale="log", xlabel="round n", ylabel="decay, nats a round", title=title)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    caption = (
        "Each agent's log ratio follows its exact mean at every n and tends to K(Θ), from above where well placed.\n"
        f"−(1/n) log b(θ) does so once the true hypothesis has nearly all of the belief ({config.replicates} seeds)."
    )
    return finish(figure, caption, file)


def _events(config: Config, record: Record, file: Path) -> Path:
    figure, (left, right) = canvas(1, 2, 10.5, 4.2)
    theory = predict(config)
    for colour, name in zip(CYCLE * 3, record.arms(), strict=False):
        rounds = record.rounds(name)
        left.plot(rounds, record.select(name, "event")[:, 0], color=colour, label=plain(name, 40))
        left.axvline(theory[name].n_corrected, color=colour, ls=":", lw=1)
        right.plot(rounds, record.select(name, "wrong").mean(1), color=colour)
    left.axhline(1 - config.delta, color="black", ls="--", lw=1)
    left.annotate(f"1 − δ = {1 - config.delta:g}", (4, 1 - config.delta), xytext=(60, -14), textcoords="offset points")
    left.set(xscale="log", ylim=(0.5, 1.02), xlabel="round n", ylabel="share of seeds where the bound's event holds")
    right.set(xscale="log", xlabel="round n", ylabel="probability of picking a wrong hypothesis")
    right.set_yscale("symlog", linthresh=1 / (config.replicates * 10))
    right.set_ylim(bottom=0)
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=5)
    caption = "Dotted: the corrected sample size, after which the event must hold at least as often as 1 − δ."
    return finish(figure, caption, file)
