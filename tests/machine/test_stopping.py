"""Signals: one line and exit code 1, at whatever moment they come."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from children import SIGNALS, heard, quickly

from consilience.errors import InputError
from consilience.experiments import load
from consilience.experiments.linear_regression import arms as linear_regression
from consilience.runs import run as runs

SOURCE = Path(runs.__file__).parents[2]
COMMAND = [sys.executable, "-c", "from consilience.command.main import main; main()"]


def started(folder, *words, first=""):
    known = quickly(PYTHONPATH=os.pathsep.join([str(first), str(SOURCE)] if first else [str(SOURCE)]))
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with heard():
        return subprocess.Popen([*COMMAND, *words], cwd=folder, env=known, **pipes)


def wait_for(file, process):
    deadline = time.monotonic() + 120
    while not file.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert file.exists()


def ended(process):
    try:
        out, complaint = process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode, out, complaint


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
@pytest.mark.parametrize("library", ["typer", "jax"])
def test_while_libraries_are_imported(tmp_path, number, library):
    """A library that takes long to import stands in for the real one."""
    (tmp_path / f"{library}.py").write_text("import time\nopen('importing', 'w').close()\ntime.sleep(100)\n")
    process = started(tmp_path, "run", "linear-regression", first=tmp_path)
    wait_for(tmp_path / "importing", process)
    process.send_signal(number)
    assert ended(process) == (1, "", "error: stopped\n")


def test_a_run_stops_after_its_round_and_can_be_resumed(tmp_path):
    small = ("record_every=5", "checkpoint_every=1", "replicates=2", "test_samples=20")
    words = ["linear-regression", "--rounds", "100000", *(word for text in small for word in ("--set", text))]
    process = started(tmp_path, "run", *words, "--out", "r", "-q")
    wait_for(tmp_path / "r" / "checkpoint.safetensors", process)
    process.send_signal(signal.SIGTERM)
    code, out, complaint = ended(process)
    assert (code, out) == (1, "")
    assert complaint.splitlines()[-1] == "error: stopped; carry on with: consilience resume r"
    assert json.loads((tmp_path / "r" / "run.json").read_text())["status"] == "stopped"
    assert runs.opened(tmp_path / "r").rounds == 100000


@pytest.mark.parametrize("ended_by", [KeyboardInterrupt, InputError("no"), MemoryError])
@pytest.mark.parametrize("there", [True, False])
def test_a_run_that_does_not_begin_leaves_things_as_they_were(tmp_path, monkeypatch, ended_by, there):
    if there:
        (tmp_path / "r").mkdir()

    def arms(config):
        raise ended_by

    monkeypatch.setattr(linear_regression, "arms", arms)
    with pytest.raises(ended_by if isinstance(ended_by, type) else InputError):
        runs.begin(load("linear-regression"), tmp_path / "r")
    assert (tmp_path / "r").exists() == there
    assert not list(tmp_path.rglob("r/*"))


def test_a_folder_that_another_run_took_meanwhile_is_left_alone(tmp_path, monkeypatch):
    arms = linear_regression.arms

    def slowly(config):
        (tmp_path / "r").mkdir()
        (tmp_path / "r" / "record.csv").write_text("another's")
        return arms(config)

    monkeypatch.setattr(linear_regression, "arms", slowly)
    with pytest.raises(InputError, match="already exists"):
        runs.begin(load("linear-regression"), tmp_path / "r")
    assert [file.name for file in (tmp_path / "r").iterdir()] == ["record.csv"]


def test_a_run_stopped_while_its_folder_is_written_leaves_none(tmp_path, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "to_toml", stopped)
    with pytest.raises(KeyboardInterrupt):
        runs.begin(load("linear-regression"), tmp_path / "r")
    assert not (tmp_path / "r").exists()
