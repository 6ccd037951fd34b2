"""Rosters: members can be told apart, weights are those of the links there are, and only newer ones are taken."""

import time

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from people import STUDY, bundle, member, person, roster

from consilience.engines.peers.bundle import Bundle, newer
from consilience.engines.peers.links import RULES, Link, laid, mutual, named_pairs, read_links
from consilience.engines.peers.place import agreed_on, place_of
from consilience.engines.peers.reception import Reception, nobody
from consilience.engines.peers.roster import Removed, Roster
from consilience.engines.peers.study import Study
from consilience.engines.peers.wire.schema import Leaf, Schema
from consilience.errors import InputError
from consilience.network import check, complete, metropolis, ring

NAMES = ("north", "south", "east", "west", "hill")


def gone(name, number=9, epoch=2):
    return Removed(number, name, person(name).id, epoch)


# Who is in it


def test_two_members_with_one_name_or_one_key_or_one_number():
    made = roster("north", "south")
    for other, line in (
        (member(2, person("north", days=3)), "two members are called 'north'"),
        (member(2, person("North")), "two members are called 'north'"),
        (member(2, person("north"))._replace(name="other"), "two members have one key"),
        (member(1, person("east")), "two members have one number"),
        (member(2, person("east"))._replace(id=person("west").id), "its certificate is of another key"),
        (member(2, person("east"))._replace(name="a b"), "name: must be 1 to 60 letters"),
        (member(2, person("east"))._replace(address="x"), "address: must be HOST:PORT"),
    ):
        with pytest.raises(InputError, match=f"^it: .*{line}") as error:
            made._replace(members=(*made.members, other)).check("it")
        assert len(str(error.value).splitlines()) == 1


def test_a_key_that_was_removed_is_no_members():
    with pytest.raises(InputError, match="it: 'south' was removed in epoch 2 and cannot come back"):
        roster("north", "south", removed=[gone("south")]).check("it")
    with pytest.raises(InputError, match="it: a key was removed twice"):
        roster("north", removed=[gone("south"), gone("south", 8)]).check("it")


def test_members_are_found_by_key_and_by_name():
    made = roster("north", "south", numbers=[3, 7], removed=[gone("east")])
    assert made.numbers == (3, 7)
    assert made.member(person("south").id).number == made.number("south") == 7
    assert made.member(person("east").id) is None
    assert made.tombstone(person("east").id).epoch == 2
    with pytest.raises(InputError, match=r"member: nobody is called 'nort'; did you mean 'north'\?"):
        made.number("nort")
    with pytest.raises(InputError, match="there are no members yet"):
        Roster(STUDY.hash, 0).number("north")


@pytest.mark.parametrize(
    "change",
    [
        {"epoch": "1"},
        {"epoch": 1.0},
        {"epoch": True},
        {"epoch": -1},
        {"study": "x"},
        {"more": 1},
        {"members": {}},
        {"members": [{}]},
        {"members": [[0, "north"]]},
        {"links": [[0]]},
        {"links": [[0, 1, 1]]},
        {"links": [[0, 1, None]]},
        {"links": [[0, 1, "a"]]},
        {"removed": [1]},
    ],
)
def test_values_of_other_forms(change):
    values = {**roster("north", "south").values(), **change}
    with pytest.raises(InputError, match=r"^it: is not as a roster is written") as error:
        Roster.of(values, "it")
    assert len(str(error.value).splitlines()) == 1


def test_values_read_back():
    made = roster("north", "south", links=(Link(0, 1, 0.1), Link(1, 0, 1.0)), removed=[gone("east")])
    assert Roster.of(made.values(), "it") == made


# Who hears whom


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_metropolis_of_the_links_there_are(data):
    """Removing members gives the weights that the graph of those who are left has."""
    N = data.draw(st.integers(1, 5))
    numbers = sorted(data.draw(st.sets(st.integers(0, 40), min_size=N, max_size=N)))
    pairs = [pair for pair in ((a, b) for a in numbers for b in numbers if a < b) if data.draw(st.booleans())]
    made = roster(*NAMES[:N], numbers=numbers, links=mutual(pairs))
    made.check("it")
    graph = nx.Graph()
    graph.add_nodes_from(numbers)
    graph.add_edges_from(pairs)
    expected = metropolis(sp.csr_array(nx.to_scipy_sparse_array(graph, nodelist=numbers, dtype=float))).toarray()
    network = made.weights()
    np.testing.assert_array_equal(network.W.toarray(), expected)
    np.testing.assert_allclose(network.W.sum(axis=1), 1, rtol=1e-15)
    assert network.names == NAMES[:N]
    for row, number in enumerate(numbers):
        heard = made.row(number)
        assert heard == {numbers[j]: w for j, w in enumerate(expected[row]) if w}
        assert sum(heard.values()) == pytest.approx(1, rel=1e-15)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_trusts_as_they_are_given(data):
    N = data.draw(st.integers(2, 5))
    links = []
    for hearer in range(N):
        heard = [other for other in range(N) if other != hearer and data.draw(st.booleans())]
        total = data.draw(st.floats(0.01, 1))
        links += [Link(hearer, other, total / len(heard)) for other in heard]
    made = roster(*NAMES[:N], links=tuple(links))
    made.check("it")
    W = made.weights().W.toarray()
    np.testing.assert_allclose(W.sum(axis=1), 1, rtol=1e-12)
    assert (W >= 0).all()
    for link in links:
        assert W[link.hearer, link.heard] == made.row(link.hearer)[link.heard] == link.trust
    assert np.count_nonzero(W - np.diag(np.diag(W))) == len(links)


