"""A machine that plays random schedules in the engine and in the reference and compares everything.

Compiling takes seconds and playing milliseconds. So a rig is one program (its agents, devices, repetitions and room for
turns are fixed) and many cases run on it: other turns are other data.
"""

from typing import Any, NamedTuple
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np
import reference
from drawn_schedules import check_turns, draw_schedule, random_network
from jax import lax

from consilience.agent import Agent
from consilience.beliefs import Categorical, Gaussian, Point
from consilience.engines.arm import Arm, agent_key, data_key, round_key
from consilience.engines.simulate import Simulation
from consilience.learners import Observations, conjugate, exact
from consilience.network import IDLE, Fixed, RotatingStar, from_matrix
from consilience.network.schedule import Most
from consilience.theory import realised

SIZES, STEPS, PIECES, IDLE_BEFORE = (1, 2, 3, 5, 5, 7, 7), 4, 3, 40
NOISE, DECAY = 0.8, 0.7
# Compiled quickly rather than well: what a program says is compared, not how fast it is.
QUICKLY = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_use_fusion_emitters": False,
}
PRIOR = Gaussian.from_moments(jnp.array([0.5, -1.0]), jnp.array([[0.5, 0.1], [0.1, 0.3]]))


class Steps(NamedTuple):
    """What is learned step by step, in as many steps as chance will have; `between` is some of them."""

    values: Any
    steps: Any
    span: Any = None

    def between(self, first, last):
        return self._replace(span=(first, last))


class Keeping(NamedTuple):
    """A belief, and something that never leaves the agent: how many steps it has learned."""

    belief: Point
    learned: Any


def numbers(key, *shape):
    """Numbers between −1 and 1 that follow from a key, by a shorter program than random ones are made by."""
    words = jax.random.key_data(key).astype(float) / 2**32
    return jnp.sin(1000 * (words[0] + words[1] * (1 + jnp.arange(np.prod(shape))))).reshape(shape)


def walker():
    """An agent whose steps do not commute: none may be left out, doubled or exchanged. Each begins elsewhere."""

    def learn(key, state, batch):
        def step(number, value):
            return DECAY * value + batch.values[number]

        first, last = batch.span or (0, batch.steps)
        value = lax.fori_loop(first, last, step, state.belief.value)
        return Keeping(Point(value), state.learned + last - first), {}

    return Agent(
        init=lambda key: Keeping(Point(numbers(key, 2)), jnp.zeros(())),
        learn=learn,
        publish=lambda state: state.belief,
        pool=lambda state, inbox: state._replace(belief=inbox.pooled),
    )


class Family(NamedTuple):
    """A learner, what it draws with an agent's key, and the same update on flat natural parameters."""

    agent: Agent
    draw: Any
    learn: Any


def _steps(key):
    return Steps(numbers(key, STEPS, 2), (jax.random.key_data(key)[0] % (STEPS + 1)).astype(int))


def _of_points(belief, batch):
    for value in batch.values[: batch.steps]:
        belief = DECAY * belief + value
    return belief


def _of_hypotheses(belief, batch):
    weights = belief + batch
    return weights - weights.max() - np.log(np.exp(weights - weights.max()).sum())


def _of_lines(belief, batch):
    X, y = batch
    return belief + np.concatenate([(X.T @ X).ravel(), X.T @ y]) / NOISE**2


FAMILIES = {
    "point": Family(walker(), _steps, _of_points),
    "categorical": Family(exact(Categorical.uniform(3), lambda x: x), lambda key: numbers(key, 3), _of_hypotheses),
    "gaussian": Family(
        conjugate(PRIOR, NOISE),
        lambda key: Observations(numbers(key, 3)[None, :2], numbers(key, 3)[2:]),
        _of_lines,
    ),
}


class Exchangeable:
    """A schedule that is exchanged from case to case, after some rounds in which nothing happens."""

    repeats = None

    def __init__(self, agents, most):
        self.agents, self.most, self.schedule, self.before = agents, most, None, 0

    def turn(self, number):
        return self.schedule.turn(number - self.before) if number > self.before else IDLE


