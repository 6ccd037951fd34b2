"""Everybody goes through its own data and nobody else's; a step is the gradient that is written."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.agent import Inbox
from consilience.beliefs import MeanField
from consilience.data import Partition
from consilience.engines.simulate import Simulation
from consilience.errors import InputError
from consilience.experiments.learn.description import OwnLearner
from consilience.learners.packing import packing_of
from consilience.learners.variational import started, variational, variational_learner
from consilience.models import mlp
from consilience.models.likelihoods import Categorical
from consilience.network import ring
from consilience.task.learner import LearnerConfig
from consilience.task.shared import NOBODY, Examples
from consilience.task.task import Task, arms_of, draw, work_of

B1, B2, EPSILON = 0.9, 0.999, 1e-8
ROWS = 110  # of a filled table


def dealt(sizes, spare, seed):
    """Agents with so many examples each, and some of nobody, in any order."""
    owner = np.repeat([*range(len(sizes)), NOBODY], [*sizes, spare])
    return Partition(np.random.default_rng(seed).permutation(owner), len(sizes))


def task_of(partitions, learner, kept=None, inputs=2):
    """A task whose examples have their own numbers as targets."""
    rows = len(next(iter(partitions.values())).owner)
    x = np.random.default_rng(9).normal(size=(rows, inputs))
    return Task(
        lambda: Examples(x, np.arange(rows)), partitions, kept, mlp((inputs,), 2, ()), Categorical(("a", "b")), learner
    )


@partial(jax.jit, static_argnums=(0, 1))
def _drawn(learner, steps, data, repetition, key, agent):
    """A draw on tables that are filled up to one size: one program for all of them."""
    return draw(learner, steps, None, data.of_repetition(repetition), key, agent)


def drawn(task, seeds, seed, agent, key=0):
    """What an agent of one repetition is given in a round: a row of example numbers a step, and their counts."""
    data = task.data(np.arange(task.held[seed].agents), seeds)
    fill = lambda array, size: np.concatenate([array, np.full((size - len(array), *array.shape[1:]), -7)])  # noqa: E731
    data = data._replace(inputs=fill(data.inputs, ROWS), targets=fill(data.targets, ROWS))
    data = data._replace(held=data.held._replace(order=fill(data.held.order, 4 * ROWS).astype(np.int32)))
    batch = _drawn(task.learner, task.steps(), data, seeds.index(seed), jax.random.key(key), agent)
    return batch, np.asarray(data.targets)[np.asarray(batch.chosen)]


@pytest.mark.parametrize(("batch", "epochs"), [(1, 1), (4, 3), (8, 1), (32, 2), (100, 2)])
@given(st.permutations([50, 0, 1, 3]), st.permutations([50, 7, 8, 31]), st.integers(0, 5), st.integers(0, 2**20))
@settings(max_examples=15, deadline=None)
def test_an_epoch_is_everything_of_its_own_once(batch, epochs, sizes, others, spare, key):
    """Also where repetitions have other partitions, with longer and shorter epochs."""
    rng = np.random.default_rng(key)
    seeds, rows = [3, 4], sum(others) + 5
    partitions = {3: dealt(sizes, rows - sum(sizes), key), 4: dealt(others, rows - sum(others), key + 1)}
    task = task_of(partitions, OwnLearner(batch=batch, epochs=epochs))
    for seed, agent in ((seed, agent) for seed in seeds for agent in range(4)):
        own = partitions[seed].share(agent)
        found, rows = drawn(task, seeds, seed, agent, key)
        an_epoch = -(-len(own) // batch)
        assert int(found.steps) == epochs * an_epoch
        assert float(found.samples) == max(len(own), 1)
        counts = np.asarray(found.counts)[: epochs * an_epoch]
        assert not an_epoch or counts.max() - counts.min() <= 1
        assert not an_epoch or counts.max() <= batch
        values = rng.normal(size=len(partitions[seed].owner))  # of each example
        for epoch in range(epochs if an_epoch else 0):
            steps = range(epoch * an_epoch, (epoch + 1) * an_epoch)
            used = np.concatenate([rows[step, : counts[step]] for step in steps])
            np.testing.assert_array_equal(np.sort(used), np.sort(own))
        if an_epoch:  # of the last epoch: whatever stands in the other places
            means = [float(MEAN(found, values[rows[step]], step)) for step in steps]
            np.testing.assert_allclose(np.mean(means), values[own].mean(), rtol=1e-9, atol=1e-12)


MEAN = jax.jit(lambda batch, values, step: batch.mean(values, step))


def test_epochs_and_agents_are_shuffled_each_in_its_own_way():
    task = task_of({0: dealt([50, 50], 0, 1)}, OwnLearner(batch=50, epochs=2))
    orders = [drawn(task, [0], 0, agent)[1][step] for agent in (0, 1) for step in (0, 1)]
    places = [np.argsort(np.argsort(order)).tobytes() for order in orders]
    assert len(set(places)) == 4


@pytest.mark.parametrize(
    ("sizes", "batch", "evidence"), [([3, 7, 50], 2, "own"), ([9, 8], 8, "used"), ([5, 7], 2, "drawn")]
)
def test_the_same_steps_for_all_are_those_of_the_smallest_share(sizes, batch, evidence):
    """The paper's rule: whole batches only, without replacement in an epoch."""
    epochs = 2
    task = task_of({0: dealt(sizes, 0, 5)}, LearnerConfig(batch=batch, epochs=epochs, evidence=evidence))
    an_epoch = min(sizes) // batch
    assert work_of(task) is None
    for agent, size in enumerate(sizes):
        found, rows = drawn(task, [0], 0, agent)
        assert rows.shape == (epochs * an_epoch, batch)
        assert found.counts is None
        assert int(found.steps) == epochs * an_epoch
        used = an_epoch * batch
        assert float(found.samples) == min(size, {"own": size, "drawn": epochs * used, "used": used}[evidence])
        for epoch in np.split(rows, epochs):
            assert len(set(epoch.ravel().tolist())) == used
            assert set(epoch.ravel().tolist()) <= set(task.held[0].share(agent).tolist())


