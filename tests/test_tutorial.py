"""The tutorial runs as it is written, in an empty folder, and what it claims is so."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from children import quickly

import consilience

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "tutorial-own-data.md").read_text(encoding="utf-8")


class Block(NamedTuple):
    language: str
    text: str


BLOCKS = [Block(*found) for found in re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)]


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """The folder after all blocks, in order, and what each printed."""
    folder, tools = tmp_path_factory.mktemp("tutorial"), tmp_path_factory.mktemp("tools")
    (tools / "consilience").write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -c "from consilience.command.main import main; main()" "$@"\n'
    )
    (tools / "consilience").chmod(0o755)
    known = quickly(PATH=f"{tools}:{os.environ['PATH']}", PYTHONPATH=str(Path(consilience.__file__).parent.parent))
    shells = {"sh": ["sh", "-e", "-c"], "python": [sys.executable, "-c"]}
    printed = []
    for number, (language, text) in enumerate(BLOCKS):
        if language not in shells:
            continue
        done = subprocess.run(
            [*shells[language], text], cwd=folder, env=known, capture_output=True, text=True, check=False
        )
        after = BLOCKS[number + 1] if number + 1 < len(BLOCKS) else Block("", "")
        if after.text.startswith("error:"):  # a text after a command is what it says
            assert done.returncode == 2
            assert plain(done.stderr).replace(f"{folder}/", "") == plain(after.text)
        else:
            assert done.returncode == 0, f"{text}\n{done.stderr}"
        printed.append((text, done.stdout))
    return folder, printed


def plain(text):
    return " ".join(text.split())


def printed_by(printed, words):
    return next(out for text, out in printed if words in text)


def test_the_four_commands_are_there():
    commands = [block.text for block in BLOCKS if block.language == "sh"]
    verbs = [command.split()[1] for command in commands]
    assert [verb for verb in dict.fromkeys(verbs) if verb != "resume"] == ["new", "run", "coefficients", "predict"]


def test_the_description_that_is_shown_is_the_one_that_is_written(played):
    written = (played[0] / "study.toml").read_text(encoding="utf-8")
    (shown,) = (block.text for block in BLOCKS if block.language == "toml")
    for line in shown.splitlines():
        if line and "…" not in line and not line.startswith(("centre", "scale")):
            assert line in written


def test_shares_of_any_size_learn_and_are_judged_by_their_own_rows(played):
    summary = json.loads((played[0] / "runs" / "study" / "summary.json").read_text())
    assert sorted(summary["rows"].values()) == [2, 10, 32, 80, 160, 171]
    assert summary["tested_on"] == "114 rows that agents held out"
    assert summary["rounds"] == 70
    accuracy = {name: own["accuracy"] for name, own in summary["arms"]["together"]["agents"].items()}
    assert accuracy.pop("north") in (0, 1)  # judged by one row
    assert sum(accuracy.values()) / 5 > 0.93


def test_six_are_within_a_point_of_one_with_all_rows(played):
    told = printed_by(played[1], "average accuracy")
    found = {line.split(":")[0]: float(line.split()[-1].rstrip("%")) for line in told.splitlines()}
    assert abs(found["six together"] - found["one together"]) < 1
    assert min(found["six together"], found["one together"]) > 94
    assert found["six together"] > found["six alone"] + 5


def test_python_predicts_from_the_run(played):
    lines = printed_by(played[1], "epistemic doubt").splitlines()
    assert len(lines) == 5
    assert {line.split()[0] for line in lines} <= {"benign", "malignant"}


def test_the_command_predicts_every_row(played):
    with (played[0] / "predictions.csv").open() as opened:
        rows = list(csv.DictReader(opened))
    assert [row["prediction"] for row in rows] == [
        line.split()[0] for line in printed_by(played[1], "epistemic doubt").splitlines()
    ]


def test_coefficients_name_the_columns(played):
    assert "mean_radius" in printed_by(played[1], "consilience coefficients")
