"""What the paper says, and whether it holds here: every claim with both numbers, computed from finished runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from consilience.network import grid, star
from consilience.paper import plays
from consilience.paper.plays import Play, trusted, trusted_again
from consilience.paper.told import Runs, by_seed, mean_and_error, of, rising
from consilience.theory import mean_log_ratio, stationary

ORDERED_AT = (10, 25, 50, 100)  # rounds at which curves of several trusts are put into order
LOW = 0.5  # "remains low": the true label is not believed more than all others together
STATED_CENTRALITY = {0.1: 0.10, 0.2: 0.18, 0.3: 0.25, 0.5: 0.36, 0.7: 0.44}


class Claim(NamedTuple):
    """A sentence of the paper, what it reports, what was found here and how to find it."""

    figure: str
    claim: str
    paper: str
    here: str
    holds: bool | None  # where the paper says nothing, None
    command: str


def as_markdown(claims: Iterable[Claim]) -> str:
    """The claims as a table of a document."""
    words = {True: "yes", False: "**no**", None: "–"}
    rows = [(c.figure, c.claim, c.paper, c.here, words[c.holds], f"`{c.command}`") for c in claims]
    table = [("figure", "claim", "paper", "here", "holds", "command"), ("---",) * 6, *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n" for row in table)


def linear_regression(runs: Runs) -> Iterator[Claim]:
    """Fig. 1."""
    arms = of(runs, plays.LINEAR_REGRESSION).summary["arms"]
    command = plays.LINEAR_REGRESSION.command()
    for arm, text, low, high in (
        ("cooperating", "MSE of cooperating agents falls to a central agent's", 0.0, 1.01),
        ("alone", "without cooperation it does not", 1.1, np.inf),
    ):
        ratio = arms[arm]["mse_over_central"]
        yield Claim("1", text, "curves", f"{ratio:.4g} × central", low <= ratio <= high, command)


def theorem_1(runs: Runs) -> Iterator[Claim]:
    """Theorem 1, for which the paper has no experiment."""
    told, command = of(runs, plays.THEOREM_1), plays.THEOREM_1.command()
    networks = told.summary["networks"]
    off = max(abs(row["decay_over_K"] - 1) for row in networks.values())
    text = f"wrong hypotheses die out at the rate K(Θ), {len(networks)} networks"
    yield Claim("Theorem 1", text, "K(Θ)", f"within {off:.2%}", off < 0.01, command)
    held = [row["event_measured"] for row in networks.values() if row["event_measured"] is not None]
    text = "from the corrected n on, the event has probability at least 1 − δ"
    promised = 1 - told.summary["delta"]
    yield Claim("Theorem 1", text, f"{promised:.0%}", f"{min(held):.1%}", min(held) >= promised, command)


def centrality(runs: Runs) -> Iterator[Claim]:
    """v_1 of the star (supplement), and v of the grid."""
    here = {a: float(stationary(star(8, a))[0]) for a in STATED_CENTRALITY}
    same = all(abs(here[a] - stated) < 0.0051 for a, stated in STATED_CENTRALITY.items())
    stated, ours = (" ".join(f"{v:.2f}"[1:] for v in values.values()) for values in (STATED_CENTRALITY, here))
    text = "v₁ of the star for a = " + " ".join(f"{a:.1f}"[1:] for a in here)
    yield Claim("2", text, stated, ours, same, "consilience theory star --trust 0.5")
    network = grid(3, 3)
    v, neighbours = stationary(network), np.diff(network.W.tocsr().indptr)
    off = float(np.abs(v / (neighbours / neighbours.sum()) - 1).max())
    found = "to nine digits" if off < 1e-9 else f"off by {off:.1e}"
    yield Claim("4", "v of the grid is proportional to |N(i)|", "v ∝ |N(i)|", found, off < 1e-9, GRID_THEORY)


GRID_THEORY = "consilience theory grid --rows 3 --columns 3"


def stars(runs: Runs, experiment: str, trusts: Sequence[float], figure: str, level: float) -> Iterator[Claim]:
    """Fig. 2: accuracy and its rate rise with the trust in the hub."""
    again = trusted_again(experiment, trusts[0]).command()
    list_of_trusts = " ".join(f"{a:.1f}"[1:] for a in trusts)
    for number in ORDERED_AT:
        seeds = [by_seed(runs, experiment, trust, number) for trust in trusts]
        means = [mean_and_error(values) for values in seeds]
        text = f"accuracy after {number} rounds rises with a = {list_of_trusts} ({len(seeds[0])} seeds)"
        here = " ".join(f"{mean:.1%}±{error:.1%}" for mean, error in means)
        yield Claim(figure, text, "rises", here, rising([mean for mean, _ in means]), again)
    needed = [of(runs, trusted(experiment, trust)).rounds_to(level) for trust in trusts]
    here = " ".join("never" if n is None else f"{n:.0f}" for n in needed)
    faster = rising([-np.inf if n is None else -n for n in needed])
    text = f"rounds to {level:.0%} fall with a"
    yield Claim(figure, text, "fall", here, faster, trusted(experiment, trusts[0]).command())


def stated(runs: Runs, play: Play, plain: Play, figure: str, name: str, paper: float) -> Iterator[Claim]:
    """The averages that the text states, with tempering as chosen here and by Bayes' rule as it is."""
    for run, text in ((play, ""), (plain, ", plain rule (kl_weight 1, no growth)")):
        here = of(runs, run).last()
        rounds = of(runs, run).rounds[-1]
        claim = f"average accuracy on {name} after {rounds} rounds{text}"
        yield Claim(figure, claim, f"{paper:.2%}", f"{here:.2%}", here >= paper, run.command())


