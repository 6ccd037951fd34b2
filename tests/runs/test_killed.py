"""kill -9 at any moment: the folder opens, at most the rounds since the last checkpoint are played again."""

import signal
import subprocess
import sys
import time

from children import quickly

from consilience.experiments import load
from consilience.runs import run

SETTINGS = [
    "rounds=24",
    "record_every=2",
    "checkpoint_every=2",
    "model.hidden=[16]",
    "learner.epochs=1",
    "samples=2",
    "alone=false",
]
CARRY_ON = """
import sys, pathlib
from consilience.machine.runtime import keep_compiled_programs, use_all_cores
use_all_cores()
keep_compiled_programs()
from consilience.runs import run
run.carry_on(pathlib.Path(sys.argv[1]))
"""


def test_killed_runs_carry_on_to_the_same_bytes(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        run.begin(load("star-digits", SETTINGS), folder)
    run.carry_on(whole)
    process = subprocess.Popen([sys.executable, "-c", CARRY_ON, str(killed)], env=quickly())
    record, deadline = killed / "record.csv", time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if record.exists() and record.read_bytes().count(b"\n") > 40:
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.005)
    assert process.wait() == -signal.SIGKILL
    run.carry_on(killed)
    for name in ("record.csv", "checkpoint.safetensors"):
        same = (killed / name).read_bytes() == (whole / name).read_bytes()
        assert same, name  # not the files: to say where they differ takes minutes
