"""The time of one agent-step of the variational learner, beside PyTorch and the floor, on all cores.

    python benchmarks/step.py [--json] [--repeat 5]

9 agents × 155 steps a round, batch 50, 784-200-200-10, Adam. `ours`: a round of `simulate` without evaluation, divided
by 9 × 155; `natural`: the same with the natural-gradient learner, `sites`: that learner, everybody's data counted once.
`torch`: the same mathematics (weights drawn once a step, closed-form KL, fused Adam) in one single-threaded
process for each core; `torch_point`: the plain network, likewise. `floor`: the eight matrix products of one forward and
backward pass of the plain network, one single-threaded process for each core, in whichever of JAX, NumPy and PyTorch is
fastest. All have memory in large pages, as the command has. All are measured in turn, several times, and the smallest
of each is taken. PyTorch is measured where it is installed (`make bench` does that); the package does not need it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from consilience.machine.runtime import LARGE_PAGES

AGENTS, STEPS, BATCH, SIZES = 9, 155, 50, (784, 200, 200, 10)
SHAPES = list(zip(SIZES[1:], SIZES[:-1], strict=True))  # (out, in)
CORES = len(os.sched_getaffinity(0))
SINGLE = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def smallest(work: Callable[[], Any], count: int, seconds: float = 3.0) -> float:
    """The smallest time of one of `count` items of work, in microseconds."""
    work()
    end, best = time.perf_counter() + seconds, float("inf")
    while time.perf_counter() < end:
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return best / count * 1e6


def ours(rule: str = "paper") -> float:
    """A round of nine agents on all cores."""
    from consilience.machine.runtime import use_all_cores

    use_all_cores()
    import jax
    import numpy as np

    from consilience.consensus import pooling, sites
    from consilience.engines.arm import Arm
    from consilience.engines.simulate import Simulation
    from consilience.learners import Minibatches, Options, variational_learner
    from consilience.learners.natural import NaturalOptions, natural_learner
    from consilience.learners.packing import packing_of
    from consilience.models import mlp
    from consilience.network import Network, Schedule, Tables, star

    rng = np.random.default_rng(0)
    data = rng.integers(0, 256, (60_000, 784), dtype=np.uint8), rng.integers(0, 10, 60_000).astype(np.int32)

    def draw(data: Any, key: Any, number: Any) -> Minibatches:
        chosen = jax.random.randint(jax.random.fold_in(key, number), (STEPS, BATCH), 0, 60_000)
        return Minibatches(data[0], data[1], chosen, samples=1583.0)

    model = mlp((784,), 10)
    initial = model.init(jax.random.key(0))
    packing = packing_of(initial)
    own, still = natural_learner(model, packing, NaturalOptions(pull=0.0)), natural_learner(model, packing)
    made = {
        "paper": pooling(variational_learner(model, packing, Options())),
        "natural": pooling(still),
        "sites": sites(own),
    }
    agent = made[rule]._replace(init=lambda key: made[rule].init(initial))
    hears: Network | Schedule = Tables(star(AGENTS - 1), 1) if rule == "sites" else star(AGENTS - 1)
    arm = Arm(agent, draw, hears, lambda *_: {}, data=lambda *_: data, steps=STEPS)
    simulation = Simulation(arm)
    state, number = [simulation.start()], [0]

    def work() -> None:
        number[0] += 1
        state[0], _ = simulation.play(number[0], [number[0]], [False], state[0])
        jax.block_until_ready(state[0])

    return smallest(work, AGENTS * STEPS, 8.0)


def torch_loop(bayesian: bool) -> float:
    """One single-threaded process's share of PyTorch's loop."""
    import torch
    from torch.nn import functional

    torch.set_num_threads(1)
    images = torch.randint(0, 256, (60_000, 784), dtype=torch.uint8)
    labels = torch.randint(0, 10, (60_000,))
    shapes = [shape for out, inputs in SHAPES for shape in ((out, inputs), (out,))]
    counts = [int(torch.Size(shape).numel()) for shape in shapes]
    total = sum(counts)

    def loss_of(weights: Any, x: Any, y: Any) -> Any:
        h = functional.relu(functional.linear(x, weights[0], weights[1]))
        h = functional.relu(functional.linear(h, weights[2], weights[3]))
        return functional.cross_entropy(functional.linear(h, weights[4], weights[5]), y)

    mean, log_sd = torch.randn(total) * 0.05, torch.full((total,), -3.0)
    prior_mean, prior_precision = torch.zeros(total), torch.full((total,), 400.0)
    drawn, slope, noise = torch.empty(total), torch.zeros(total), torch.empty(total)
    views = [v.view(s).requires_grad_() for v, s in zip(drawn.split(counts), shapes, strict=True)]
    for view, own in zip(views, slope.split(counts), strict=True):
        view.grad = own.view(view.shape)
    plain = [torch.randn(shape).mul_(0.05).requires_grad_() for shape in shapes]
    mean.requires_grad_()
    log_sd.requires_grad_()
    mean.grad, log_sd.grad = torch.zeros(total), torch.zeros(total)
    adam = torch.optim.Adam([mean, log_sd] if bayesian else plain, lr=1e-3, fused=True)

    def step() -> None:
        chosen = torch.randint(0, 60_000, (BATCH,))
        x, y = images[chosen].float().mul_(1 / 255), labels[chosen]
        if not bayesian:
            adam.zero_grad()
            loss_of(plain, x, y).backward()
            adam.step()
            return
        with torch.no_grad():
            sd = log_sd.exp()
            noise.normal_().mul_(sd)
            torch.add(mean, noise, out=drawn)
            slope.zero_()
        loss_of(views, x, y).backward()
        with torch.no_grad():
            torch.addcmul(slope, mean - prior_mean, prior_precision, value=1 / 1583, out=mean.grad)
            sd.mul_(sd).mul_(prior_precision).sub_(1).mul_(1 / 1583)
            torch.addcmul(sd, slope, noise, out=log_sd.grad)
        adam.step()

    def work() -> None:
        for _ in range(50):
            step()

    return smallest(work, 50)


def products(library: str) -> float:
    """The eight products of one forward and backward pass, in one single-threaded process."""
    import numpy as np

    rng = np.random.default_rng(0)
    layers = [rng.normal(size=(BATCH, n)).astype(np.float32) for n in SIZES]
    weights = [rng.normal(size=shape).astype(np.float32) for shape in SHAPES]
    slopes = layers[1:]

    def all_products(a: Any, w: Any, d: Any) -> list[Any]:
        forward = [a[k] @ w[k].T for k in range(3)]
        return [*forward, *(d[k].T @ a[k] for k in range(3)), d[2] @ w[2], d[1] @ w[1]]

    if library == "torch":
        import torch

        torch.set_num_threads(1)
        a, w, d = ([torch.from_numpy(x) for x in part] for part in (layers[:3], weights, slopes))
        return smallest(lambda: [all_products(a, w, d) for _ in range(50)], 50)
    if library == "numpy":
        return smallest(lambda: [all_products(layers[:3], weights, slopes) for _ in range(50)], 50)
    import jax

    def body(carry: Any, _: Any) -> tuple[Any, None]:
        inputs, _ = jax.lax.optimization_barrier(carry)
        return (inputs, all_products(*inputs)), None

    @jax.jit
    def run(inputs: Any) -> Any:
        return jax.lax.scan(body, (inputs, all_products(*inputs)), None, length=50)[0][1]

    ready = jax.device_put((layers[:3], weights, slopes))
    return smallest(lambda: jax.block_until_ready(run(ready)), 50)


ROLES: dict[str, Callable[[], float]] = {
    "ours": ours,
    "natural": lambda: ours("natural"),
    "sites": lambda: ours("sites"),
    "torch": lambda: torch_loop(True),
    "torch_point": lambda: torch_loop(False),
    "floor_jax": lambda: products("jax"),
    "floor_numpy": lambda: products("numpy"),
    "floor_torch": lambda: products("torch"),
}


OURS = ("ours", "natural", "sites")


def measured(role: str) -> float:
    """Microseconds of an agent-step on all cores: ours in one process, the others in one process for each core."""
    command = [sys.executable, __file__, "--role", role]
    environment = {**dict([LARGE_PAGES]), **os.environ, **({} if role in OURS else SINGLE)}
    cores = [None] if role in OURS else sorted(os.sched_getaffinity(0))
    pinned = [command if core is None else ["taskset", "-c", str(core), *command] for core in cores]
    running = [subprocess.Popen(each, stdout=subprocess.PIPE, text=True, env=environment) for each in pinned]
    times = [float(process.communicate()[0].split()[-1]) for process in running]
    return sum(times) / len(times) / len(cores)


def main() -> None:
    """Measure everything in turn and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--role", choices=ROLES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role:
        print(ROLES[options.role]())
        return
    have_torch = importlib.util.find_spec("torch") is not None
    roles = [role for role in ROLES if have_torch or "torch" not in role]
    best = {role: float("inf") for role in roles}
    for _ in range(options.repeat):
        for role in roles:
            best[role] = min(best[role], measured(role))
    floor = min(best[role] for role in roles if role.startswith("floor"))
    result = {
        **{f"{role}_us": best[role] for role in OURS},
        "torch_us": best.get("torch"),
        "torch_point_us": best.get("torch_point"),
        "floor_us": floor,
        "cores": CORES,
        "repeat": options.repeat,
    }
    if options.json:
        print(json.dumps(result, indent=2))
        return
    for name in (*OURS, "torch", "torch_point", "floor"):
        value = result[f"{name}_us"]
        shown = "not installed" if value is None else f"{value:8.0f} µs   {value / result['ours_us']:.2f} × ours"
        print(f"{name:>12}  {shown}")


if __name__ == "__main__":
    main()
