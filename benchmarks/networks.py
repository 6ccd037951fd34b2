"""Time to build, check and analyse small-world networks: v and the gap, up to 100,000 agents.

python benchmarks/networks.py [--json]
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import pairwise

from consilience.network import check, ring, watts_strogatz
from consilience.network.network import Network
from consilience.theory import lambda_max, stationary

SIZES = (1_000, 10_000, 100_000)


def small_world(agents: int) -> Network:
    """Six neighbours each, a tenth of the links rewired."""
    return watts_strogatz(agents, neighbours=6, probability=0.1, seed=0)


def measure(kind: str, agents: int) -> dict[str, float | str]:
    """Seconds of each step."""
    clock = [time.perf_counter()]
    network = small_world(agents) if kind == "small-world" else ring(agents)
    clock.append(time.perf_counter())
    check(network)
    clock.append(time.perf_counter())
    v = stationary(network)
    clock.append(time.perf_counter())
    gap = 1 - lambda_max(network, v)
    clock.append(time.perf_counter())
    build, checked, centrality, spectrum = (b - a for a, b in pairwise(clock))
    return {
        "network": kind,
        "agents": agents,
        "build_seconds": build,
        "check_seconds": checked,
        "v_seconds": centrality,
        "gap_seconds": spectrum,
        "gap": gap,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [measure(kind, agents) for kind in ("small-world", "ring") for agents in SIZES]
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{'network':>12} {'agents':>8} {'build':>8} {'check':>8} {'v':>8} {'gap':>8}   gap")
    for row in rows:
        times = " ".join(f"{row[f'{step}_seconds']:>6.2f} s" for step in ("build", "check", "v", "gap"))
        print(f"{row['network']:>12} {row['agents']:>8,} {times}   {row['gap']:.3g}")


if __name__ == "__main__":
    main()
