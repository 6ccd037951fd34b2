"""Peers to try: real processes on this machine, each with a key of its own and its own file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from consilience.learning.home import join
from consilience.learning.trial import Trial

LOG, STEP = "start.jsonl", 0.2  # seconds between two looks
PATIENCE = 30.0  # seconds in which who was told to stop has done so


class Standing(NamedTuple):
    """How a peer of the trial stands: the facts of its last round, and its exit code once it has ended."""

    name: str
    round: int = 0
    scores: dict[str, float] = {}  # noqa: RUF012  # never changed
    heard: tuple[str, ...] = ()
    missed: int = 0
    sent: int = 0
    ended: int | None = None


def begun(folder: Path, trial: Trial) -> list[str]:
    """Make everybody's home, and a steward's study of them, and have everybody join it."""
    from consilience.engines.peers import identity
    from consilience.engines.peers.steward import Stewardship
    from consilience.engines.peers.study import Study
    from consilience.engines.peers.transport.ports import free_ports

    study = Study.of(trial.study)
    ports = dict(zip(trial.files, free_ports(len(trial.files)), strict=True))
    homes = [identity.create(folder / name, name, f"127.0.0.1:{port}") for name, port in ports.items()]
    steward = Stewardship.begin(folder / "steward", study, "steward").add([home.card for home in homes])
    bundle = folder / "study.bundle"
    steward.link(trial.links).sign().write(bundle)
    for name, file in trial.files.items():
        join(folder / name, bundle, file)
    return list(trial.files)


def played(
    folder: Path, names: list[str], shown: Callable[[list[Standing]], None], stop: Callable[[], bool] = lambda: False
) -> dict[str, int]:
    """Start a process for everybody, show how they stand, and wait for all; the exit code of each of them.

    Where `stop` comes to say yes, or anything is raised, they are told to stop: to finish the step, save and say
    goodbye.
    """
    command = [sys.executable, "-m", "consilience.command.main", "peer", "start", "--json"]
    command += ["--child-of", str(os.getpid()), "--cores", str(max(len(os.sched_getaffinity(0)) // len(names), 1))]
    with ExitStack() as open_files:
        running = {}
        for name in names:
            log = open_files.enter_context((folder / name / LOG).open("wb"))
            # A session of its own: Ctrl-C reaches this program alone, which tells them.
            running[name] = subprocess.Popen(
                [*command, "--home", str(folder / name)], stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        logs = [Watched(folder / name / LOG, Standing(name)) for name in names]
        told = False
        try:
            while any(process.poll() is None for process in running.values()):
                time.sleep(STEP)
                if stop() and not told:
                    _tell(running.values())
                    told = True
                shown([log.standing()._replace(ended=running[log.name].poll()) for log in logs])
        finally:
            _tell(running.values())
            codes = {name: process.wait(PATIENCE) for name, process in running.items()}
    shown([log.standing()._replace(ended=codes[log.name]) for log in logs])
    return codes


def _tell(running: Iterable[subprocess.Popen[bytes]]) -> None:
    """Tell those who still run to stop."""
    for process in running:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)


class Watched:
    """A peer's log as it grows."""

    def __init__(self, file: Path, standing: Standing) -> None:
        self._file, self._standing, self._place = file, standing, 0

    @property
    def name(self) -> str:
        """Whose it is."""
        return self._standing.name

    def standing(self) -> Standing:
        """How it stands by now."""
        with self._file.open("rb") as stream:
            stream.seek(self._place)
            for line in stream:
                if not line.endswith(b"\n"):
                    break
                self._place += len(line)
                self._standing = after(self._standing, line)
        return self._standing


def after(standing: Standing, line: bytes) -> Standing:
    """How a peer stands after what a line of its log says.

    >>> line = b'{"what": "round", "round": 2, "heard": ["east"], "missed": ["west"], "scores": {}, "sent": 900}'
    >>> after(Standing("north"), line)
    Standing(name='north', round=2, scores={}, heard=('east',), missed=1, sent=900, ended=None)
    """
    try:
        facts: Any = json.loads(line)
        if facts["what"] != "round":
            return standing
        return standing._replace(
            round=facts["round"],
            scores=facts["scores"] or standing.scores,
            heard=tuple(facts["heard"]),
            missed=standing.missed + len(facts["missed"]),
            sent=facts["sent"],
        )
    except (ValueError, KeyError, TypeError):
        return standing  # what a library printed, or another program's line
