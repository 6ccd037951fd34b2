"""What checksums cost: a checkpoint written and read with them, beside the same bytes written and read bare.

    python benchmarks/checkpoint.py [--gigabytes 2] [--folder DIR] [--repeat 3] [--json]

Arrays like those of a thousand agents with the paper's network: 7.97 MB an agent in ten arrays each.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from consilience.runs.checkpoint import load_checkpoint, save_checkpoint

ARRAYS, WEIGHTS = 10, 199_210


def main() -> None:
    """Measure and print."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--gigabytes", type=float, default=2.0)
    words.add_argument("--folder", type=Path, help="where to write (a disk of the kind that runs are kept on)")
    words.add_argument("--repeat", type=int, default=3)
    words.add_argument("--json", action="store_true")
    given = words.parse_args()
    agents = max(round(given.gigabytes * 1e9 / (ARRAYS * WEIGHTS * 4)), 1)
    rng = np.random.default_rng(0)
    tree = {f"array {n}": rng.standard_normal((1, agents, WEIGHTS), np.float32) for n in range(ARRAYS)}
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        best = _measured(tree, Path(folder), given.repeat)
    size = sum(array.nbytes for array in tree.values()) / 1e9
    told = {
        "gigabytes": round(size, 2),
        **{name: round(seconds, 2) for name, seconds in best.items()},
        "save_over_bare_write": round(best["save"] / best["bare write"], 2),
        "load_over_bare_read": round(best["load"] / best["bare read"], 2),
        "gigabytes_a_second_saved": round(size / best["save"], 2),
        "gigabytes_a_second_loaded": round(size / best["load"], 2),
    }
    print(json.dumps(told, indent=2) if given.json else "\n".join(f"{name:28}{value}" for name, value in told.items()))


def _measured(tree: dict[str, np.ndarray], folder: Path, repeat: int) -> dict[str, float]:
    """Seconds of each, the best of some, taken in turn."""
    file, bare = folder / "checkpoint.safetensors", folder / "bare"

    def write_bare() -> None:
        with bare.open("wb") as stream:
            for array in tree.values():
                stream.write(array.data)
            stream.flush()
            os.fsync(stream.fileno())

    def read_bare() -> None:
        with bare.open("rb") as stream:
            for array in tree.values():
                stream.readinto(np.empty_like(array).data)

    def load() -> None:
        for _ in load_checkpoint(file, tree)[1]:
            pass

    steps: dict[str, Callable[[], Any]] = {
        "bare write": write_bare,
        "save": lambda: save_checkpoint(file, tree, tree.values(), {"round": 1}),
        "bare read": read_bare,
        "load": load,
    }
    best: dict[str, float] = {}
    for _ in range(repeat):
        for name, step in steps.items():
            began = time.perf_counter()
            step()
            best[name] = min(best.get(name, np.inf), time.perf_counter() - began)
    return best


if __name__ == "__main__":
    main()