def confidences(
    runs: Runs, experiment: str, trusts: Sequence[float], figure: str, of_edges: str, of_centre: str
) -> Iterator[Claim]:
    """Fig. 3: confidence on a label that only the edges hold, and on one that only the centre holds."""
    command = trusted(experiment, trusts[0]).command()
    for who, known, unknown in (("centre", of_centre, of_edges), ("edges", of_edges, of_centre)):
        gaps = []
        for trust in trusts:
            told = of(runs, trusted(experiment, trust))
            gaps.append(told.confidence(known, who) - told.confidence(unknown, who))
        above, count = sum(int((gap > 0).sum()) for gap in gaps), sum(map(len, gaps))
        text = f"confidence at the {who} on {known} (ID) is above that on {unknown} (OOD)"
        lowest = min(float(gap.min()) for gap in gaps)
        here = f"at {above} of {count} recorded rounds of all a; least {lowest:+.3f}"
        yield Claim(figure, text, "everywhere", here, above == count, command)
    for number in ORDERED_AT:
        values = []
        for trust in trusts:
            told = of(runs, trusted(experiment, trust))
            values.append(float(told.confidence(of_centre, "edges")[told.rounds == number][0]))
        text = f"OOD confidence at the edges ({of_centre}) after {number} rounds grows with a"
        yield Claim(figure, text, "grows", " ".join(f"{value:.3f}" for value in values), rising(values), command)


def placement(runs: Runs) -> Iterator[Claim]:
    """Fig. 4: the informed agent in the middle of the grid, or in a corner."""
    middle, corner = (of(runs, play) for play in plays.GRIDS)
    for level in (0.9, 0.95):
        needed = {where: told.rounds_to(level) for where, told in (("middle", middle), ("corner", corner))}
        near, far = needed.values()
        text = f"average accuracy reaches {level:.0%} in fewer rounds with the informed agent in the middle"
        here = ", ".join(f"{where} {'never' if n is None else f'{n:.0f}'}" for where, n in needed.items())
        if near is not None and far is not None:
            here += f" (theory, given the middle's: {predicted_rounds(near):.0f})"
        holds = near is not None and (far is None or near < far)
        yield Claim("4", text, "faster", here, holds, plays.GRIDS[1].command())
    ends = [told.last() for told in (middle, corner)]
    text = f"average accuracy after {middle.rounds[-1]:,} rounds is higher with it in the middle"
    here = f"middle {ends[0]:.2%}, corner {ends[1]:.2%}"
    yield Claim("4", text, "higher", here, ends[0] > ends[1], plays.GRIDS[1].command())


