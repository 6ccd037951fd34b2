"""What finished runs tell: accuracies, confidences and how many rounds it took, read from their records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from consilience.paper.plays import Play, trusted, trusted_again
from consilience.runs.description import RunConfig
from consilience.runs.record import Record


class Told(NamedTuple):
    """A run: what it was to do, what happened, and its summary."""

    config: RunConfig
    record: Record
    summary: Mapping[str, object]

    def arm(self) -> str:
        """Its first arm."""
        return self.record.arms()[0]

    def rounds(self) -> np.ndarray:
        """The recorded rounds."""
        return self.record.rounds(self.arm())

    def centre(self) -> int:
        """The agent with the most labels."""
        return int((np.array(self.record.shares["counts"]) > 0).sum(1).argmax())

    def averages(self) -> np.ndarray:
        """Accuracy averaged over agents, of shape (rounds, seeds)."""
        return np.asarray(self.record.each(self.arm(), "accuracy").mean(axis=2))

    def confidence(self, label: str, who: str) -> np.ndarray:
        """Mean confidence on a label over rounds: of the centre, or averaged over the edges."""
        values = self.record.select(self.arm(), f"confidence_{label}")
        mine = values[:, [self.centre()]] if who == "centre" else np.delete(values, self.centre(), axis=1)
        return np.asarray(mine.mean(axis=1))

    def rounds_to(self, level: float) -> float | None:
        """The round at which the average accuracy first reaches a level, between records by a straight line."""
        rounds, accuracy = self.rounds(), self.averages().mean(axis=1)
        reached = np.flatnonzero(accuracy >= level)
        if not reached.size:
            return None
        n = int(reached[0])
        if n == 0:
            return float(rounds[0])
        share = (level - accuracy[n - 1]) / (accuracy[n] - accuracy[n - 1])
        return float(rounds[n - 1] + share * (rounds[n] - rounds[n - 1]))

    def last(self) -> float:
        """The average accuracy at the end."""
        return float(self.averages()[-1].mean())


Runs = Mapping[str, Told]


def of(runs: Runs, play: Play) -> Told:
    """The run of a play."""
    return runs[play.name]


def by_seed(runs: Runs, experiment: str, trust: float, number: int) -> np.ndarray:
    """The average accuracy of every seed of a star with some trust, after this many rounds."""
    both = [of(runs, play(experiment, trust)) for play in (trusted, trusted_again)]
    return np.concatenate([told.averages()[told.rounds() == number][0] for told in both])


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """The mean of some seeds and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def rising(values: Sequence[float]) -> bool:
    """Whether each is above the one before."""
    return all(later > earlier for earlier, later in pairwise(values))
