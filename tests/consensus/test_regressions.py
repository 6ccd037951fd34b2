"""Regressions by Laplace's approximation: everybody ends with mode and covariance of the pooled table."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import plain_agents
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from troubled_networks import TROUBLES, directed, troubled

from consilience.consensus import pooling, sites, tracking
from consilience.learners import Minibatches
from consilience.learners.laplace import laplace_learner
from consilience.models.likelihoods import Bernoulli, Gaussian, Poisson
from consilience.network import Flows, Tables, ring

D, PRIOR_SD, BATCH, MOST = 3, 1.5, 4, 12
# Sums that have not mixed are wrong: sites change more slowly, most so where likelihoods are exponential.
DAMPING = {"gaussian": 0.3, "bernoulli": 0.3, "poisson": 0.1}
OF = {"gaussian": Gaussian(noise=0.7), "bernoulli": Bernoulli(("no", "yes")), "poisson": Poisson()}


def apply(point, inputs):
    return inputs @ point[:, None]


def table(rng, kind, agents):
    """Unequal shares: some agents have a row, one may have none."""
    sizes = rng.integers(0, MOST + 1, agents)
    sizes[rng.integers(agents)] = MOST
    x = np.concatenate([np.ones((agents, MOST, 1)), rng.normal(size=(agents, MOST, D - 1))], axis=-1)
    f = x @ rng.normal(size=D)
    y = {
        "gaussian": lambda: f + 0.7 * rng.normal(size=f.shape),
        "bernoulli": lambda: (rng.random(f.shape) < 1 / (1 + np.exp(-f))).astype(int),
        "poisson": lambda: rng.poisson(np.exp(np.minimum(f, 4))),
    }[kind]()
    return sizes, x, y


def batch_of(sizes, x, y, i):
    """All own rows, in steps of a few; places that hold nothing are filled with whatever is there."""
    steps = -(-MOST // BATCH)
    chosen = jnp.arange(steps * BATCH).reshape(steps, BATCH)
    counts = np.clip(sizes[i] - np.arange(steps) * BATCH, 0, BATCH)
    return Minibatches(
        jnp.asarray(x[i]),
        jnp.asarray(y[i]),
        chosen,
        float(sizes[i]),
        of_round=steps,
        counts=jnp.asarray(counts),
        scale=1.0,
    )


def pooled_analysis(kind, sizes, x, y):
    """Mode and covariance of all rows in one place, by scipy."""
    rows = np.arange(MOST) < sizes[:, None]
    X, Y = jnp.asarray(x[rows]), jnp.asarray(y[rows])

    def loss(w):
        return -OF[kind].log_density(apply(w, X), Y).sum() + 0.5 * (w**2).sum() / PRIOR_SD**2

    found = minimize(jax.jit(loss), np.zeros(D), jac=jax.jit(jax.grad(loss)), hess=jax.jit(jax.hessian(loss)),
                     method="trust-exact", options={"gtol": 1e-11})  # fmt: skip
    return found.x, np.linalg.inv(jax.hessian(loss)(jnp.asarray(found.x)))


@cache
def agent_of(kind, rule, agents):
    learner = laplace_learner(apply, D, PRIOR_SD, OF[kind].log_density)
    consensus = {"sites": sites, "paper": pooling, "tracking": partial(tracking, agents=agents, damping=DAMPING[kind])}[
        rule
    ]
    return plain_agents.compiled(consensus(learner))


def play(kind, rule, schedule, rounds, data):
    agents = len(data[0])
    made = Tables(schedule, rounds) if rule == "sites" else Flows(schedule, rounds) if rule == "tracking" else schedule
    agent = agent_of(kind, rule, agents)
    batches = [batch_of(*data, i) for i in range(agents)]
    turns = [made.turn(number) for number in range(1, rounds + 1)]
    return plain_agents.play(agent, [plain_agents.KEY] * agents, turns, lambda number, i: batches[i])


@pytest.mark.parametrize(
    ("kind", "rule", "agents", "rounds"),
    [
        *((kind, "sites", 6, 100) for kind in OF),
        ("gaussian", "tracking", 4, 500),
    ],
)
@settings(max_examples=2, deadline=None)
@given(trouble=st.sampled_from(TROUBLES), seed=st.integers(0, 10**6))
def test_everybody_has_the_pooled_analysis(kind, rule, agents, rounds, trouble, seed):
    check_pooled(kind, rule, agents, rounds, trouble, seed)


@pytest.mark.parametrize(
    ("kind", "trouble", "rounds"),
    [
        ("bernoulli", "loss", 200),
        ("bernoulli", "churn", 250),
        pytest.param("bernoulli", "clocks", 700, marks=pytest.mark.soak),
        pytest.param("poisson", "clocks", 1500, marks=pytest.mark.soak),
        pytest.param("poisson", "churn", 900, marks=pytest.mark.soak),
    ],
)
def test_tracking_comes_to_it_too(kind, trouble, rounds):
    """What sums say before they have mixed is learnt from, too: it takes longer, most where agents are late."""
    check_pooled(kind, "tracking", 4, rounds, trouble, seed=0)


def check_pooled(kind, rule, agents, rounds, trouble, seed):
    rng = np.random.default_rng(seed)
    schedule = troubled(rng, directed(rng, agents), trouble)
    data = table(rng, kind, agents)
    mode, covariance = pooled_analysis(kind, *data)
    for state in play(kind, rule, schedule, rounds, data):
        found = state.q.moments()
        np.testing.assert_allclose(found[0], mode, atol=1e-6 * np.abs(mode).max())
        np.testing.assert_allclose(found[1], covariance, atol=1e-6 * np.abs(covariance).max())


def test_twenty_agents():
    rng = np.random.default_rng(0)
    schedule, data = troubled(rng, directed(rng, 20), "clocks"), table(rng, "bernoulli", 20)
    mode, covariance = pooled_analysis("bernoulli", *data)
    for state in play("bernoulli", "sites", schedule, 100, data):
        np.testing.assert_allclose(state.q.mean, mode, atol=1e-6 * np.abs(mode).max())
        np.testing.assert_allclose(state.q.moments()[1], covariance, atol=1e-6 * np.abs(covariance).max())


def test_it_is_what_scikit_learn_finds():
    rng = np.random.default_rng(5)
    sizes, x, y = table(rng, "bernoulli", 5)
    rows = np.arange(MOST) < sizes[:, None]
    theirs = LogisticRegression(C=PRIOR_SD**2, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(x[rows], y[rows])
    states = play("bernoulli", "sites", troubled(rng, directed(rng, 5), "loss"), 60, (sizes, x, y))
    for state in states:
        np.testing.assert_allclose(state.q.mean, theirs.coef_[0], atol=1e-6)


def test_the_paper_s_rule_has_another_answer():
    """It weighs agents by their place in the network, and counts everybody's data again in every round."""
    rng = np.random.default_rng(7)
    data = table(rng, "bernoulli", 5)
    mode, covariance = pooled_analysis("bernoulli", *data)
    network = directed(rng, 5)
    few, many = (play("bernoulli", "paper", troubled(rng, network, "loss"), rounds, data) for rounds in (5, 50))
    sds = [np.sqrt(np.diagonal(states[0].prior.moments()[1])) for states in (few, many)]
    assert (sds[1] < 0.5 * np.sqrt(np.diagonal(covariance))).all()
    assert (sds[1] < 0.6 * sds[0]).all()
    assert np.abs(np.asarray(many[0].prior.mean) - mode).max() > 1e-2


