"""How busy all cores are, and how long a round takes, where agents have unequal work.

    python benchmarks/uneven.py [--json] [--repeat 3] [--rounds 4]

Nine agents on a star, 784-200-200-10, batch 50, Adam; 1600 agent-steps a round, learning and pooling without
evaluation. *uneven*: the hub makes 800 steps, its eight neighbours 100 each, and the engine is told; on two cores whole
agents then come out even. *cut*: 600 and eight times 125, which do not, so one agent is cut. *untold*: as uneven, but
laid out as if all work were equal. *whole*: as uneven, whole agents, as many on every core. *equal*: nine agents with
177 or 178 steps each.

Busy is the process's CPU time over cores × wall time. Each is measured in a process of its own, after as many rounds
that compile and warm up; the round of the fastest of several, taken in turn, counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from typing import Any, NamedTuple

from consilience.machine.runtime import LARGE_PAGES

BATCH, EXAMPLES = 50, 60_000
CORES = len(os.sched_getaffinity(0))


class Case(NamedTuple):
    """Everybody's steps in a round, whether the engine is told of them, and whether it may cut agents."""

    steps: tuple[int, ...]
    told: bool = True
    cuts: bool = True


CASES = {
    "uneven": Case((800, *(100,) * 8)),
    "cut": Case((600, *(125,) * 8)),
    "untold": Case((800, *(100,) * 8), told=False),
    "whole": Case((800, *(100,) * 8), told=False, cuts=False),
    "equal": Case((*(178,) * 7, *(177,) * 2), told=False),
}


def measure(case: Case, rounds: int) -> dict[str, float]:
    """Play as many rounds twice, and time the second."""
    from consilience.machine.runtime import use_all_cores

    use_all_cores()
    import jax
    import jax.numpy as jnp
    import numpy as np

    from consilience.engines.arm import Arm
    from consilience.engines.simulate import Simulation
    from consilience.learners import Minibatches, variational
    from consilience.models import mlp
    from consilience.network import Fixed, Replay, star

    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (EXAMPLES, 784), dtype=np.uint8), rng.integers(0, 10, EXAMPLES).astype(np.int32)
    most = max(case.steps)

    def draw(data: Any, key: Any, number: Any) -> Minibatches:
        chosen = jax.random.randint(jax.random.fold_in(key, number), (most, BATCH), 0, EXAMPLES)
        return Minibatches(data[0], data[1], chosen, samples=1583.0, of_round=data[2][number])

    model = mlp((784,), 10)
    agent = variational(model, model.init(jax.random.key(0)))
    network = star(len(case.steps) - 1)
    # Where turns are said one by one, not all need have everybody in them, and so agents are not cut.
    hears = network if case.cuts else Replay(network.agents, [Fixed(network).turn(1)] * (2 * rounds))
    data = *images, jnp.array(case.steps)
    work = case.steps if case.told else None
    simulation = Simulation(Arm(agent, draw, hears, lambda *_: {}, data=lambda *_: data, steps=most, work=work))
    progress, _ = simulation.play(1, [rounds], [False], simulation.start())
    jax.block_until_ready(progress)
    wall, cpu = time.perf_counter(), time.process_time()
    progress, _ = simulation.play(rounds + 1, [2 * rounds], [False], progress)
    jax.block_until_ready(progress)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {
        "round_seconds": wall / rounds,
        "busy": cpu / (CORES * wall),
        "agent_step_us": wall / rounds / sum(case.steps) * 1e6,
        "agents_cut": len(simulation.placement.left),
    }


def main() -> None:
    """Measure everything in turn, each in its own process, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--one", choices=CASES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(CASES[options.one], options.rounds)))
        return
    best: dict[str, dict[str, Any]] = {}
    for name in list(CASES) * options.repeat:
        command = [sys.executable, __file__, "--one", name, "--rounds", str(options.rounds)]
        # In large pages, as the command `consilience` has its memory.
        done = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, check=True, env=dict([LARGE_PAGES]) | os.environ
        )
        row = {"what": name, **json.loads(done.stdout)}
        best[name] = min(row, best.get(name, row), key=lambda each: each["round_seconds"])
    rows = list(best.values())
    if options.json:
        print(json.dumps({"cores": CORES, "repeat": options.repeat, "rounds": options.rounds, "cases": rows}, indent=2))
        return
    for row in rows:
        against = row["round_seconds"] / best["uneven"]["round_seconds"]
        print(
            f"{row['what']:>7}  {row['round_seconds']:>6.2f} s a round  {row['busy']:>4.0%} of {CORES} cores busy  "
            f"{row['agent_step_us']:>5.0f} µs an agent-step  {against:.2f} × uneven  {row['agents_cut']} cut"
        )


if __name__ == "__main__":
    main()