def test_trust_in_somebody_who_left_is_ones_own():
    links = (Link(0, 1, 0.25), Link(0, 2, 0.5), Link(1, 0, 0.5), Link(2, 0, 0.5))
    made = roster("north", "south", "east", links=links)
    assert made.row(0) == {0: 0.25, 1: 0.25, 2: 0.5}
    left = made._replace(members=made.members[:2], links=tuple(link for link in links if 2 not in link[:2]))
    assert left.row(0) == {0: 0.75, 1: 0.25}
    with pytest.raises(InputError, match="number 2 is not in the roster"):
        left.row(2)


def test_decimal_fractions_that_sum_to_one():
    made = roster(
        *NAMES[:4], links=tuple(Link(0, other, trust) for other, trust in zip((1, 2, 3), (0.7, 0.2, 0.1), strict=True))
    )
    made.check("it")
    assert sum(made.row(0).values()) == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize(
    ("links", "line"),
    [
        ([Link(0, 5)], "a link must be between two members, got 0 and 5"),
        ([Link(0, 0, 0.5)], "a link must be between two members, got 0 and 0"),
        ([Link(0, 1)], "without trusts links go both ways, 'south' must hear 'north', too"),
        ([Link(0, 1), Link(1, 0, 0.5)], "either every link has a trust or none"),
        ([Link(0, 1, 0.5), Link(0, 1, 0.2)], "a link is there twice"),
        ([Link(0, 1, 0.0)], "'north' must trust 'south' by more than 0 and at most 1, got 0"),
        ([Link(0, 1, -0.1)], "at most 1, got -0.1"),
        ([Link(0, 1, 1.5)], "at most 1, got 1.5"),
        ([Link(0, 1, float("nan"))], "at most 1, got nan"),
        ([Link(0, 1, 0.7), Link(0, 2, 0.4)], "the trusts of 'north' must sum to at most 1, got 1.1"),
    ],
)
def test_links_that_cannot_be(links, line):
    with pytest.raises(InputError, match=r"^it: .*") as error:
        roster("north", "south", "east", links=tuple(links)).check("it")
    assert line in str(error.value)


def test_rules_lay_the_usual_networks():
    numbers = [2, 3, 5, 7]
    for name, expected in (("ring", ring(4, "metropolis")), ("complete", complete(4, "metropolis"))):
        made = roster(*NAMES[:4], numbers=numbers, links=laid(name, numbers))
        np.testing.assert_allclose(made.weights().W.toarray(), expected.W.toarray())
        check(made.weights())
    assert {link[:2] for link in laid("star", numbers)} == {(2, n) for n in (3, 5, 7)} | {(n, 2) for n in (3, 5, 7)}
    for rule in RULES:
        assert laid(rule, [4]) == ()
        assert laid(rule, [9, 4]) == (Link(4, 9), Link(9, 4))
        assert laid(rule, numbers[::-1]) == laid(rule, numbers)


def test_links_by_pairs_and_from_a_file(tmp_path):
    made = roster("north", "south", "east")
    assert named_pairs(["north:south", "south:north", "east:south"], made.number) == mutual([(0, 1), (1, 2)])
    with pytest.raises(InputError, match=r"links: are a rule \(ring, complete, star\), pairs NAME:NAME, or a CSV file"):
        named_pairs(["rign"], made.number)
    with pytest.raises(InputError, match="nobody is called 'x'"):
        named_pairs(["north:x"], made.number)
    file = tmp_path / "links.csv"
    file.write_text("hearer, heard,trust\nnorth,south,0.5\n\nsouth ,east,.25\n")
    assert read_links(file, made.number) == (Link(0, 1, 0.5), Link(1, 2, 0.25))
    file.write_bytes(b"\xef\xbb\xbfhearer,heard\r\nnorth,south\r\nsouth,north\r\n")
    assert read_links(file, made.number) == mutual([(0, 1)])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "its first line must be hearer,heard,trust or hearer,heard, got ()"),
        ("a,b\n", "its first line must be"),
        ("hearer,heard,trust\nnorth,south\n", "line 2 must have 3 values, has 2"),
        ("hearer,heard,trust\nnorth,south,x\n", "line 2: trust must be a number, got 'x'"),
        ("hearer,heard,trust\nnorth,south,inf\n", "line 2: trust must be finite"),
        ("hearer,heard\nnorth,nobody\n", "nobody is called 'nobody'"),
    ],
)
def test_files_of_links_that_are_none(tmp_path, text, line):
    (tmp_path / "links.csv").write_text(text)
    with pytest.raises(InputError, match=r"^links: cannot read '.*links.csv': ") as error:
        read_links(tmp_path / "links.csv", roster("north", "south").number)
    assert line in str(error.value)


