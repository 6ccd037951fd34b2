"""The parts of the paper: each with its runs, its claims and its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from consilience.errors import InputError, suggestion
from consilience.paper import claims, figures, plays
from consilience.paper.claims import Claim
from consilience.paper.plays import TRUSTS, Play
from consilience.paper.told import Runs


class Part(NamedTuple):
    """A figure or a theorem: its name, what it shows, its runs; claims and drawings are made of the finished runs."""

    name: str
    shows: str
    plays: tuple[Play, ...]
    claims: tuple[Callable[[Runs], Iterator[Claim]], ...]
    drawings: tuple[Callable[[Runs, Path], Path], ...] = ()


def _star(name: str, setup: str, stated: Play, plain: Play, paper: float, level: float) -> Part:
    """Fig. 2 for one dataset: all trusts, and the accuracy that the text states for one of them."""
    experiment, trusts = stated.experiment, TRUSTS[stated.experiment]
    return Part(
        name,
        f"{setup.partition('-')[0]} on a star: accuracy for {len(trusts)} trusts in the hub",
        tuple(dict.fromkeys((*plays.star(experiment, trusts), stated, plain))),
        (
            partial(claims.stars, experiment=experiment, trusts=trusts, figure=name, level=level),
            partial(claims.stated, play=stated, plain=plain, figure=name, name=setup, paper=paper),
        ),
        (
            lambda runs, folder: figures.stars(runs, experiment, trusts, folder / f"figure-{name}.png"),
            lambda runs, folder: figures.stated(runs, stated, plain, paper, folder / f"figure-{name}-stated.png"),
        ),
    )


def _confidences(experiment: str, of_edges: str, of_centre: str) -> tuple[Any, Any]:
    """Fig. 3 for one dataset: its claims and its drawing."""
    trusts, dataset = TRUSTS[experiment], experiment.removeprefix("star-")

    def told(runs: Runs) -> Iterator[Claim]:
        return claims.confidences(runs, experiment, trusts, f"3 ({dataset})", of_edges, of_centre)

    def drawn(runs: Runs, folder: Path) -> Path:
        return figures.confidences(runs, experiment, trusts, of_edges, of_centre, folder / f"figure-3-{dataset}.png")

    return told, drawn


def _confusion(number: int, play: Play) -> Callable[[Runs, Path], Path]:
    """Fig. 5's confusion matrices of one run."""
    return lambda runs, folder: figures.confusion(runs, number, folder / f"figure-5-confusion-{play.name}.png")


CONFIDENCES = _confidences("star-mnist", "0", "2"), _confidences("star-fmnist", "trouser", "coat")
PARTS = (
    Part(
        "1", "linear regression with and without cooperation", (plays.LINEAR_REGRESSION,), (claims.linear_regression,)
    ),
    Part("theorem-1", "the rate at which wrong hypotheses die out", (plays.THEOREM_1,), (claims.theorem_1,)),
    Part("centrality", "v of the star for every trust, and of the grid", (), (claims.centrality,)),
    _star("2a", "MNIST-Setup1, a = .5,", plays.STAR_MNIST, plays.PLAIN_MNIST, paper=0.9755, level=0.9),
    _star("2b", "FMNIST-Setup1, a = .7,", plays.STAR_FMNIST, plays.PLAIN_FMNIST, paper=0.8421, level=0.8),
    Part(
        "3",
        "confidence on known and unknown labels at hub and edges",
        tuple(plays.trusted(experiment, trust) for experiment, trusts in TRUSTS.items() for trust in trusts),
        tuple(told for told, _ in CONFIDENCES),
        tuple(drawn for _, drawn in CONFIDENCES),
    ),
    Part(
        "4",
        "an informed agent in the middle of a grid, or in a corner",
        plays.GRIDS,
        (claims.placement,),
        (lambda runs, folder: figures.placement(runs, folder / "figure-4.png"),),
    ),
    Part(
        "5",
        "labels that look alike, held by different agents",
        (*plays.AMBIGUOUS, plays.STAR_FMNIST),
        (claims.ambiguous, claims.confused),
        (
            lambda runs, folder: figures.ambiguous(runs, folder / "figure-5.png"),
            *(_confusion(number, play) for number, play in enumerate(plays.AMBIGUOUS)),
        ),
    ),
    Part("time-varying", "stars that change, 25 and 100 edges", plays.TIME_VARYING, (claims.time_varying,)),
)


def part_named(name: str) -> Part:
    """A part by its name."""
    known = {part.name: part for part in PARTS}
    if name not in known:
        raise InputError(f"figure: unknown '{name}'; {suggestion(name, known)}")
    return known[name]
