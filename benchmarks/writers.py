"""How constants of star-digits are chosen: each quarter of the training images held out in turn, three seeds each.

    python benchmarks/writers.py [--rule sites] [--settings learner.temperature=0.003 …] [--seeds 3] [--json]

The 1,400 training images are in the order of their writers, so a quarter is by people of whom the rest has nothing, as
the test set is by yet others; the test set is not looked at. Told: the average accuracy of what agents believe after
the last round, with the standard error over quarters and seeds, its NLL, and how much the average moves from one of
the last rounds to the next.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

QUARTERS, LAST = 4, 5


def main() -> None:
    """Play the quarters and print a line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rule", default="sites")
    parser.add_argument("--settings", nargs="*", default=["learner.temperature=0.003"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    from consilience.machine.runtime import keep_compiled_programs, use_all_cores

    use_all_cores()
    keep_compiled_programs()
    with tempfile.TemporaryDirectory() as folder:
        each = [
            played(Path(folder) / f"{quarter}.npz", quarter, options.rule, options.settings, options.seeds)
            for quarter in range(QUARTERS)
        ]
    accuracy, nll = (np.concatenate([one[part] for one in each], axis=1) for part in (0, 1))  # [round, quarter × seed]
    ends = accuracy[-1]
    told = {
        "rule": options.rule,
        "settings": options.settings,
        "accuracy": float(ends.mean()),
        "error": float(ends.std(ddof=1) / np.sqrt(len(ends))),
        "last_rounds": float(accuracy.mean()),
        "nll": float(nll[-1].mean()),
        "moves": float(np.abs(np.diff(accuracy, axis=0)).mean()),
    }
    if options.json:
        print(json.dumps(told, indent=2))
        return
    print(
        f"{options.rule} {' '.join(options.settings)}: {told['accuracy']:.2%} ± {told['error']:.2%}, of the last "
        f"{LAST} rounds {told['last_rounds']:.2%}, NLL {told['nll']:.3f}, moves by {told['moves']:.2%} a round"
    )


def played(file: Path, quarter: int, rule: str, settings: list[str], seeds: int) -> tuple[np.ndarray, np.ndarray]:
    """Accuracy and NLL on one quarter, having learnt from the others: [last rounds, seeds]."""
    from consilience.data import load_dataset
    from consilience.engines.simulate import Simulation
    from consilience.experiments import load
    from consilience.experiments.images.arms import arms

    digits = load_dataset("digits")
    out = np.array_split(np.arange(len(digits.labels)), QUARTERS)[quarter]
    kept = np.setdiff1d(np.arange(len(digits.labels)), out)
    np.savez(
        file,
        x=digits.inputs[kept],
        y=digits.labels[kept],
        x_test=digits.inputs[out],
        y_test=digits.labels[out],
    )
    config: Any = load("star-digits", [f"dataset={file}", f"replicates={seeds}", "alone=false", *settings], rule)
    simulation = Simulation(next(iter(arms(config).values())), list(range(seeds)))
    stops = list(range(config.rounds - LAST + 1, config.rounds + 1))
    _, measured = simulation.play(1, stops, [True] * LAST, simulation.start())
    found = (np.asarray(measured[name]).reshape(LAST, seeds, -1) for name in ("pooled_accuracy", "pooled_nll"))
    accuracy, nll = (part.mean(axis=2) for part in found)
    return accuracy, nll


if __name__ == "__main__":
    main()
