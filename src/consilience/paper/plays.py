"""The runs that the paper's figures are made of: an experiment each, with what of it the figure needs."""

from __future__ import annotations

import shlex
from typing import NamedTuple

CLOSELY = (1, 2, 3, 5, 7, 10, 15, 20)  # rounds at which curves differ most
OFTEN = (*CLOSELY, *range(25, 100, 5))
QUICK = "learner.estimator=weights"  # half the time of drawing outputs, which MNIST has by default
TRUSTS = {"star-mnist": (0.1, 0.2, 0.3, 0.5, 0.7), "star-fmnist": (0.3, 0.5, 0.7)}  # in the hub
STATED = {("star-fmnist", 0.7): 800}
PLAIN = ("learner.kl_weight=1.0", "learner.kl_growth=1.0")  # Bayes' rule as it is, without tempering


class Play(NamedTuple):
    """A run under a name of its own; its settings are those of `consilience run`."""

    name: str
    experiment: str
    settings: tuple[str, ...] = ()

    def command(self) -> str:
        """What a reader can type.

        >>> Play("quick", "star-mnist", ("rounds=3", "record_also=[1, 2]")).command()
        "consilience run star-mnist --set rounds=3 --set 'record_also=[1, 2]'"
        """
        words = [word for setting in self.settings for word in ("--set", setting)]
        return shlex.join(["consilience", "run", self.experiment, *words])


def record_also(rounds: tuple[int, ...]) -> str:
    """The setting that records these rounds besides."""
    return f"record_also={list(rounds)}"


def trusted(experiment: str, trust: float) -> Play:
    """A star with this trust, for 300 rounds, or as many as a stated number is for."""
    rounds = STATED.get((experiment, trust), 300)
    settings = (f"networks.cooperating.trust={trust}", f"rounds={rounds}", record_also(CLOSELY), QUICK)
    return Play(f"{experiment}-{trust}", experiment, settings)


def trusted_again(experiment: str, trust: float) -> Play:
    """The next two seeds of it, for 100 rounds: with the first, three for the order of the curves."""
    first = trusted(experiment, trust)
    settings = tuple("rounds=100" if setting.startswith("rounds=") else setting for setting in first.settings)
    return Play(f"{first.name}-seeds", experiment, (*settings, "seed=1", "replicates=2"))


def star(experiment: str, trusts: tuple[float, ...]) -> tuple[Play, ...]:
    """All trusts, with three seeds each."""
    return tuple(play(experiment, trust) for trust in trusts for play in (trusted, trusted_again))


LINEAR_REGRESSION = Play("linear-regression", "linear-regression")
THEOREM_1 = Play("theorem-1", "theorem-1")
STAR_MNIST = Play("star-mnist", "star-mnist", (record_also(CLOSELY),))
STAR_FMNIST = trusted("star-fmnist", 0.7)
PLAIN_MNIST = Play("star-mnist-plain", "star-mnist", (record_also(CLOSELY), *PLAIN))
PLAIN_FMNIST = Play("star-fmnist-plain", "star-fmnist", (record_also(CLOSELY), *PLAIN))
GRIDS = tuple(Play(name, name, (record_also(OFTEN), QUICK)) for name in ("grid-center", "grid-corner"))
AMBIGUOUS = tuple(
    Play(name, name, (record_also(CLOSELY), QUICK, "confusion=true"))
    for name in ("ambiguous-mnist", "ambiguous-mnist-setup3", "ambiguous-fmnist")
)
SETUPS = ("MNIST-Setup2", "MNIST-Setup3", "FMNIST-Setup2")  # what the paper calls them
ALIKE = (("4", "9"), ("4", "9"), ("coat", "pullover"))  # labels that look alike; in Setup2 the hub's, the edges'
TIME_VARYING = tuple(Play(name, name) for name in ("time-varying-25", "time-varying-100"))
