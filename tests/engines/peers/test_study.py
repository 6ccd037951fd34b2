"""A study is its text, and its hash names it."""

import hashlib

import pytest
from people import STUDY

from consilience.engines.peers.study import Study
from consilience.errors import InputError


def test_a_study_reads_back_and_its_hash_is_that_of_its_text():
    assert Study.read(STUDY.text, "it") == STUDY
    assert STUDY.hash == hashlib.sha256(STUDY.text.encode()).hexdigest()
    assert Study.of(STUDY.model_dump()).hash == STUDY.hash
    assert Study(name=STUDY.name, task=STUDY.task).hash == STUDY.hash
    assert Study.of({**STUDY.model_dump(), "wire": "float16"}).hash != STUDY.hash
    swapped = {**STUDY.task, "columns": {"a": {}, "b": {}}}
    assert Study.of({"name": STUDY.name, "task": swapped}).hash != STUDY.hash  # features have an order


def test_everything_that_matters_is_written_out():
    """A study is the same for everybody, whatever defaults their versions have."""
    read = Study.read(STUDY.text, "it")
    for part in ("policy", "limits"):
        for field in type(getattr(read, part)).model_fields:
            assert f"\n{field} = " in STUDY.text


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"task": {}}, "name: is required"),
        ({"name": "a/b", "task": {}}, "name: must be 1 to 60 letters"),
        ({"name": "a"}, "task: is required"),
        ({"name": "a", "task": 1}, "task: should be a table of fields"),
        ({"name": "a", "task": {"a": None}}, "task: must hold text, numbers, lists and tables only"),
        ({"name": "a", "task": {"a": object()}}, "task: must hold text, numbers, lists and tables only"),
        ({"name": "a", "task": {}, "policy": {"patience": 0}}, "policy.patience: should be greater than 0"),
        ({"name": "a", "task": {}, "policy": {"kind": "x"}}, "policy.kind: should be 'sync' or 'async'"),
        ({"name": "a", "task": {}, "policy": {"wait": 1}}, "policy.wait: no such field"),
        ({"name": "a", "task": {}, "limits": {"most_precision": 1e-9}}, "should be above least_precision (1e-08)"),
        ({"name": "a", "task": {}, "wire": "int8"}, "wire: should be 'exact' or 'float16'"),
        ({"name": "a", "task": {}, "input_shape": [0]}, "input_shape"),
    ],
)
def test_what_is_refused(values, line):
    with pytest.raises(InputError) as error:
        Study.of(values)
    assert line in str(error.value)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("text", ["", "name = ", "\x00", "a = 1", "name = 'a'\ntask = 1", "x" * 2**21, "\ud800"])
def test_texts_that_are_none(text):
    with pytest.raises(InputError, match=r"^it: ") as error:
        Study.read(text, "it")
    assert len(str(error.value).splitlines()) == 1
