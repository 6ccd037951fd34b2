"""Seconds and rounds until agents reach an accuracy, by rule, and for FedAvg as a PyTorch loop on the same work.

    python benchmarks/time_to_accuracy.py [--json] [--experiment star-mnist] [--target 0.975] [--rounds 100]
        [--every 5] [--rules sites,fedavg,paper] [--settings key=value …] [--seed 0]

Accuracy is the average over agents on the test set, of what an agent predicts with: what it has pooled (q). Seconds are
those of learning and pooling, without evaluation and without compiling. The PyTorch loop is FedAvg with SGD and
momentum, one single-threaded process for each core, agents dealt out over them; where PyTorch is not installed it is
left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import time
from typing import Any

from rules import always

ROUNDS_BEFORE = 1  # to compile


def by_rule(experiment: str, rule: str, options: argparse.Namespace) -> dict[str, Any]:
    """Play a rule until it is as good as wished, or all rounds."""
    import jax
    import numpy as np

    from consilience.engines.simulate import Simulation
    from consilience.experiments import load
    from consilience.experiments.images.arms import arms

    settings = [f"seed={options.seed}", f"rounds={options.rounds}", *always(rule), *options.settings]
    config: Any = load(experiment, settings, rule)
    arm = next(iter(arms(config).values()))
    simulation = Simulation(arm, [options.seed])
    jax.block_until_ready(simulation.play(1, [1], [False], simulation.start())[0])  # compiled
    progress, seconds, curve = simulation.start(), 0.0, []
    for last in range(options.every, options.rounds + 1, options.every):
        began = time.perf_counter()
        progress, _ = simulation.play(last - options.every + 1, [last], [False], progress)
        jax.block_until_ready(progress)
        seconds += time.perf_counter() - began
        # A stop that has been played already is only measured.
        progress, measured = simulation.play(last + 1, [last], [True], progress)
        accuracy = float(np.mean(measured["pooled_accuracy"]))
        curve.append((last, seconds, accuracy))
        if accuracy >= options.target:
            break
    return told(rule, curve, options.target)


def torch_fedavg(experiment: str, options: argparse.Namespace) -> dict[str, Any]:
    """The same work in PyTorch: a process for each core, which learns for its agents and returns their sum."""
    import os

    import numpy as np

    from consilience.experiments import load
    from consilience.experiments.images.arms import setting_of

    steps_like_ours = [each for each in options.settings if each.startswith(("learner.learning_rate", "learner.decay"))]
    config: Any = load(experiment, [f"seed={options.seed}", *steps_like_ours], "fedavg")
    setting = setting_of(config)
    held, data, steps = setting.partitions[options.seed], setting.dataset, setting.task.steps()
    sizes = held.sizes()
    cores = sorted(os.sched_getaffinity(0))
    hosts = [[agent for k, agent in enumerate(np.argsort(-sizes)) if k % len(cores) == n] for n in range(len(cores))]
    folder = options.scratch
    for n, agents in enumerate(hosts):
        own = {
            f"{a}_{part}": array[held.share(a)]
            for a in agents
            for part, array in (("x", data.inputs), ("y", data.labels))
        }
        np.savez(f"{folder}/{n}.npz", **own)
    np.savez(f"{folder}/test.npz", x=data.test_inputs, y=data.test_labels)
    words = [config.learner.learning_rate, config.learner.decay, config.learner.batch, steps]
    workers = [
        subprocess.Popen(
            ["taskset", "-c", str(core), sys.executable, __file__, "--worker", f"{folder}/{n}.npz", *map(str, words)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
        for n, core in enumerate(cores)
    ]  # fmt: skip
    import torch

    network = _network(torch)
    flat = torch.nn.utils.parameters_to_vector(network.parameters()).detach().numpy().astype(np.float32)
    x, y = torch.tensor(data.test_inputs.reshape(len(data.test_labels), -1)).float() / 255, data.test_labels
    seconds, curve = 0.0, []
    for number in range(1, options.rounds + 1):
        began = time.perf_counter()
        for worker in workers:
            worker.stdin.write(flat.tobytes())  # type: ignore[union-attr]
            worker.stdin.flush()  # type: ignore[union-attr]
        sums = [np.frombuffer(worker.stdout.read(flat.nbytes), np.float32) for worker in workers]  # type: ignore[union-attr]
        flat = (np.sum(sums, axis=0) / sizes.sum()).astype(np.float32)
        seconds += time.perf_counter() - began
        if number % options.every == 0:
            torch.nn.utils.vector_to_parameters(torch.from_numpy(flat.copy()), network.parameters())
            with torch.no_grad():
                accuracy = float((network(x).argmax(1).numpy() == y).mean())
            curve.append((number, seconds, accuracy))
            if accuracy >= options.target:
                break
    for worker in workers:
        worker.kill()
    return told("PyTorch FedAvg", curve, options.target)


def work(file: str, rate: float, decay: float, batch: int, steps: int) -> None:
    """A process of the PyTorch loop: weights come in, the sum of its agents' weights by their examples goes out."""
    import numpy as np
    import torch

    torch.set_num_threads(1)
    with np.load(file) as stored:
        arrays = {name: torch.from_numpy(stored[name]) for name in stored.files}
    agents = sorted({name.split("_")[0] for name in arrays})
    network = _network(torch)
    size = sum(part.numel() for part in network.parameters())
    number = 0
    while len(given := sys.stdin.buffer.read(4 * size)) == 4 * size:
        total = np.zeros(size, np.float32)
        for agent in agents:
            x, y = arrays[f"{agent}_x"].reshape(len(arrays[f"{agent}_y"]), -1), arrays[f"{agent}_y"].long()
            torch.nn.utils.vector_to_parameters(
                torch.from_numpy(np.frombuffer(given, np.float32).copy()), network.parameters()
            )
            sgd = torch.optim.SGD(network.parameters(), lr=rate * decay**number, momentum=0.9)
            for _ in range(steps):
                chosen = torch.randint(0, len(y), (batch,))
                sgd.zero_grad()
                torch.nn.functional.cross_entropy(network(x[chosen].float().mul_(1 / 255)), y[chosen]).backward()
                sgd.step()
            total += len(y) * torch.nn.utils.parameters_to_vector(network.parameters()).detach().numpy()
        number += 1
        sys.stdout.buffer.write(total.tobytes())
        sys.stdout.buffer.flush()