def test_the_same_steps_need_a_batch_of_everybody():
    with pytest.raises(InputError, match=r"learner.batch: must be at most 3, the smallest share, got 4"):
        task_of({0: dealt([3, 9], 0, 0)}, LearnerConfig(batch=4)).check()
    with pytest.raises(InputError, match="nobody has any data"):
        task_of({0: dealt([0, 0], 3, 0)}, OwnLearner()).check()


def test_work_is_told_where_it_is_the_same_for_all_seeds():
    """Where it is not, cuts must not depend on the company."""
    even = {seed: dealt([3, 64, 0], 0, seed) for seed in (0, 1)}
    assert work_of(task_of(even, OwnLearner(batch=32))) == [1.0, 2.0, 0.0]
    assert work_of(task_of(even | {1: dealt([64, 3, 0], 0, 1)}, OwnLearner(batch=32))) is None


def test_one_step_is_the_gradient_that_is_written():
    """A share of 3 in a task of batches of 8: the sum over three, over n, plus the KL to the prior, by plain NumPy."""
    rate, sd, prior_sd, epochs = 0.05, 0.3, 2.0, 1
    learner = OwnLearner(batch=8, epochs=epochs, learning_rate=rate, initial_sd=sd, prior_sd=prior_sd, sd_rate=2.0)
    task = task_of({0: dealt([3, 20], 0, 3)}, learner)
    task = task._replace(load=partial(_labelled, task.load()))
    agent = variational(task.model, task.model.init(jax.random.key(0)), learner, task.likelihood.log_density)
    state = started(task.model.init(jax.random.key(0)), learner)
    key = jax.random.key(5)
    batch, _ = drawn(task, [0], 0, 0)
    learnt, _ = jax.jit(agent.learn)(key, state, batch)
    after = agent.publish(learnt)

    # Which weights were drawn is found from what they are: μ + σ ε, with the noise that the learner's key stands for.
    noise = _noise(agent, state, batch, key, sd)
    x, y = (np.asarray(part)[task.held[0].share(0)] for part in task.load()[:2])
    mean = np.asarray(state.prior.mean)
    w = mean + sd * noise
    slope = _nll_slope(w, x, y)  # of the mean over the three
    mean_slope = slope + (mean - mean) / prior_sd**2 / 3
    sd_slope = slope * (w - mean) + (sd**2 / prior_sd**2 - 1) / 3
    step = lambda g: np.sqrt(1 - B2) / (1 - B1) * (1 - B1) * g / (np.sqrt((1 - B2) * g * g) + EPSILON * np.sqrt(1 - B2))  # noqa: E731
    d = 2.0 * rate * step(sd_slope)
    expected_sd = sd * (1 - d * (1 - d / 2 * (1 - d / 3 * (1 - d / 4))))
    np.testing.assert_allclose(np.asarray(after.mean), mean - rate * step(mean_slope), rtol=1e-6)
    np.testing.assert_allclose(1 / np.sqrt(np.asarray(after.precision)), expected_sd, rtol=1e-6)


def _labelled(examples):
    return examples._replace(targets=np.asarray(examples.targets) % 2)


def _noise(agent, state, batch, key, sd):
    """ε of the only step: how far the loss sees the weights from the mean, read off a model that tells its weights."""
    seen = []
    probe = mlp((2,), 2, ())
    told = probe._replace(apply=lambda weights, x: _tell(seen, probe, weights, x))
    teller = variational(told, probe.init(jax.random.key(0)), OwnLearner(epochs=1, batch=8, initial_sd=sd), _of_two)
    jax.block_until_ready(jax.jit(teller.learn)(key, state, batch))
    jax.effects_barrier()
    weights = seen[0]
    flat = np.concatenate([np.asarray(leaf).ravel() for leaf in jax.tree.leaves(weights)])
    begin = np.concatenate([np.asarray(leaf).ravel() for leaf in jax.tree.leaves(probe.init(jax.random.key(0)))])
    return (flat - begin) / sd


