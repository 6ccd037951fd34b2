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


def test_nothing_is_found(folder):
    """All kinds in one test: the runs and homes that cases damage are played once, in one process."""
    found = {}
    for number in range(CASES):
        made, again = case(SEED, number), case(SEED, number)
        assert (made.text(), made.files) == (again.text(), again.files)  # a function of seed and number
        if made.kind not in SLOW:
            found |= {
                finding.what: f"case {number}: {made.text()}\n{finding.details}" for finding in judge(made, folder)
            }
    assert not found, "\n\n".join(f"{what}\n{text}" for what, text in found.items())


def test_slow_kinds_are_there():
    assert set(KINDS) > SLOW