class Rig:
    """One program, or two on different numbers of devices, made from a number."""

    def __init__(self, number):
        rng = np.random.default_rng([number, 1])
        self.agents = N = int(rng.choice(SIZES))
        self.heavy = bool(rng.integers(2))
        self.family = FAMILIES["point" if self.heavy else str(rng.choice(list(FAMILIES)))]
        self.width, self.stops = int(rng.choice([1, 4, 8])), int(rng.integers(1, 4))
        self.blocks, self.replicates = np.sort(rng.integers(1, 4, size=2)).tolist()
        full = Most(N, N, N * N, int(rng.choice([0, 1, 3])))
        self.schedule, self.understood = Exchangeable(N, full), None
        self.longest = PIECES * self.width
        if rng.random() < 0.3:  # the same turns for ever; their program is another one
            self.schedule, self.understood = self._repeating(rng)
        elif rng.random() < 0.5:  # with no more room than a schedule of this size asks for
            self.schedule.most = draw_schedule(rng, N, self.longest, full)[0].most
        arm = Arm(self.family.agent, self._draw, self.schedule, self._measure, self._compare)
        arm = arm._replace(steps=STEPS if self.heavy else None)
        devices = rng.permutation(4)[: rng.integers(1, 3)] + 1
        with patch("consilience.engines.simulate.simulation.compiler_options", lambda: QUICKLY):
            self.simulations = [Simulation(arm, devices=jax.devices()[:count]) for count in devices]
        self.drawn = jax.jit(self._all_drawn, compiler_options=QUICKLY)
        self.name = (
            f"rig {number}: {N} agents, devices {devices}, {'heavy' if self.heavy else 'light'}, {self.schedule.most}"
        )

    def _repeating(self, rng):
        if self.agents > 1 and rng.integers(2):
            at_once = int(rng.choice([n for n in range(1, self.agents) if (self.agents - 1) % n == 0]))
            star = self.agents - 1, at_once, float(rng.uniform(0.1, 0.9))
            return RotatingStar(*star), [reference.rotating_star(*star, n) for n in range(1, self.longest + 1)]
        W = random_network(rng, self.agents)
        return Fixed(from_matrix(W)), [reference.fixed(W, n) for n in range(1, self.longest + 1)]

    def _draw(self, data, key, number):
        return self.family.draw(agent_key(key, number))

    def _measure(self, data, progress, number, key):
        held, said = (
            jnp.concatenate([x.reshape(-1) for x in jax.tree.leaves(part)])
            for part in (progress.state, progress.public)
        )
        return {"held": held, "said": said, "round": 1.0 * number}

    def _compare(self, measured):
        return {**measured, "everybody": jnp.broadcast_to(measured["said"].sum(0), measured["said"].shape)}

    def _all_drawn(self, seeds, numbers):
        """Everybody's data and initial belief, by the law of keys and no engine."""

        def of(seed, number, agent):
            return self._draw((), data_key(round_key(seed, number)), agent)

        def begin(seed, agent):
            return self.family.agent.publish(self.family.agent.init(agent_key(round_key(seed, 0), agent)))

        for_agents = jax.vmap(jax.vmap(jax.vmap(of, (None, None, 0)), (None, 0, None)), (0, None, None))
        initial = jax.vmap(jax.vmap(begin, (None, 0)), (0, None))
        everybody = jnp.arange(self.agents)
        return initial(seeds, everybody), for_agents(seeds, numbers, everybody)

    def run(self, case):
        """One case, made from a number: draw, play in both, compare."""
        rng = np.random.default_rng([case, 2])
        turns = PIECES * self.width
        first = 1
        if self.understood is None:
            schedule, understood = draw_schedule(rng, self.agents, turns, self.schedule.most)
            before = int(rng.integers(IDLE_BEFORE)) * int(rng.integers(2))
            self.schedule.schedule, self.schedule.before, first = schedule, before, before + 1
        else:
            schedule, understood = self.schedule, self.understood
        check_turns(schedule, understood)
        check_theory(rng, schedule, understood)
        self.check_beliefs(rng, self.draw_seeds(rng), first, understood)

    def draw_seeds(self, rng):
        """Repetitions that are computed together or one after another, in any order; consecutive ones among them."""
        width = self.simulations[0].lanes.width
        if width == 1:
            return (int(rng.integers(2**30)) + rng.permutation(self.replicates)).tolist()
        blocks = rng.choice(2**20, self.blocks, replace=False)
        own = np.append(blocks, rng.choice(blocks, self.replicates - self.blocks))
        return rng.permutation(own * width + (int(rng.integers(width)) + np.arange(self.replicates)) % width).tolist()

    def expected(self, seeds, first, understood):
        """For every turn, from 0: what all repetitions hold and said, and how many steps everybody has learned."""
        initial, drawn = jax.tree.map(
            np.asarray, self.drawn(np.array(seeds), np.arange(first, first + len(understood)))
        )
        played = []
        for number in range(len(seeds)):
            begin = flat(jax.tree.map(lambda x, number=number: x[number], initial), self.agents)

            def learn(turn, agent, belief, number=number):
                return self.family.learn(belief, jax.tree.map(lambda x: x[number, turn - 1, agent], drawn))

            played.append([(begin, begin), *reference.play(begin, understood, learn)])
        return np.swapaxes(np.array(played), 0, 1), self._learned(understood, drawn)

    def _learned(self, understood, drawn):
        if not isinstance(drawn, Steps):
            return [None] * (len(understood) + 1)
        taking_part = np.array([np.isin(range(self.agents), turn.learners) for turn in understood])
        of_turns = np.swapaxes(taking_part * drawn.steps, 0, 1)
        return np.cumsum(np.concatenate([np.zeros_like(of_turns[:1]), of_turns]), 0)

    def check_beliefs(self, rng, seeds, first, understood):
        expected, learned = self.expected(seeds, first, understood)
        simulations = [simulation.of_seeds(seeds) for simulation in self.simulations]
        simulation = simulations[rng.integers(len(simulations))]
        progress, done = simulation.start(), 0
        self.compare(simulation.agents(progress), expected[0], learned[0])
        for _ in range(rng.integers(1, PIECES + 1)):
            end = done + int(rng.integers(self.width // 2 + 1, self.width + 1))
            stops = np.sort(np.append(rng.integers(done + 1, end + 1, self.stops - 1), end)).tolist()
            measured = (rng.random(self.stops) < 0.7).tolist()
            progress, metrics = simulation.play(first + done, [first - 1 + n for n in stops], measured, progress)
            for place, (stop, wanted) in enumerate(zip(stops, measured, strict=True)):
                self.compare_measured(
                    {name: x[place] for name, x in metrics.items()}, wanted, first - 1 + stop, expected[stop]
                )
            done, now = end, simulation.agents(progress)
            self.compare(now, expected[done], learned[done])
            simulation = simulations[rng.integers(len(simulations))]
            progress = simulation.slots(now)

    def compare(self, progress, expected, learned):
        held = progress.state
        if isinstance(held, Keeping):
            same(held.learned, learned, "steps learned")
            held = held.belief
        for name, part, by_reference in (("held", held, 0), ("said", progress.public, 1)):
            for seed, belief in enumerate(expected[:, by_reference]):
                same(flat(jax.tree.map(lambda x, seed=seed: x[seed], part), self.agents), belief, name)

    def compare_measured(self, metrics, wanted, number, expected):
        held, said = expected[:, 0], expected[:, 1]
        width = held.shape[-1]  # a walker's private number comes after its belief
        everybody = np.broadcast_to(said.sum(1, keepdims=True), said.shape)
        wants = {"held": held, "said": said, "everybody": everybody, "round": np.full(said.shape[:2], 1.0 * number)}
        for name, values in wants.items():
            found = np.asarray(metrics[name])
            same(found[..., :width] if found.ndim == 3 else found, values * wanted, f"measured {name}")


def check_theory(rng, schedule, understood):
    """Counts of evidence, means of log ratios and what is left of initial differences."""
    turns = int(rng.integers(1, len(understood) + 1))
    theory, agents = realised(schedule, turns), schedule.agents
    counts, information = reference.counts(agents, understood[:turns]), rng.random(agents)
    same(theory.counts, counts, "counts")
    same(theory.mean_log_ratio(information), counts @ information, "mean log ratio")
    if theory.contraction is not None:
        same(theory.contraction, reference.contraction(agents, understood[:turns]), "contraction")


def flat(tree, agents):
    """A row of numbers an agent."""
    return np.concatenate([np.asarray(leaf).reshape(agents, -1) for leaf in jax.tree.leaves(tree)], axis=1)


def same(ours, expected, name):
    np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-9, err_msg=name)
