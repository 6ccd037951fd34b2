"""Rounds per second of linear regression over rings, and the memory it takes.

    python benchmarks/exact.py [--json]

Every size runs in a process of its own, so that its peak memory is its own. A round includes every agent's evaluation
on the test set; the time is that of the fastest of four equal pieces after the first, which compiles.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

SIZES = (4, 100, 10_000)
ROUNDS = 100


def measure(agents: int) -> dict[str, float]:
    """Play 5 × ROUNDS rounds and time each piece."""
    import jax

    from consilience.engines.simulate import Simulation
    from consilience.experiments import load
    from consilience.experiments.linear_regression.arms import arms
    from consilience.experiments.linear_regression.description import Config

    jax.config.update("jax_enable_x64", True)
    config = load("linear-regression", ["network.kind=ring", f"network.agents={agents}", "replicates=1"])
    assert isinstance(config, Config)
    simulation = Simulation(arms(config)["cooperating"])
    progress, seconds = simulation.start(), []
    for piece in range(5):
        first = piece * ROUNDS + 1
        began = time.perf_counter()
        stops = range(first, first + ROUNDS)
        progress, metrics = simulation.play(first, stops, [True] * ROUNDS, progress)
        jax.block_until_ready(metrics)
        seconds.append(time.perf_counter() - began)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    return {
        "agents": agents,
        "rounds_per_second": ROUNDS / min(seconds[1:]),
        "agent_rounds_per_second": agents * ROUNDS / min(seconds[1:]),
        "first_piece_seconds": seconds[0],
        "peak_memory_gb": peak,
    }


def main() -> None:
    """Measure every size in its own process and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one)))
        return
    rows = []
    for agents in SIZES:
        done = subprocess.run(
            [sys.executable, __file__, "--one", str(agents)], capture_output=True, text=True, check=True
        )
        rows.append(json.loads(done.stdout))
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{'agents (ring)':>14} {'rounds/s':>10} {'agent-rounds/s':>15} {'first 100 rounds':>17} {'peak memory':>12}")
    for row in rows:
        print(
            f"{row['agents']:>14,} {row['rounds_per_second']:>10,.0f} {row['agent_rounds_per_second']:>15,.0f} "
            f"{row['first_piece_seconds']:>15.1f} s {row['peak_memory_gb']:>9.2f} GB"
        )


if __name__ == "__main__":
    main()
