"""Texts that somebody with a key made up: well signed, but nothing in them need be as we would write it."""

import copy
import json

import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st
from people import STUDY, bundle, person, roster

from consilience.engines.peers.bundle import Bundle, newer
from consilience.engines.peers.card import read_card
from consilience.engines.peers.signed import canonical, signed
from consilience.engines.peers.study import Study
from consilience.errors import InputError

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["north", person("north").id, person("north").certificate, "localhost:1", "replaces", "0" * 64])
)
WILD = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner))


def places(value, path=()):
    """Every place in a tree of values."""
    yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inner, (*path, key))


@st.composite
def mutated(draw, values):
    """The values with something taken away, or something else in its place, here and there."""
    values = copy.deepcopy(values)
    for _ in range(draw(st.integers(1, 3))):
        paths = [path for path in places(values) if path]
        if not paths:
            break
        *above, last = draw(st.sampled_from(paths))
        inside = values
        for key in above:
            inside = inside[key]
        if draw(st.integers(0, 3)) == 0:
            del inside[last]
        elif isinstance(inside, dict) and draw(st.integers(0, 4)) == 0:
            inside[draw(st.text(max_size=5))] = draw(WILD)
        else:
            inside[last] = draw(WILD)
    return values


def taken_or_refused(read, *given):
    """What was read, or nothing where it was refused, in one line."""
    try:
        return read(*given)
    except InputError as error:
        refused = str(error)
    assert len(refused.splitlines()) == 1
    return None


def said(text):
    return {name: value for name, value in json.loads(text).items() if name not in ("kind", "version", "signature")}


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_cards(data):
    north = person("north")
    replacing = north.card.replacing(person("south").id, person("south").key).signed(north.key)
    values = data.draw(mutated(said(replacing.text)))
    read = taken_or_refused(read_card, signed("card", {**values, "certificate": north.certificate}, north.key))
    if read is not None:
        assert read_card(read.text) == read


@settings(max_examples=250, deadline=None)
@given(data=st.data())
def test_rosters(data):
    held = bundle("north", "south")
    values = data.draw(mutated(roster("north", "south", "east", epoch=3).values()))
    offered = signed("roster", values, person("steward").key)
    taken = taken_or_refused(newer, held, offered)
    if taken is not None:
        assert taken.offer == offered
        assert Bundle.read(taken.text) == taken
        taken.roster.weights()


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_bundles(data):
    made = bundle("north")
    taken = taken_or_refused(Bundle.read, canonical(data.draw(mutated(json.loads(made.text)))))
    assert taken is None or taken == made


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_studies(data):
    values = data.draw(mutated(STUDY.model_dump(mode="json", exclude_none=True)))
    made = taken_or_refused(Study.of, values)
    if made is not None:
        assert Study.read(made.text, "it") == made
    try:
        text = tomli_w.dumps(values)
    except (TypeError, ValueError):
        return
    taken_or_refused(Study.read, text, "it")
