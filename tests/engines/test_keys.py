"""The law of keys: what is drawn for one purpose is never drawn for another, and bits are drawn from leaves only."""

from collections import defaultdict
from contextlib import contextmanager
from functools import wraps

import jax
import numpy as np
import pytest

from consilience.engines.arm import agent_key, data_key, measuring_key, round_key
from consilience.engines.simulate import Simulation, lanes
from consilience.experiments import arms, load

DRAWING = ("bernoulli", "bits", "categorical", "normal", "permutation", "randint", "uniform")
FOLDING = ("fold_in", "split")
SETTING_UP = "setting up"
DIGITS = ["model.hidden=[3]", "learner.epochs=2", "learner.batch=8", "samples=2"]


class Watch:
    """Every key from which bits are drawn, by what they are drawn for, and every key from which others are made."""

    def __init__(self, patch):
        self.purpose, self.drawn, self.folded = SETTING_UP, defaultdict(set), set()
        for name in DRAWING:
            patch.setattr(jax.random, name, self._noting(getattr(jax.random, name), lambda: self.drawn[self.purpose]))
        for name in FOLDING:
            patch.setattr(jax.random, name, self._noting(getattr(jax.random, name), lambda: self.folded))

    def _noting(self, function, notebook):
        @wraps(function)
        def noting(key, *arguments, **named):
            notes = notebook()  # of the purpose while the program is traced; the keys come while it runs
            jax.debug.callback(lambda words: notes.add(tuple(np.asarray(words).tolist())), jax.random.key_data(key))
            return function(key, *arguments, **named)

        return noting

    def watched(self, purpose, function):
        @wraps(function)
        def doing(*arguments):
            with self.doing(purpose):
                return function(*arguments)

        return doing

    @contextmanager
    def doing(self, purpose):
        before, self.purpose = self.purpose, purpose
        yield
        self.purpose = before


@pytest.mark.parametrize(
    ("experiment", "settings", "purposes"),
    [
        ("linear-regression", ["test_samples=3"], {SETTING_UP, "data"}),
        ("theorem-1", [], {"data"}),
        ("star-digits", DIGITS, {SETTING_UP, "data", "learning", "measuring"}),
        pytest.param(
            "star-digits",
            [*DIGITS, "learner.estimator=weights"],
            {SETTING_UP, "data", "learning", "measuring"},
            marks=pytest.mark.soak,
        ),
    ],
)
def test_bits_are_drawn_from_leaves_for_one_purpose(experiment, settings, purposes, monkeypatch):
    monkeypatch.setattr(lanes, "WIDEST", 2)  # no seeds but those that are asked for: watching takes its time
    watch = Watch(monkeypatch)
    arm = list(arms(load(experiment, [*settings, "replicates=2"])).values())[-1]
    agent = arm.agent._replace(
        init=watch.watched("init", arm.agent.init), learn=watch.watched("learning", arm.agent.learn)
    )
    draw, measure = watch.watched("data", arm.draw), watch.watched("measuring", arm.measure)
    simulation = Simulation(arm._replace(agent=agent, draw=draw, measure=measure), seeds=[0, 1])
    simulation.play(1, [2, 4], [True, True], simulation.start())
    jax.effects_barrier()
    assert {purpose for purpose, keys in watch.drawn.items() if keys} == purposes
    assert sum(map(len, watch.drawn.values())) == len(set().union(*watch.drawn.values()))
    later = set().union(*(keys for purpose, keys in watch.drawn.items() if purpose != SETTING_UP))
    assert not later & watch.folded
    # The layers' keys of the initial weights are round keys too: nothing else may draw from a round key (see `arm`).
    rounds = {words(round_key(seed, number)) for seed in (0, 1) for number in range(200)}
    assert watch.drawn[SETTING_UP] & watch.folded <= rounds
    assert not later & rounds


def test_the_keys_of_a_round_have_nothing_in_common():
    """Rounds, and in each of them learning, data and measuring of every agent."""
    keys = [words(round_key(seed, number)) for seed in range(3) for number in range(8)]
    for seed in range(3):
        for number in range(8):
            key = round_key(seed, number)
            keys += [words(agent_key(of, i)) for of in (key, data_key(key), measuring_key(key)) for i in range(6)]
    assert len(set(keys)) == len(keys)


def words(key) -> tuple[int, ...]:
    return tuple(np.asarray(jax.random.key_data(key)).tolist())