def _tell(seen, probe, weights, x):
    jax.debug.callback(lambda *leaves: seen.append(leaves), *jax.tree.leaves(weights))
    return probe.apply(weights, x)


_of_two = Categorical(("a", "b")).log_density


def _nll_slope(w, x, y):
    """∇ of −(1/n) Σ log softmax, with biases first and then weights (out, in), as the leaves of the tree come."""
    c, W = w[:2], w[2:].reshape(2, 2)
    logits = x @ W.T + c
    p = np.exp(logits - logits.max(1, keepdims=True))
    p = p / p.sum(1, keepdims=True) - np.eye(2)[y]
    return np.concatenate([p.mean(0), (p.T @ x / len(x)).ravel()])


@pytest.mark.parametrize("start", ["own", "pooled"])
def test_whoever_has_no_data_publishes_what_it_pooled(start):
    learner = OwnLearner(batch=4, epochs=2, start=start)
    partitions = {0: dealt([5, 0, 9], 2, 0)}
    task = task_of(partitions, learner)
    task = task._replace(load=partial(_labelled, task.load()))
    arm = arms_of(task, {"a": ring(3)}, lambda rule: lambda data, progress, number, key: {"n": 1.0 * number}, 9)["a"]
    for devices in (1, 2):
        simulation = Simulation(arm, [0], jax.devices()[:devices])
        progress, held = simulation.start(), None
        for number in (1, 2, 3):
            before = jax.tree.map(np.asarray, simulation.agents(progress).state.prior)
            progress, _ = simulation.play(number, [number], [True], progress)
            now = jax.tree.map(np.asarray, simulation.agents(progress))
            for said, pooled in zip(now.public, before, strict=True):
                np.testing.assert_allclose(said[0, 1], pooled[0, 1], rtol=1e-12)
                assert np.abs(said[0, 0] - pooled[0, 0]).max() > 1e-6  # who has data learns
            heard = now.state.prior.precision_mean[0, 1] / now.state.prior.precision[0, 1]
            assert held is None or np.abs(heard - held).max() > 1e-6  # and it hears of it
            held = heard


def test_what_is_adopted_is_the_prior():
    parameters = {"w": jnp.arange(6.0).reshape(2, 3), "c": jnp.zeros(2)}
    state = started(parameters, OwnLearner())
    model = mlp((3,), 2, ())
    agent = variational(model, parameters, OwnLearner(start="own"))
    heard = MeanField.from_moments(jnp.arange(8.0), jnp.full(8, 0.25))
    state = agent.pool(state, Inbox(heard))
    learner = variational_learner(model, packing_of(parameters), OwnLearner(start="own"))
    said = agent.publish(learner.adopt(state))
    np.testing.assert_allclose(np.asarray(said.mean), np.arange(8.0), atol=1e-12)
    np.testing.assert_allclose(np.asarray(said.precision), 4.0)


def test_a_host_keeps_the_rows_of_its_own_agents_only():
    """What others hold, and what is nobody's, is not among them; what is held back is."""
    held, kept = dealt([3, 5, 4], 6, 0), dealt([2, 1, 3], 12, 1)
    kept = Partition(np.where(held.owner == NOBODY, kept.owner, NOBODY), 3)
    task = task_of({0: held}, OwnLearner(), {0: kept})
    data = task.data(np.array([0, 2]), [0])
    expected = np.flatnonzero(np.isin(held.owner, [0, 2]) | np.isin(kept.owner, [0, 2]))
    np.testing.assert_array_equal(np.sort(data.targets), expected)
    for part, partition in ((data.held, held), (data.kept, kept)):
        for agent in (0, 2):
            first = int(part.offset[0][agent])
            rows = part.order[first : first + int(part.size[0][agent])]
            np.testing.assert_array_equal(np.sort(data.targets[rows]), partition.share(agent))


def test_an_agents_draw_follows_from_its_key_alone():
    """Whatever the company: other sizes of others change nothing of one's own order."""
    learner = OwnLearner(batch=4, epochs=2)
    one = task_of({0: dealt([9], 0, 0)}, learner)
    two = task_of({0: Partition(np.concatenate([one.held[0].owner, np.full(40, 1)]), 2)}, learner)
    rows, others = drawn(one, [0], 0, 0)[1], drawn(two, [0], 0, 0)[1]
    counts = np.asarray(drawn(one, [0], 0, 0)[0].counts)
    for step in range(6):
        np.testing.assert_array_equal(rows[step, : counts[step]], others[step, : counts[step]])