def test_a_start_far_away_does_not_lead_further_away():
    """Counts that grow with the input: full Newton steps of an exponential overshoot."""
    x = np.stack([np.ones((2, MOST)), np.linspace(-8, 8, 2 * MOST).reshape(2, MOST), np.zeros((2, MOST))], axis=-1)
    y = np.random.default_rng(0).poisson(np.exp(0.6 * x[..., 1]))
    data = np.array([MOST, MOST]), x, y
    mode, covariance = pooled_analysis("poisson", *data)
    rng = np.random.default_rng(1)
    for state in play("poisson", "sites", troubled(rng, directed(rng, 2), "loss"), 100, data):
        np.testing.assert_allclose(state.q.mean, mode, atol=1e-6)
        np.testing.assert_allclose(state.q.moments()[1], covariance, atol=1e-6)


def outputs_with_noise(point, inputs):
    """f, and log σ beside it, which is learnt."""
    f = inputs @ point[:-1]
    return jnp.stack([f, jnp.full_like(f, point[-1])], axis=1)


def rows_of(seed, agents, sd):
    rng = np.random.default_rng(seed)
    x = np.concatenate([np.ones((agents, MOST, 1)), rng.normal(size=(agents, MOST, D - 1))], axis=-1)
    y = 3 * x @ rng.normal(size=D) + sd * rng.normal(size=x.shape[:2])
    return rng.integers(4, MOST + 1, agents), x, y


@pytest.mark.parametrize("sd", [0.02, 0.3, 3.0])
@pytest.mark.parametrize("agents", [3, 5])
def test_a_noise_that_is_learnt_leads_nobody_astray(agents, sd):
    """Few rows and a good fit: joint Newton steps of mean and log σ run away, as log ℓ is not concave in both."""
    noisy = Gaussian()
    learner = laplace_learner(outputs_with_noise, D + 1, PRIOR_SD, noisy.log_density, False, noisy.above)
    agent = plain_agents.compiled(sites(learner))
    for seed in range(2):
        data = rows_of(seed, agents, sd)
        mode, covariance = with_noise_pooled(*data)
        made = Tables(ring(agents), 80)
        batches = [batch_of(*data, i) for i in range(agents)]
        turns = [made.turn(number) for number in range(1, 81)]
        states = plain_agents.play(agent, [plain_agents.KEY] * agents, turns, lambda number, i: batches[i])  # noqa: B023
        for state in states:
            found = state.q.moments()
            np.testing.assert_allclose(found[0], mode, atol=1e-6 * np.abs(mode).max())
            np.testing.assert_allclose(found[1], covariance, atol=1e-6 * np.abs(covariance).max())


def with_noise_pooled(sizes, x, y):
    """Mode and covariance of means and log σ, of all rows in one place, by scipy from where least squares lead."""
    rows = np.arange(MOST) < sizes[:, None]
    X, Y = jnp.asarray(x[rows]), jnp.asarray(y[rows])

    def loss(w):
        return -Gaussian().log_density(outputs_with_noise(w, X), Y).sum() + 0.5 * (w**2).sum() / PRIOR_SD**2

    found = np.linalg.lstsq(X, Y, rcond=None)[0]
    start = np.append(found, np.log(np.std(Y - X @ found)))
    best = minimize(jax.jit(loss), start, jac=jax.jit(jax.grad(loss)), hess=jax.jit(jax.hessian(loss)),
                    method="trust-exact", options={"gtol": 1e-10})  # fmt: skip
    return best.x, np.linalg.inv(jax.hessian(loss)(jnp.asarray(best.x)))
