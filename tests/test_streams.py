"""Every purpose draws its own numbers, and nothing draws any other way."""

import ast
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import consilience
from consilience.described.networks import Changes, ErdosRenyi
from consilience.errors import InputError
from consilience.network import Asynchronous, Churn, Fixed, Lossy, Presence, complete, from_matrix
from consilience.streams import PURPOSES, stream

ROOT = Path(consilience.__file__).parent


def test_no_two_streams_are_the_same():
    """All purposes, seeds, numbers and layers, among them those that NumPy would fill up to the same words."""
    states = {}
    words = [*range(6), 2**31, 2**32 - 1]
    for purpose in PURPOSES:
        for which in product(words, words, words) if purpose != "partition" else product(words):
            state = stream(purpose, *which).bit_generator.state["state"]
            assert states.setdefault((state["state"], state["inc"]), (purpose, *which)) == (purpose, *which)
    assert len(set(PURPOSES.values())) == len(PURPOSES)


def test_a_partition_is_drawn_from_its_seed_alone():
    """As in every published record."""
    np.testing.assert_array_equal(stream("partition", 7).random(5), np.random.default_rng(7).random(5))


def test_what_has_no_stream_is_refused():
    for bad, message in (
        (("loos", 0), "purpose: no stream for 'loos'; did you mean 'loss'?"),
        (("loss", -1), "seed: must be from 0 to 2³² − 1, got -1"),
        (("loss", 2**32), "seed: must be from 0 to 2³² − 1, got 4294967296"),
        (("loss", 0, 2**32), "number: must be from 0 to 2³² − 1, got 4294967296"),
        (("loss", 0, 0, -1), "layer: must be from 0 to 2³² − 1, got -1"),
        (("partition", 0, 1), "number: a partition is drawn once, got 1"),
        (("partition", 0, 0, 1), "layer: a partition is drawn once, got 1"),
    ):
        with pytest.raises(InputError) as caught:
            stream(*bad)
        assert str(caught.value) == message


@pytest.mark.parametrize("description", [Changes, ErdosRenyi])
def test_descriptions_bound_their_seeds(description):
    assert description(seed=2**32 - 1).seed == 2**32 - 1
    with pytest.raises(ValueError, match="less than 4294967296"):
        description(seed=2**32)


@pytest.mark.parametrize("loss", [0.3, 0.6])
def test_the_first_message_after_coming_back_is_lost_as_often_as_any_other(loss):
    """Two agents that hear only each other come and go; loss and churn have one seed, as a description gives them."""
    turns = 6000
    two = Changes(loss=loss, up=6, down=4, seed=0).build(from_matrix([[0.0, 1.0], [1.0, 0.0]]))
    assert isinstance(two, Lossy)
    assert isinstance(two.schedule, Churn)
    assert isinstance(two.schedule.schedule, Fixed)
    there = np.array([two.schedule.presence.at(number) for number in range(turns + 1)])
    back = [n for n in range(1, turns + 1) if there[n].all() and not there[n - 1, 0]]
    lost = [not (two.turn(n).senders[two.turn(n).receivers == 0] == 1).any() for n in back]
    assert len(back) > 200
    assert abs(np.mean(lost) - loss) < 4 * np.sqrt(loss * (1 - loss) / len(back))


def test_loss_within_loss_is_independent_of_it():
    """Made by hand with one seed, with anything between them: what is lost first says nothing on what is lost next."""
    inner = Lossy(Fixed(from_matrix([[0.5, 0.5], [0.5, 0.5]])), 0.5, seed=3)
    for between in (inner, Churn(inner, 1e9, 1), Lossy(inner, 0.0, seed=3)):
        outer = Lossy(between, 0.5, seed=3)
        once, twice = (np.sum([len(each.turn(n).senders) - 2 for n in range(1, 600)]) for each in (inner, outer))
        assert abs(twice / once - 0.5) < 4 * np.sqrt(0.25 / once)


@pytest.mark.parametrize(
    "inner",
    [
        lambda network: Churn(Fixed(network), 3, 3, seed=5),
        lambda network: Lossy(Churn(Fixed(network), 3, 3, seed=5), 0.1, seed=5),
        lambda network: Asynchronous(network, np.ones(40), presence=Presence(40, 3, 3, seed=5)),
    ],
)
def test_churn_within_churn_is_independent_of_it(inner):
    """Also around clocks that have a presence of their own: half of those that are there twice are there once."""
    schedule = inner(complete(40))
    outer = Churn(schedule, 3, 3, seed=5)
    rounds = range(20, 120)
    once, twice = (np.sum([len(each.turn(n).learners) for n in rounds]) for each in (schedule, outer))
    assert abs(twice / once - 0.5) < 4 * np.sqrt(3 * 0.25 / once)  # an agent's rounds hang together: a third count


def test_random_numbers_come_from_streams_only():
    """No module makes a generator of its own."""
    offenders = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if _draws(node) and str(file.relative_to(ROOT)) != "streams.py"
    ]
    assert not offenders


def _draws(node: ast.AST) -> bool:
    """Whether a piece of a program is `np.random`, `numpy.random`, `default_rng` or the module `random`."""
    if isinstance(node, ast.Attribute):
        return node.attr == "default_rng" or (node.attr == "random" and ast.unparse(node.value) in ("np", "numpy"))
    if isinstance(node, ast.ImportFrom):
        return node.module in ("random", "numpy.random") or (
            node.module == "numpy" and any(alias.name == "random" for alias in node.names)
        )
    return isinstance(node, ast.Import) and any(alias.name in ("random", "numpy.random") for alias in node.names)