# Newer ones


def test_a_newer_roster_is_taken():
    held = bundle("north", "south")
    offered = bundle("north", "south", "east", epoch=4)
    taken = newer(held, offered.offer)
    assert taken.roster == offered.roster
    assert taken.study == held.study
    assert Bundle.read(taken.text) == taken  # what was taken can be written, read and offered again
    assert newer(held, taken.offer) == taken


def test_the_removed_are_followed_and_a_key_may_be_replaced():
    held = bundle("north", "south", "east")
    removed = bundle("north", "south", epoch=2, removed=[gone("east", 2)])
    taken = newer(held, removed.offer)
    assert taken.roster.tombstone(person("east").id).epoch == 2
    replaced = roster("north", epoch=3, links=(), removed=[gone("east", 2), gone("south", 1, 3)])
    replaced = replaced._replace(members=(*replaced.members, member(1, person("south", days=3))))
    assert newer(taken, Bundle.signed(STUDY, replaced, person("steward")).offer).roster.numbers == (0, 1)


@pytest.mark.parametrize(
    ("offered", "line"),
    [
        (lambda: bundle("north", "south", epoch=4), "epoch 4 is older than the one that is held, 5"),
        (lambda: bundle("north", "south", "hill", epoch=5), "epoch 5 is held already"),
        (lambda: bundle("north", "south", epoch=6, steward="thief"), "signed by another key"),
        (
            lambda: bundle("north", "south", epoch=6, study=Study.of({"name": "other", "task": {}})),
            "is of another study",
        ),
        (lambda: bundle("north", "south", "east", epoch=6), "'east' was removed in epoch 2 and cannot come back"),
        (lambda: bundle("north", "south", epoch=6), "forgets that 'east' was removed in epoch 2"),
        (lambda: bundle("north", "south", epoch=6, removed=[gone("east", 2, 3)]), "forgets that 'east' was removed"),
        (lambda: bundle("north", epoch=6, removed=[gone("east", 2)]), "'south' vanished without being removed"),
        (
            lambda: bundle("north", "south", "west", epoch=6, removed=[gone("east", 2)]),
            "gives the number of 'east', who was removed, to somebody else",
        ),
        (
            lambda: bundle("north", "south", epoch=6, removed=[gone("east", 2)], numbers=[1, 0]),
            "'north' has another number or name than in epoch 5",
        ),
    ],
)
def test_rosters_that_are_refused(offered, line):
    held = bundle("north", "south", epoch=5, removed=[gone("east", 2)])
    with pytest.raises(InputError, match=r"^the roster of west: ") as error:
        newer(held, offered().offer, "the roster of west")
    assert line in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_forged_signatures():
    held, later = bundle("north", "south"), bundle("north", "south", "east", epoch=2)
    other = bundle("north", "south", "west", epoch=2)
    thief = Bundle.signed(STUDY, later.roster, person("thief"))
    for forged in (later._replace(signature=other.signature), thief, later._replace(signature="")):
        with pytest.raises(InputError, match="its signature does not fit"):
            newer(held, forged.offer)
    with pytest.raises(InputError, match="is no roster"):
        newer(held, later.text)
    with pytest.raises(InputError, match="is not as a roster is written"):
        newer(held, bundle("north", "south", epoch=0).offer)


def test_a_roster_that_is_passed_over_by_a_newer_one_is_nothing_new():
    """Neighbours may be at different epochs: who offers an older one than was offered meanwhile is refused nothing."""
    held = bundle("north", "east")
    offers = {epoch: bundle("north", "east", epoch=epoch).offer for epoch in (2, 3)}
    reception = Reception(person("north"), held, "1", nobody, time.monotonic)
    place = place_of(person("north"), held.roster, ())
    schema = Schema((Leaf("x", "float64", (1,)),))
    reception.take(held, agreed_on(held, place, "pooling", schema), place.linked)
    other = held.roster.named("east")
    reception.offered(offers[3], other)
    reception.offered(offers[2], other)
    assert reception.newer_bundle().roster.epoch == 3
    reception.take(bundle("north", "east", epoch=3), reception.agreed_on, place.linked)
    with pytest.raises(InputError, match="older than the one"):
        reception.offered(offers[2], other)
