"""A round of real peers beside the same work in one process, and the memory of a peer.

    python benchmarks/peers.py [--json]
    python benchmarks/peers.py --agents 9 [--rounds 40] [--rule sites] [--images] [--json]

Without --agents all that docs/peers.md tells is measured, one after the other: nine peers with images, nine and fifty
with digits (ten minutes).
Processes with keys of their own and mutual TLS on this machine learn digits split by label (`consilience peer demo`),
or with `--images` do work of the size of the paper's MNIST: 784-200-200-10, 155 steps of 50 examples a round, beliefs
of 1.6 MB (the numbers are noise, which takes as long). `simulate` plays the same task, shares and network. All share
the machine's cores, so what peers take longer is what processes, links, checkpoints in every round and records cost.
The first rounds, in which programs are compiled, are not counted.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from consilience.machine.runtime import keep_compiled_programs, use_all_cores

BEGIN = 12  # rounds that are not counted: what measures is compiled in the first that is recorded, the tenth


class Case(NamedTuple):
    """What is measured: so many peers, for so many rounds, by a rule."""

    agents: int
    rounds: int
    rule: str
    images: bool = False


ALL = (Case(9, 40, "paper", images=True), Case(9, 40, "sites"), Case(50, 20, "sites"))


def main() -> None:
    """Measure, and print a line or JSON for every case."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--agents", type=int)
    given.add_argument("--rounds", type=int, default=40)
    given.add_argument("--rule", default="sites")
    given.add_argument("--images", action="store_true")
    given.add_argument("--json", action="store_true")
    asked = given.parse_args()
    use_all_cores()
    keep_compiled_programs()
    cases = ALL if asked.agents is None else (Case(asked.agents, asked.rounds, asked.rule, asked.images),)
    for case in cases:
        with tempfile.TemporaryDirectory() as kept:
            found = measured(Path(kept), *case)
        print(json.dumps(found) if asked.json else line(found), flush=True)


def line(found: dict[str, Any]) -> str:
    """What was measured, for people."""
    return (
        f"{found['agents']} peers{', images' if found['images'] else ''}, {found['rule']}: "
        f"{1e3 * found['peers']:.0f} ms a round; in one process {1e3 * found['simulate']:.0f} ms "
        f"({found['peers'] / found['simulate']:.2f} ×); a peer takes {found['megabytes']:.0f} MB "
        f"({found['peak_megabytes']:.0f} while it compiles); "
        f"{found['bytes_a_round'] / 1e6:.2f} MB sent in a round; all over after {found['seconds']:.0f} s"
    )


IMAGES = """experiment = "learn"
network = {{kind = "ring", agents = {agents}}}
shares = {{kind = "files", files = {{{files}}}}}
model = {{kind = "mlp", hidden = [200, 200]}}
learner = {{epochs = 5, batch = 50}}
held_out = 0.1
record_every = 10
"""


def of_images(folder: Path, agents: int, rounds: int, rule: str) -> Any:
    """As much work as a star of the paper has, for everybody."""
    import numpy as np

    from consilience.learning.trial import of_task

    rng, files = np.random.default_rng(0), []
    for number in range(agents):
        x, y = rng.integers(0, 256, (1722, 28, 28), np.uint8), rng.integers(0, 10, 1722).astype(np.str_)
        np.savez(folder / f"images-{number}.npz", x=x, y=y)
        files.append(f'peer-{number} = "{folder}/images-{number}.npz"')
    (folder / "images.toml").write_text(IMAGES.format(agents=agents, files=", ".join(files)))
    return of_task(folder, folder / "images.toml", None, rounds, rule)


def measured(folder: Path, agents: int, rounds: int, rule: str, images: bool = False) -> dict[str, Any]:
    """Seconds a round, of peers and of one process; the most memory that a peer took; bytes sent in a round by all."""
    from consilience.learning.demo import Standing, begun, played
    from consilience.learning.trial import of_digits

    trial = (of_images if images else of_digits)(folder, agents, rounds, rule)
    names = begun(folder, trial)
    when: dict[int, float] = {}
    memory: dict[str, dict[str, float]] = {}
    sent: dict[str, int] = {}

    def shown(standings: list[Standing]) -> None:
        when.setdefault(min(one.round for one in standings), time.monotonic())
        for one in standings:
            memory[one.name] = _megabytes(folder / one.name) or memory.get(one.name, {})
            sent[one.name] = one.sent

    began = time.monotonic()
    ended = played(folder, names, shown)
    ended_at = time.monotonic()
    assert not any(ended.values()), ended
    first = min(number for number in when if number >= BEGIN)
    return {
        "agents": agents,
        "rounds": rounds,
        "rule": rule,
        "images": images,
        "seconds": ended_at - began,
        "peers": (when[rounds] - when[first]) / (rounds - first),
        "simulate": _simulated(folder, trial, rounds),
        "megabytes": max(one["VmRSS"] for one in memory.values()),
        "peak_megabytes": max(one["VmHWM"] for one in memory.values()),
        "bytes_a_round": sum(sent.values()) / rounds,
    }


def _megabytes(home: Path) -> dict[str, float]:
    """The memory that a running peer has, and the most that it has had so far."""
    try:
        pid = json.loads((home / "health.json").read_text())["pid"]
        lines = [line.split() for line in Path(f"/proc/{pid}/status").read_text().splitlines()]
        return {words[0][:-1]: int(words[1]) / 1024 for words in lines if words[:1] in (["VmRSS:"], ["VmHWM:"])}
    except (OSError, ValueError):
        return {}


def _simulated(folder: Path, trial: Any, rounds: int) -> float:
    """Seconds a round of the same in one process, which also records and keeps checkpoints."""
    from consilience.described.settings import validate
    from consilience.engines.peers.bundle import Bundle
    from consilience.experiments.learn.description import Config
    from consilience.runs import run

    W = Bundle.read(folder / "study.bundle").roster.weights().W.toarray().tolist()
    values = {
        **trial.study["task"],
        "experiment": "learn",
        "rounds": rounds,
        "checkpoint_every": 1,
        "shares": {"kind": "files", "files": {name: str(file) for name, file in trial.files.items()}},
        "network": {"kind": "matrix", "W": W},
    }
    when: dict[int, float] = {}
    begun = run.begin(validate(Config, values), folder / "simulated")

    def on_round(done: int, _: str) -> None:
        when.setdefault(done, time.monotonic())

    run.carry_on(begun, on_round)
    first = min(number for number in when if number >= BEGIN)
    return (when[rounds] - when[first]) / (rounds - first)


if __name__ == "__main__":
    main()
