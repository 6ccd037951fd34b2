"""What a finished run tells: a small value that outlives the run's folder, and what claims and figures ask of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from consilience.paper.plays import Play, trusted, trusted_again


class Told(NamedTuple):
    """A finished run in its first arm: where it came from, how it went and its summary.

    Of runs that are not about labels there is the summary alone; everything from `by_seed` on is empty.
    """

    name: str
    configuration: Mapping[str, Any]
    facts: Mapping[str, Any]  # command, seeds, hours, versions, commit, machine
    summary: Mapping[str, Any]
    rounds: Int[np.ndarray, "rounds"]  # those that were recorded
    by_seed: Float[np.ndarray, "rounds seeds"]  # accuracy averaged over agents
    by_agent: Float[np.ndarray, "rounds agents"]  # accuracy averaged over seeds
    confidences: Mapping[str, Mapping[str, np.ndarray]]  # at the centre, and averaged over the edges; by label
    confusions: Mapping[str, Float[np.ndarray, "labels labels"]]  # of the same at the end, where it was recorded
    label_names: tuple[str, ...]
    counts: Int[np.ndarray, "agents labels"]  # examples of each label that every agent holds

    def confidence(self, label: str, who: str) -> Float[np.ndarray, "rounds"]:
        """Mean confidence on a label over rounds: of the centre, or averaged over the edges."""
        return self.confidences[who][label]

    def taken_for(self, true: str, chosen: str, who: str) -> float:
        """The share of a label's test examples that is taken for another label at the end."""
        return float(self.confusions[who][self.label_names.index(true), self.label_names.index(chosen)])

    def commonest_mistake(self, who: str) -> tuple[str, str]:
        """The label that is most often taken for one other, and that other one."""
        wrong = self.confusions[who] * (1 - np.eye(len(self.label_names)))
        true, chosen = np.unravel_index(wrong.argmax(), wrong.shape)
        return self.label_names[true], self.label_names[chosen]

    def holds(self, label: str, who: str) -> bool:
        """Whether the centre, or an edge, has examples of a label."""
        centre = centre_of(self.counts)
        agent = centre if who == "centre" else (centre + 1) % len(self.counts)
        return bool(self.counts[agent, self.label_names.index(label)] > 0)

    def rounds_to(self, level: float) -> float | None:
        """The round at which the average accuracy first reaches a level, between records by a straight line."""
        rounds, accuracy = self.rounds, self.by_seed.mean(axis=1)
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
        return float(self.by_seed[-1].mean())


Runs = Mapping[str, Told]


def centre_of(counts: Int[np.ndarray, "agents labels"]) -> int:
    """The agent with the most labels.

    >>> centre_of(np.array([[5, 0, 0], [5, 2, 9]]))
    1
    """
    return int((counts > 0).sum(axis=1).argmax())


def of(runs: Runs, play: Play) -> Told:
    """The run of a play."""
    return runs[play.name]


def by_seed(runs: Runs, experiment: str, trust: float, number: int) -> Float[np.ndarray, "seeds"]:
    """The average accuracy of every seed of a star with some trust, after this many rounds."""
    both = [of(runs, play(experiment, trust)) for play in (trusted, trusted_again)]
    return np.concatenate([told.by_seed[told.rounds == number][0] for told in both])


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """The mean of some seeds and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def rising(values: Sequence[float]) -> bool:
    """Whether each is above the one before."""
    return all(later > earlier for earlier, later in pairwise(values))