def predicted_rounds(middle: float) -> float:
    """When agents of a grid know as much from the corner as they did at this round from the middle.

    The labels that only the informed agent holds stand for one unit of information a round there and none elsewhere.
    What the agents then hold of it on average after n rounds is the exact mean of their log ratio.
    """
    network, rounds = grid(3, 3), np.arange(1, int(12 * middle) + 20)
    held = [mean_log_ratio(network, np.eye(9)[place], rounds.tolist()).mean(axis=1) for place in (4, 0)]
    return float(np.interp(np.interp(middle, rounds, held[0]), held[1], rounds))


def ambiguous(runs: Runs) -> Iterator[Claim]:
    """Fig. 5: labels that look alike, held by different agents."""
    setup_2, setup_3, fashion_2 = (of(runs, play) for play in plays.AMBIGUOUS)
    fashion_1 = of(runs, plays.STAR_FMNIST)
    on_2, on_3, on_fashion = (play.command() for play in plays.AMBIGUOUS)
    for label, who in (("9", "centre"), ("4", "edges")):
        here = float(setup_2.confidence(label, who)[-1])
        text = f"MNIST-Setup2: confidence on {label} at the {who} remains low (below {LOW})"
        yield Claim("5", text, "low", f"{here:.3f}", here < LOW, on_2)
    for play, told in zip(plays.AMBIGUOUS[:2], (setup_2, setup_3), strict=True):
        text = f"{play.name}: average accuracy (the paper shows confidences only)"
        yield Claim("5", text, "–", f"{told.last():.2%}", None, play.command())
    both = [float(setup_3.confidence(label, "centre")[-1]) for label in ("4", "9")]
    text = "MNIST-Setup3 (edges hold both 4 and 9): confidence at the centre on 4 and 9"
    yield Claim("5", text, "–", f"{both[0]:.3f} {both[1]:.3f}", None, on_3)
    average = fashion_2.last()
    yield Claim("5", "average accuracy on FMNIST-Setup2", "69.70%", f"{average:.2%}", average >= 0.697, on_fashion)
    text = "it is far below FMNIST-Setup1's (84.21 → 69.7 %: by more than 10 points)"
    falls = f"{fashion_1.last():.2%} → {average:.2%}"
    yield Claim("5", text, "falls", falls, fashion_1.last() - average > 0.1, on_fashion)
    coat = [float(told.confidence("coat", "edges")[-1]) for told in (fashion_2, fashion_1)]
    text = f"FMNIST-Setup2: confidence on coat at the edges is low (below {LOW}), in Setup1 it is not"
    yield Claim("5", text, "low", f"{coat[0]:.3f} against {coat[1]:.3f}", coat[0] < LOW <= coat[1], on_fashion)


def confused(runs: Runs) -> Iterator[Claim]:
    """Fig. 5: what is taken for what, which the paper does not count."""
    for play, setup, (of_centre, of_edges) in zip(plays.AMBIGUOUS, plays.SETUPS, plays.ALIKE, strict=True):
        told = of(runs, play)
        for who, true, chosen in (("centre", of_edges, of_centre), ("edges", of_centre, of_edges)):
            text = f"{setup}: {true} taken for {chosen} at the {who}"
            yield Claim("5", text, "–", f"{told.taken_for(true, chosen, who):.1%}", None, play.command())
        worst = {who: told.commonest_mistake(who) for who in ("centre", "edges")}
        here = "; ".join(
            f"{who}: {true} for {chosen}, {told.taken_for(true, chosen, who):.1%}"
            for who, (true, chosen) in worst.items()
        )
        yield Claim("5", f"{setup}: the most frequent mistake", "–", here, None, play.command())


def time_varying(runs: Runs) -> Iterator[Claim]:
    """The stars that change (supplement)."""
    for play, edges, average, centre in zip(plays.TIME_VARYING, (25, 100), (0.956, 0.923), (0.951, 0.931), strict=True):
        told = of(runs, play)
        of_hub = float(told.by_agent[-1, 0])
        for text, paper, here in (("average", average, told.last()), ("centre's", centre, of_hub)):
            claim = f"changing star of {edges} edges: {text} accuracy"
            yield Claim("S", claim, f"{paper:.1%}", f"{here:.2%}", here >= paper, play.command())
