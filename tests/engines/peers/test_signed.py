"""Cards, bundles and rosters: not a byte of them can be changed, added or taken away, and the line says which file."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from people import STUDY, bundle, person

from consilience.engines.peers.bundle import Bundle, newer
from consilience.engines.peers.card import read_card
from consilience.engines.peers.keys import check_signature, sign
from consilience.engines.peers.signed import LARGEST, canonical, opened, parsed, signed
from consilience.engines.peers.study import Study
from consilience.errors import InputError


def refused(read, content, name):
    try:  # pytest.raises takes longer than reading
        read(content)
        line = ""
    except InputError as error:
        line = str(error)
    assert name in line
    assert len(line.splitlines()) == 1


def from_file(file, read):
    def of(content):
        file.write_bytes(content)
        return read(file)

    return of


def offered(held):
    def of(content):
        return newer(held, content.decode("utf-8", "surrogateescape"), "the roster of north")

    return of


@pytest.fixture(scope="module", params=["card", "bundle", "roster"])
def text(request, tmp_path_factory):
    """How a text is read, what it is, and what it is called."""
    file = tmp_path_factory.mktemp("texts") / f"north.{request.param}"
    if request.param == "card":
        return from_file(file, read_card), person("north").card.text.encode(), "north.card"
    if request.param == "bundle":
        return from_file(file, Bundle.read), bundle("north").text.encode(), "north.bundle"
    return offered(bundle("north", "south")), bundle("north", "south", epoch=2).offer.encode(), "the roster of north"


def test_what_was_not_changed_is_taken(text):
    read, content, _ = text
    read(content)


def test_a_byte_changed_taken_away_or_added_anywhere(text):
    read, content, name = text
    for place, byte in enumerate(content):
        before, after = content[:place], content[place + 1 :]
        edits = [before + bytes([byte ^ 1]) + after, before + after, before + bytes([byte]) + content[place:]]
        for edited in edits[place % 3 :: 3]:
            refused(read, edited, name)
    refused(read, content + b"\n", name)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_any_other_byte_anywhere(text, data):
    read, content, name = text
    place = data.draw(st.integers(0, len(content)))
    byte = data.draw(st.integers(0, 255))
    kept = data.draw(st.booleans()) or place == len(content)
    edited = content[:place] + bytes([byte]) + content[place + (not kept) :]
    if edited != content:
        refused(read, edited, name)


def test_blanks_and_signatures_may_be_written_in_one_way_only():
    text = person("north").card.text
    values = json.loads(text)
    refused(read_card, json.dumps(values), "card")
    refused(read_card, json.dumps(values, indent=1) + "\n\n", "card")
    refused(read_card, text.replace("\n", "\r\n"), "card")
    refused(read_card, canonical({**values, "more": 1}), "card")
    refused(read_card, canonical({**values, "version": 2}), "form 2")
    refused(read_card, canonical({**values, "version": 1.0}), "card")
    signature = next(made for made in (sign(person("north").key, b"x") for _ in range(1000)) if made.endswith("="))
    assert check_signature(person("north").certificate, b"x", signature)
    for other in (
        signature + "\n",
        signature.replace("=", ""),
        signature + "=",
        " " + signature,
        "",
        "é",
        signature[4:],
    ):
        assert not check_signature(person("north").certificate, b"x", other)
    assert not check_signature(person("south").certificate, b"x", signature)
    assert not check_signature(person("north").certificate, b"y", signature)


def test_no_text_passes_for_one_of_another_kind():
    key, certificate = person("steward").key, person("steward").certificate
    text = signed("notes", {"a": 1}, key)
    assert opened("notes", text, certificate, "it")["a"] == 1
    refused(lambda given: opened("roster", given, certificate, "it"), text, "it: is no roster, but 'notes'")
    renamed = text.replace('"notes"', '"roster"')
    refused(lambda given: opened("roster", given, certificate, "it"), renamed, "its signature does not fit")


@pytest.mark.parametrize(
    "wild",
    ["", "{", "[]", "null", '"card"', '{"kind": NaN}', '{"kind": 1e999}', "[" * 10**5, "1" * 10**4, "{}\n", "\ud800"],
)
def test_what_is_no_text_at_all(wild):
    refused(lambda given: parsed("card", given, "it"), wild, "it: ")


def test_a_long_text_is_not_looked_at(tmp_path):
    long = " " * (LARGEST + 1)
    refused(lambda given: parsed("card", given, "it"), long, "it: must have at most")
    (tmp_path / "a.card").write_text(long)
    refused(read_card, tmp_path / "a.card", "a.card")
    with pytest.raises(InputError, match=r"^card: must have at most 1,048,576 bytes, has 1,0"):
        signed("card", {"a": "x" * LARGEST}, person("north").key)


def test_a_bundle_of_parts_that_do_not_belong_together():
    ours, theirs = json.loads(bundle("north", "south").text), json.loads(bundle("north", steward="other").text)
    refused(Bundle.read, canonical({**ours, "steward": theirs["steward"]}), "signed by another key")
    refused(Bundle.read, canonical({**ours, "roster": theirs["roster"]}), "signed by another key")
    changed = [line.replace("patience = 60.0", "patience = 61.0") for line in ours["study"]]
    assert changed != ours["study"]
    other = Study.read("\n".join([*changed, ""]), "it").hash
    refused(Bundle.read, canonical({**ours, "study": changed, "roster": {**ours["roster"], "study": other}}), "not fit")
    refused(Bundle.read, canonical({**ours, "study": changed}), "its study is not the one that its roster is of")
    refused(Bundle.read, canonical({**ours, "study": "\n".join(ours["study"])}), "not as a bundle is written")
    refused(Bundle.read, canonical({**ours, "more": 1}), "not as a bundle is written")


def test_a_bundle_reads_back_as_it_was(tmp_path):
    made = bundle("north", "south", "east")
    made.write(tmp_path / "study.bundle")
    assert Bundle.read(tmp_path / "study.bundle") == made == Bundle.read(made.text)
    assert Bundle.read(made.text).study.text == STUDY.text
    assert list(Bundle.read(made.text).study.task["columns"]) == ["b", "a"]  # features are in their order
