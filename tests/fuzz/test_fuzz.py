"""A short walk of the fuzzer, always the same; `tests/soak_fuzz.py` goes on for as long as one likes."""

import pytest

from . import run_folders, templates
from .cases import KINDS, case
from .invariants import judge

SEED, CASES = 0, 200
SLOW = {"process", "played"}  # of these, the long walk


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("fuzz") / "case"
    templates.WHERE[:] = [where]
    return where


@pytest.fixture(autouse=True, scope="module")
def few_runs():
    """One format of data: every run is compiled once more."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (run_folders, templates):
            patch.setattr(module, "DATA", ("own.csv",))
        yield


def test_a_case_is_a_function_of_seed_and_number(folder):
    for number in range(40):
        one, again = case(SEED, number), case(SEED, number)
        assert one.text() == again.text()
        assert one.files == again.files


@pytest.mark.parametrize("kind", sorted(set(KINDS) - SLOW))
def test_nothing_is_found(folder, kind):
    found = {}
    for number in range(CASES):
        made = case(SEED, number)
        if made.kind == kind:
            found |= {
                finding.what: f"case {number}: {made.text()}\n{finding.details}" for finding in judge(made, folder)
            }
    assert not found, "\n\n".join(f"{what}\n{text}" for what, text in found.items())
