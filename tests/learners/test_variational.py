"""The variational learner against brute force, optax's Adam, and the conjugate learner."""

import os
import subprocess
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consilience.agent import Inbox
from consilience.beliefs import Gaussian, MeanField
from consilience.learners import Minibatches, Observations, Options, conjugate, variational
from consilience.learners.packing import packing_of
from consilience.models import Model, log_likelihood, mlp

KEY = jax.random.key(0)
NOISE = 0.5


def gaussian_likelihood(outputs, labels):
    return -((outputs[:, 0] - labels) ** 2) / (2 * NOISE**2)


LINE = Model(
    init=lambda key: {"w": jnp.zeros((1, 3))},
    apply=lambda p, x: x @ p["w"].T,
    apply_gaussian=lambda m, v, x, key: (
        x @ m["w"].T + jnp.sqrt((x * x) @ v["w"].T) * jax.random.normal(key, (x.shape[0], 1))
    ),
)


@pytest.mark.parametrize("estimator", ["weights", "outputs"])
def test_the_linear_gaussian_case_agrees_with_the_conjugate_learner(estimator):
    """The mean-field optimum has the exact posterior's mean, and variances 1/Λ_kk."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    exact = conjugate(Gaussian.from_moments(jnp.zeros(3), 0.25 * jnp.eye(3)), NOISE)
    posterior, _ = exact.learn(KEY, exact.init(KEY), Observations(jnp.array(X), jnp.array(y)))
    options = Options(
        learning_rate=0.02, decay=0.9, initial_sd=0.2, prior_sd=0.5, estimator=estimator, sd_rate=1.0, start="own"
    )
    agent = variational(LINE, LINE.init(KEY), options, gaussian_likelihood)
    steps = 400
    batch = Minibatches(jnp.array(X), jnp.array(y), jnp.tile(jnp.arange(40), (steps, 1)), 40.0)
    state, learn = agent.init(KEY), jax.jit(agent.learn)
    for number in range(60):  # the prior stays: nobody pools
        state, _ = learn(jax.random.key(number), state, batch)
    mean, variance = agent.publish(state).moments()
    np.testing.assert_allclose(mean, posterior.mean, atol=0.01)
    np.testing.assert_allclose(1 / variance, jnp.diagonal(posterior.precision), rtol=0.05)


def some_data(rng, steps, size, samples):
    inputs, labels = rng.normal(size=(steps * size, 4)), rng.integers(0, 3, steps * size)
    return Minibatches(jnp.array(inputs), jnp.array(labels), jnp.arange(steps * size).reshape(steps, size), samples)


@pytest.mark.parametrize("estimator", ["weights", "outputs"])
def test_a_round_learnt_in_two_parts_is_the_round(estimator):
    """Up to rounding (a draw inside the loop and one before it): an agent can change cores in the middle of a round."""
    model = mlp((4,), 3, (5,))
    agent = variational(model, model.init(jax.random.key(1)), Options(estimator=estimator))
    batch, learn = some_data(np.random.default_rng(0), 7, 6, 50.0), jax.jit(agent.learn)
    whole, _ = learn(KEY, agent.init(KEY), batch.between(0, 7))
    half, _ = learn(KEY, agent.init(KEY), batch.between(0, 3))
    both, _ = learn(KEY, half, batch.between(3, 7))
    assert (float(half.rounds), float(both.rounds), float(both.steps)) == (0, 1, 7)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-12), whole, both)


@pytest.mark.parametrize("estimator", ["weights", "outputs"])
@pytest.mark.parametrize("of_round", [0, 7])
def test_no_step_changes_nothing(estimator, of_round):
    """A part of a round too small for a step, or a round without any: the same state bit for bit, and a loss of 0."""
    model = mlp((4,), 3, (5,))
    agent = variational(model, model.init(jax.random.key(1)), Options(estimator=estimator))
    batch, learn = some_data(np.random.default_rng(0), 7, 6, 50.0), jax.jit(agent.learn)
    before, _ = learn(KEY, agent.init(KEY), batch)
    rounds = batch._replace(of_round=jnp.array(of_round))
    for first in {0, of_round}:
        after, info = learn(KEY, before, rounds.between(jnp.array(first), jnp.array(first)))
        jax.tree.map(np.testing.assert_array_equal, before, after)
        assert info["loss"] == 0


def brute_force_objective(model, packing, vector_mean, vector_sd, prior, batch, kl_weight, count=4000):
    """E_b[mean NLL] + kl_weight KL(b ‖ q)/n by many antithetic draws."""
    half = jax.random.normal(jax.random.key(99), (count // 2, packing.size))
    noise = jnp.concatenate([half, -half])

    def nll(draw):
        logits = model.apply(packing.unpack(packing.split(vector_mean + vector_sd * draw)), batch.step(0)[0])
        return -log_likelihood(logits, batch.step(0)[1]).mean()

    kl = MeanField.from_moments(vector_mean, vector_sd**2).kl(prior)
    return jax.lax.map(nll, noise, batch_size=500).mean() + kl_weight * kl / batch.samples


@pytest.mark.parametrize("estimator", ["weights", "outputs"])
def test_the_mean_gradient_is_that_of_the_objective(estimator):
    """Adam's first moment after one step from zero is (1−β₁) times the gradient; averaged over many keys."""
    model = mlp((4,), 3, (5,))
    initial = model.init(jax.random.key(1))
    packing = packing_of(initial)
    options = Options(initial_sd=0.3, prior_sd=0.7, kl_weight=0.5, estimator=estimator, learning_rate=1e-9, start="own")
    agent = variational(model, initial, options)
    rng = np.random.default_rng(2)
    batch = some_data(rng, 1, 8, 20.0)
    state = agent.init(KEY)
    away = MeanField.from_moments(state.prior.mean + 0.1, jnp.full(packing.size, 0.7**2))
    state = agent.pool(state, Inbox(away))

    def first_moments(key):
        fit = agent.learn(key, state, batch)[0].fit
        return packing.flatten(fit.mean_first) / 0.1, packing.flatten(fit.sd_first) / 0.1

    draws = jax.lax.map(first_moments, jax.random.split(jax.random.key(3), 20_000), batch_size=1000)
    mean, sd = packing.flatten(state.fit.mean), packing.flatten(state.fit.sd)
    objective = lambda m, log_sd: brute_force_objective(model, packing, m, jnp.exp(log_sd), away, batch, 0.5)  # noqa: E731
    expected = jax.grad(objective, argnums=(0, 1))(mean, jnp.log(sd))
    for ours, theirs in zip(draws, expected, strict=True):
        error = 5 * np.asarray(ours).std(0) / 20_000**0.5 + 0.004
        assert (np.abs(np.asarray(ours).mean(0) - np.asarray(theirs)) < error).all()


