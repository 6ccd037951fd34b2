"""The parts of the paper: each with its runs, its claims and its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from consilience.errors import InputError, suggestion
from consilience.paper import claims, figures, plays
from consilience.paper.claims import Claim
from consilience.paper.plays import FASHION_TRUSTS, MNIST_TRUSTS, Play
from consilience.paper.told import Runs


class Part(NamedTuple):
    """A figure or a theorem: its name, what it shows, its runs; claims and drawings are made of the finished runs."""

    name: str
    shows: str
    plays: tuple[Play, ...]
    claims: tuple[Callable[[Runs], Iterator[Claim]], ...]
    drawings: tuple[Callable[[Runs, Path], Path], ...] = ()


PARTS = (
    Part(
        "1", "linear regression with and without cooperation", (plays.LINEAR_REGRESSION,), (claims.linear_regression,)
    ),
    Part("theorem-1", "the rate at which wrong hypotheses die out", (plays.THEOREM_1,), (claims.theorem_1,)),
    Part(
        "2a",
        "MNIST on a star: accuracy for five trusts in the hub",
        (*plays.star("star-mnist", MNIST_TRUSTS), plays.STAR_MNIST, plays.PLAIN_MNIST),
        (
            claims.centrality,
            partial(claims.stars, experiment="star-mnist", trusts=MNIST_TRUSTS, figure="2a", level=0.9),
            partial(
                claims.stated,
                play=plays.STAR_MNIST,
                plain=plays.PLAIN_MNIST,
                figure="2a",
                name="MNIST-Setup1, a = .5,",
                paper=0.9755,
            ),
        ),
        (lambda runs, folder: figures.stars(runs, "star-mnist", MNIST_TRUSTS, folder / "figure-2a.png"),),
    ),
    Part(
        "2b",
        "Fashion-MNIST on a star: accuracy for three trusts in the hub",
        (*plays.star("star-fmnist", FASHION_TRUSTS), plays.STAR_FMNIST, plays.PLAIN_FMNIST),
        (
            partial(claims.stars, experiment="star-fmnist", trusts=FASHION_TRUSTS, figure="2b", level=0.8),
            partial(
                claims.stated,
                play=plays.STAR_FMNIST,
                plain=plays.PLAIN_FMNIST,
                figure="2b",
                name="FMNIST-Setup1, a = .7,",
                paper=0.8421,
            ),
        ),
        (lambda runs, folder: figures.stars(runs, "star-fmnist", FASHION_TRUSTS, folder / "figure-2b.png"),),
    ),
    Part(
        "3",
        "confidence on known and unknown labels at hub and edges",
        tuple(plays.trusted("star-mnist", trust) for trust in MNIST_TRUSTS)
        + tuple(plays.trusted("star-fmnist", trust) for trust in FASHION_TRUSTS),
        (
            partial(
                claims.confidences,
                experiment="star-mnist",
                trusts=MNIST_TRUSTS,
                figure="3 (MNIST)",
                of_edges="0",
                of_centre="2",
            ),
            partial(
                claims.confidences,
                experiment="star-fmnist",
                trusts=FASHION_TRUSTS,
                figure="3 (FMNIST)",
                of_edges="trouser",
                of_centre="coat",
            ),
        ),
        (
            lambda runs, folder: figures.confidences(
                runs, "star-mnist", MNIST_TRUSTS, "0", "2", folder / "figure-3-mnist.png"
            ),
            lambda runs, folder: figures.confidences(
                runs, "star-fmnist", FASHION_TRUSTS, "trouser", "coat", folder / "figure-3-fmnist.png"
            ),
        ),
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
        (claims.ambiguous,),
        (lambda runs, folder: figures.ambiguous(runs, folder / "figure-5.png"),),
    ),
    Part("time-varying", "stars that change, 25 and 100 edges", plays.TIME_VARYING, (claims.time_varying,)),
)


def part_named(name: str) -> Part:
    """A part by its name."""
    known = {part.name: part for part in PARTS}
    if name not in known:
        raise InputError(f"figure: unknown '{name}'; {suggestion(name, known)}")
    return known[name]