def _network(torch: Any) -> Any:
    nn = torch.nn
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 10))


def told(rule: str, curve: list[tuple[int, float, float]], target: float) -> dict[str, Any]:
    """Rounds and seconds to the target, where it was reached, and where it ended."""
    reached = next(((number, seconds) for number, seconds, accuracy in curve if accuracy >= target), (None, None))
    last = curve[-1]
    return {
        "rule": rule,
        "rounds": reached[0],
        "seconds": reached[1],
        "accuracy": last[2],
        "after_rounds": last[0],
        "seconds_a_round": last[1] / last[0],
        "curve": curve,
    }


def main() -> None:
    """Play every rule and print a table."""
    if sys.argv[1:2] == ["--worker"]:
        file, rate, decay, batch, steps = sys.argv[2:]
        work(file, float(rate), float(decay), int(batch), int(steps))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--experiment", default="star-mnist")
    parser.add_argument("--target", type=float, default=0.975)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--every", type=int, default=5)
    parser.add_argument("--rules", default="sites,fedavg,gossip,paper")
    parser.add_argument("--settings", nargs="*", default=[])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    from consilience.machine.runtime import use_all_cores

    use_all_cores()
    import tempfile

    rows = [by_rule(options.experiment, rule, options) for rule in options.rules.split(",") if rule]
    if importlib.util.find_spec("torch") is not None:
        with tempfile.TemporaryDirectory() as options.scratch:
            rows.append(torch_fedavg(options.experiment, options))
    if options.json:
        print(json.dumps({"experiment": options.experiment, "target": options.target, "rules": rows}, indent=2))
        return
    for row in rows:
        reached = "not reached" if row["rounds"] is None else f"{row['rounds']:4d} rounds {row['seconds']:7.1f} s"
        print(
            f"{row['rule']:>18}  {options.target:.1%}: {reached:>22}   ends at {row['accuracy']:.2%} after "
            f"{row['after_rounds']} rounds, {row['seconds_a_round']:.2f} s a round"
        )


if __name__ == "__main__":
    main()