def test_steps_are_adam_on_mean_and_log_sd():
    """With the weights' noise known, thirty steps are thirty steps of Adam written out."""
    model = mlp((4,), 3, (5,))
    initial = model.init(jax.random.key(1))
    packing = packing_of(initial)
    rng = np.random.default_rng(0)
    steps = 30
    batch = some_data(rng, steps, 6, 50.0)
    options = Options(learning_rate=1e-2, initial_sd=0.1, prior_sd=0.2, sd_rate=1.0, start="own")
    agent = variational(model, initial, options)
    state, _ = agent.learn(KEY, agent.init(KEY), batch)

    from consilience.models.noise import KEY_WORDS, normal

    keys = jax.random.bits(KEY, (steps + 1, 1, KEY_WORDS), jnp.uint32)
    prior = MeanField.from_moments(packing.flatten(packing.pack(initial)), jnp.full(packing.size, 0.04))
    mu, rho = prior.mean, jnp.full(packing.size, jnp.log(0.1))
    m, v = jnp.zeros((2, packing.size)), jnp.zeros((2, packing.size))

    def loss(mu, rho, number):
        weights = mu + jnp.exp(rho) * normal((1, packing.size), keys[number, 0])[0]
        logits = model.apply(packing.unpack(packing.split(weights)), batch.step(number)[0])
        kl = MeanField.from_moments(mu, jnp.exp(2 * rho)).kl(prior)
        return -log_likelihood(logits, batch.step(number)[1]).mean() + kl / 50

    for number in range(steps):
        g = jnp.stack(jax.grad(loss, argnums=(0, 1))(mu, rho, number))
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        d = 1e-2 * (m / (1 - 0.9 ** (number + 1))) / (jnp.sqrt(v / (1 - 0.999 ** (number + 1))) + 1e-8)
        mu, rho = mu - d[0], rho - d[1]
    np.testing.assert_allclose(packing.flatten(state.fit.mean), mu, atol=1e-6)
    np.testing.assert_allclose(packing.flatten(state.fit.sd), jnp.exp(rho), rtol=1e-6)


def test_between_rounds():
    model = mlp((4,), 3, (5,))
    initial = model.init(jax.random.key(1))
    rng = np.random.default_rng(0)
    batch = some_data(rng, 3, 6, 50.0)
    for start in ("own", "pooled"):
        agent = variational(model, initial, Options(learning_rate=1e-12, start=start, initial_sd=0.1, prior_sd=0.2))
        state = agent.init(KEY)
        state, info = agent.learn(KEY, agent.pool(state, Inbox(state.prior)), batch)
        expected = 0.1 if start == "own" else 0.2
        np.testing.assert_allclose(agent.publish(state).moments()[1] ** 0.5, expected, rtol=1e-6)
        assert float(info["loss"]) > 0
        assert float(state.rounds) == 1
    kept = variational(model, initial, Options(moments="keep"))
    reset = variational(model, initial, Options(moments="reset"))
    counts = []
    for agent in (kept, reset):
        state = agent.init(KEY)
        for _ in range(2):
            state, _ = agent.learn(KEY, agent.pool(state, Inbox(state.prior)), batch)
        counts.append(float(state.steps))
    assert counts == [6, 3]


def test_outputs_need_a_model_that_offers_them():
    with pytest.raises(ValueError, match="needs a model with apply_gaussian"):
        variational(Model(LINE.init, LINE.apply), LINE.init(KEY), Options(estimator="outputs"))


PROGRAM = """
from consilience.machine.runtime import use_all_cores
use_all_cores()
import jax, jax.numpy as jnp, re
from consilience.learners import Minibatches, Options, variational
from consilience.models import mlp
model = mlp((784,), 10)
agent = variational(model, model.init(jax.random.key(0)), Options(start="own"))
batch = Minibatches(jnp.zeros((200, 784), jnp.uint8), jnp.zeros(200, int), jnp.zeros((4, 50), int), 100.0)
state = jax.eval_shape(agent.init, jax.random.key(0))
text = jax.jit(agent.learn, donate_argnums=1).lower(jax.random.key(0), state, batch).compile().as_text()
body = [line for line in text.splitlines() if " fusion(" in line]
print(max(line.split(" fusion(")[0].count("f32[200,784]") for line in body))
print(len(re.findall(r"= f32\\[200,784\\]\\S* copy\\(", text)))
"""


def test_the_update_is_one_pass_over_memory():
    """All seven arrays of the largest layer come from one loop, which copies none of them (docs/performance.md)."""
    environment = {**os.environ, "XLA_FLAGS": "", "JAX_ENABLE_X64": "0"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, env=environment)
    outputs, copies = map(int, done.stdout.split())
    assert outputs == 7
    assert copies <= 1  # at most on the way in
