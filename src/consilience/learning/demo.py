"""Peers to try: real processes on this machine, each with a key of its own and some of the embedded digits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from consilience.errors import InputError
from consilience.learning.peer import Peer
from consilience.streams import stream
from consilience.task.rules import ruled

NAMES = ("north", "east", "south", "west", "hill", "lake", "wood", "moor")
PEERS_HAVE = ("paper", "natural", "sites", "tracking")
TASK: dict[str, Any] = {
    "model": {"kind": "mlp", "hidden": [32]},
    "learner": {"kind": "variational", "epochs": 2, "learning_rate": 0.003, "sd_rate": 30.0, "kl_weight": 0.1},
    "record_every": 1,
    "samples": 8,
}


def begun(folder: Path, agents: int, rounds: int, rule: str) -> list[str]:
    """Make everybody's home and file, a steward's study of them on a ring, and have everybody join it."""
    from consilience.data import load_dataset
    from consilience.engines.peers import identity
    from consilience.engines.peers.steward import Stewardship
    from consilience.engines.peers.study import Study
    from consilience.engines.peers.transport.ports import free_port
    from consilience.experiments.learn.agreed import agreed

    if rule not in PEERS_HAVE:
        raise InputError(f"--rule: peers have {', '.join(PEERS_HAVE)}, got '{rule}'")
    digits = load_dataset("digits")
    names = [NAMES[k] if agents <= len(NAMES) else f"peer-{k}" for k in range(agents)]
    described = TASK if rule == "paper" else ruled(TASK, rule)
    task, _ = agreed({"experiment": "learn", **described, "learner": {**described["learner"], "steps": "own"}})
    study = Study.of(
        {
            "name": "digits",
            "labels": [str(name) for name in digits.label_names],
            "input_shape": list(digits.inputs.shape[1:]),
            "policy": {"rounds": rounds, "patience": 60.0},
            "task": task,
        }
    )
    homes = [identity.create(folder / name, name, f"127.0.0.1:{free_port()}") for name in names]
    bundle = folder / "study.bundle"
    steward = Stewardship.begin(folder / "steward", study, "steward")
    steward.add([home.card for home in homes]).link(["ring" if agents > 2 else "complete"]).sign().write(bundle)
    order = stream("kept back", 0, agents).permutation(len(digits.labels))
    of_label = np.array([str(name) for name in digits.label_names])[digits.labels[order]]
    for number, name in enumerate(names):  # everybody has the digits of two labels' examples, and few of the others'
        mine = (digits.labels[order] * agents // len(digits.label_names) == number) | (
            np.arange(len(order)) % (20 * agents) == number
        )
        file = folder / f"{name}.npz"
        np.savez(file, x=digits.inputs[order][mine], y=of_label[mine])
        Peer.join(folder / name, bundle, file)
    return names


def played(folder: Path, names: list[str], say: Callable[[str], None]) -> dict[str, int]:
    """Start a process for everybody, tell how they go, and wait for all; how each of them ended."""
    logs: dict[str, IO[bytes]] = {name: (folder / name / "log.jsonl").open("wb") for name in names}
    command = [sys.executable, "-m", "consilience.command.main", "peer", "start", "--json"]
    command += ["--child-of", str(os.getpid()), "--home"]
    running = {
        name: subprocess.Popen([*command, str(folder / name)], stdout=logs[name], stderr=subprocess.STDOUT)
        for name in names
    }
    told: dict[str, int] = dict.fromkeys(names, 0)
    try:
        while any(process.poll() is None for process in running.values()):
            time.sleep(0.5)
            _tell(folder, names, told, say)
    except BaseException:
        for process in running.values():
            if process.poll() is None:
                os.kill(process.pid, signal.SIGTERM)
        for process in running.values():
            process.wait(30)
        raise
    finally:
        for log in logs.values():
            log.close()
    _tell(folder, names, told, say)
    return {name: process.wait() for name, process in running.items()}


def _tell(folder: Path, names: list[str], told: dict[str, int], say: Callable[[str], None]) -> None:
    """A line for every round that all have played: each one's accuracy, and who was missed."""
    rounds = {name: _rounds(folder / name / "log.jsonl") for name in names}
    for number in range(min(told.values()) + 1, min(max(found, default=0) for found in rounds.values()) + 1):
        parts = []
        for name in names:
            facts = rounds[name].get(number)
            score = "–" if facts is None else f"{facts['scores'].get('pooled_held_out_accuracy', 0):.0%}"
            missed = facts["missed"] if facts else []
            parts.append(f"{name} {score}" + (f" (missed {', '.join(missed)})" if missed else ""))
            told[name] = number
        say(f"round {number:3d}   " + "   ".join(parts))


def _rounds(log: Path) -> dict[int, Any]:
    found = {}
    for line in log.read_text(errors="replace").splitlines():
        try:
            facts = json.loads(line)
        except ValueError:
            continue
        if isinstance(facts, dict) and facts.get("what") == "round":
            found[facts["round"]] = facts
    return found
