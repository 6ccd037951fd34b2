"""Figures of rates in networks that change."""

from __future__ import annotations

from pathlib import Path

from consilience.experiments.changing_rates.description import Config, RuleName
from consilience.experiments.changing_rates.theory import predict
from consilience.report.style import CYCLE, finish, small_multiples
from consilience.runs.record import Record

MOST = 2.05  # the largest share that is drawn: at first, sums that have not mixed say anything
COLOURS: dict[RuleName, str] = {"paper": CYCLE[0], "sites": CYCLE[2], "tracking": CYCLE[4]}
CALLED: dict[RuleName, str] = {"paper": "the paper's rule", "sites": "sites", "tracking": "tracking"}


def draw(config: Config, record: Record, folder: Path) -> list[Path]:
    """Decay against what the realised W_t predict, by the paper's rule; by all rules, against what the data allows."""
    names = record.arms()
    played = {arm: pair for arm, pair in config.arms().items() if arm in names}
    paper = [network for network, rule in played.values() if rule == "paper"]
    return [_rates(config, record, paper, folder)] * bool(paper) + [_shares(config, record, played, folder)]


def _rates(config: Config, record: Record, networks: list[str], folder: Path) -> Path:
    figure, panels = small_multiples(len(networks))
    theory = predict(config)
    for axes, name in zip(panels, networks, strict=True):
        rounds, measured, told = record.rounds(name), record.select(name, "log_ratio"), theory[name]
        axes.plot(rounds, measured[:, 1:], ".", color=CYCLE[0], ms=4, alpha=0.7)
        axes.plot(rounds, measured[:, 0], ".", color=CYCLE[0], ms=4, alpha=0.7, label="measured (1/n) log q(θ*)/q(θ)")
        exact = told.exact["paper"][: len(rounds)]
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
    return finish(figure, caption, folder / "rates.png")


def _shares(config: Config, record: Record, played: dict[str, tuple[str, RuleName]], folder: Path) -> Path:
    networks = list(dict.fromkeys(network for network, _ in played.values()))
    figure, panels = small_multiples(len(networks))
    theory, panel = predict(config), dict(zip(networks, panels, strict=True))
    for arm, (network, rule) in played.items():
        axes, rounds, told = panel[network], record.rounds(arm), theory[network]
        if not (allowed := told.allowed[: len(rounds), None]).all():
            continue  # nobody who can tell has learnt yet
        measured, exact = record.select(arm, "log_ratio") / allowed, told.exact[rule][: len(rounds)] / allowed
        axes.plot(rounds, measured, ".", color=COLOURS[rule], ms=4, alpha=0.7)
        axes.plot(rounds, exact, color=COLOURS[rule], lw=0.8)
        axes.plot([], [], ".-", color=COLOURS[rule], label=f"{CALLED[rule]}: measured, and exact mean")
    for network, axes in panel.items():
        N = theory[network].agents
        axes.axhline(1, color="black", ls="--", lw=1, label="one agent with all data learnt from")
        axes.axhline(1 / N, color="black", ls=":", lw=1, label="1/N: an average of everybody's evidence")
        axes.set(xscale="log", ylim=(0, MOST), xlabel="turn n", ylabel="share of what is allowed")
        axes.set_title(f"{network}: N = {N}")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    caption = (
        "Decay over what the data allows, (1/n) Σ n_j I_j, n_j being how often agent j has learnt. Sites and tracking\n"
        "sum everybody's evidence and come to all of it; the paper's rule averages it and comes to 1/N, or less\n"
        f"({config.replicates} seeds; one line and one row of dots an agent; shares above 2 are not shown)."
    )
    return finish(figure, caption, folder / "shares.png")
