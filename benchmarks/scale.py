"""What a round costs as networks grow: with few active agents, with all active, and in memory.

    python benchmarks/scale.py [--json] [--repeat 2]

*active*: rotating stars of N = 25, 100, 1,000 edges, of which 5 at a time and the hub learn; the time of a round
divided by its 6 × 47 agent-steps should not depend on N. *all*: rings of 9, 100, 1,000 agents that all learn, 10 steps
each. *small*: 10,000 agents with a network for 8 × 8 digits (under 5,000 weights) on a small world, one synchronous
round. The paper's network has 199,210 weights; an agent's state is ten such arrays of 4 bytes.

Everything is measured several times, in turn, each time in a process of its own, and the best counts: other work on
the machine only ever adds.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from typing import Any

ACTIVE, ALL, SMALL_AGENTS = (25, 100, 1000), (9, 100, 1000), 10_000


def simulated(hears: Any, sizes: tuple[int, ...], steps: int, batch: int, rounds: int) -> dict[str, float]:
    """The least time of a round, after one that compiles, and the memory of the process."""
    from consilience.machine.runtime import use_all_cores

    use_all_cores()
    import jax
    import numpy as np

    from consilience.engines.arm import Arm
    from consilience.engines.simulate import Simulation
    from consilience.learners import Minibatches, variational
    from consilience.models import mlp

    rng = np.random.default_rng(0)
    data = rng.integers(0, 256, (6000, sizes[0]), dtype=np.uint8), rng.integers(0, 10, 6000).astype(np.int32)

    def draw(data: Any, key: Any, number: Any) -> Minibatches:
        chosen = jax.random.randint(jax.random.fold_in(key, number), (steps, batch), 0, 6000)
        return Minibatches(data[0], data[1], chosen, samples=1000.0)

    model = mlp((sizes[0],), 10, sizes[1:])
    initial = model.init(jax.random.key(0))
    arm = Arm(variational(model, initial), draw, hears(), lambda *_: {}, data=lambda *_: data, steps=steps)
    simulation = Simulation(arm)
    progress, seconds = simulation.start(), []
    for number in range(1, rounds + 2):
        began = time.perf_counter()
        progress, _ = simulation.play(number, [number], [False], progress)
        jax.block_until_ready(progress)
        seconds.append(time.perf_counter() - began)
    agents = simulation.schedule.agents
    return {
        "agents": agents,
        "round_seconds": min(seconds[1:]),
        "state_mb_an_agent": sum(x.nbytes for x in jax.tree.leaves(progress)) / agents / 1e6,
        "weights": sum(x.size for x in jax.tree.leaves(initial)),
        "peak_memory_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2,
    }


def measure(what: str, size: int) -> dict[str, float]:
    """One measurement, in its own process."""
    from consilience.network import RotatingStar, ring, watts_strogatz

    if what == "active":
        row = simulated(lambda: RotatingStar(size, 5), (784, 200, 200), 47, 50, 8)
        return {**row, "agent_step_us": row["round_seconds"] / (6 * 47) * 1e6}
    if what == "all":
        row = simulated(lambda: ring(size), (784, 200, 200), 10, 50, 3)
        return {**row, "agent_step_us": row["round_seconds"] / (size * 10) * 1e6}
    row = simulated(lambda: watts_strogatz(size, 6, 0.1, 0), (64, 32, 32), 5, 10, 2)
    return {**row, "agent_step_us": row["round_seconds"] / (size * 5) * 1e6}


def best_of(group: list[tuple[str, int]], repeat: int) -> list[dict[str, Any]]:
    """The best of several measurements of each, taken in turn."""
    from consilience.machine.runtime import LARGE_PAGES

    best: dict[tuple[str, int], dict[str, Any]] = {}
    for what, size in group * repeat:
        command = [sys.executable, __file__, "--one", what, str(size)]
        # In large pages, as the command `consilience` has its memory.
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | dict([LARGE_PAGES]))
        row = {"what": what, **json.loads(done.stdout)}
        best[what, size] = min(row, best.get((what, size), row), key=lambda each: each["agent_step_us"])
    return list(best.values())


def main() -> None:
    """Measure everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one[0], int(options.one[1]))))
        return
    groups: list[list[tuple[str, int]]] = [[("active", n) for n in ACTIVE], [("all", n) for n in ALL]]
    rows = [row for group in [*groups, [("small", SMALL_AGENTS)]] for row in best_of(group, options.repeat)]
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        print(
            f"{row['what']:>7} {row['agents']:>7,} agents  {row['agent_step_us']:>7.0f} µs an active agent-step  "
            f"{row['round_seconds']:>7.2f} s a round  {row['state_mb_an_agent']:>6.2f} MB an agent  "
            f"{row['peak_memory_gb']:>6.2f} GB in all"
        )
    active = [row["agent_step_us"] for row in rows if row["what"] == "active"]
    print(f"active: the largest over the smallest is {max(active) / min(active):.2f}")
    weights = rows[0]["weights"]
    print(f"an agent's state: 10 arrays × {weights:,} weights × 4 bytes = {10 * weights * 4 / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
