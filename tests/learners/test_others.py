"""Other learners, held to their equations written plainly: natural gradient, gradient steps, gradients tracked."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consilience.agent import Inbox
from consilience.beliefs import MeanField, Point
from consilience.consensus import pooling
from consilience.consensus.gradient_tracking import Descended, gradient_tracking
from consilience.learners import Minibatches
from consilience.learners.gradient import GradientOptions, gradient_learner
from consilience.learners.natural import NaturalOptions, natural_learner
from consilience.learners.packing import packing_of
from consilience.models import Model

KEY = jax.random.key(0)
D, STEPS, BATCH, ROWS = 3, 5, 4, 20
MODEL = Model(lambda key: {"w": jnp.zeros(D)}, lambda own, x: x @ own["w"][:, None])
RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.normal(size=(ROWS, D)))
Y = X @ jnp.array([1.0, -2.0, 0.5]) + 0.3 * jnp.asarray(RNG.normal(size=ROWS))
PACKING = packing_of(MODEL.init(KEY))
CHOSEN = jnp.asarray(RNG.integers(ROWS, size=(STEPS, BATCH)))
DATA = Minibatches(X, Y, CHOSEN, samples=float(ROWS))


def gaussian(outputs, targets):
    return -0.5 * (outputs[:, 0] - targets) ** 2


def mean_loss(w, rows):
    return 0.5 * jnp.mean((X[rows] @ w - Y[rows]) ** 2)


GIVEN = {"w": jnp.array([0.1, 0.2, -0.3])}


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("proximal", [0.0, 0.7])
def test_gradient_steps_are_those_of_the_textbook(optimizer, proximal):
    options = GradientOptions(learning_rate=0.05, decay=0.5, optimizer=optimizer, momentum=0.8, proximal=proximal)
    learner = gradient_learner(MODEL, PACKING, options, gaussian)
    own = learner.init(GIVEN)
    w, start = GIVEN["w"], GIVEN["w"]
    for number in range(2):  # the second round begins with no momentum, where it was pooled, with half the rate
        v, s = jnp.zeros(D), jnp.zeros(D)
        for k in range(STEPS):
            g = jax.grad(mean_loss)(w, CHOSEN[k]) + proximal * (w - start)
            rate = 0.05 * 0.5**number
            if optimizer == "sgd":
                v = 0.8 * v + g
                w = w - rate * v
            else:
                v, s = 0.8 * v + 0.2 * g, 0.999 * s + 0.001 * g**2
                w = w - rate * (v / (1 - 0.8 ** (k + 1))) / (jnp.sqrt(s / (1 - 0.999 ** (k + 1))) + 1e-8)
        own, _ = learner.fit(KEY, own, DATA)
        np.testing.assert_allclose(learner.belief(own).value, w, rtol=1e-6)
        pooled = Point(w + 0.1)
        own, w, start = learner.start(own, pooled, pooled), w + 0.1, w + 0.1


def test_a_round_in_parts_is_the_round():
    for learner in (
        gradient_learner(MODEL, PACKING, GradientOptions(optimizer="adam"), gaussian),
        natural_learner(MODEL, PACKING, NaturalOptions(mean="newton"), gaussian),
        natural_learner(MODEL, PACKING, NaturalOptions(), gaussian),
        natural_learner(MODEL, PACKING, NaturalOptions(correction=1.0), gaussian, summed=True),
    ):
        whole, _ = learner.fit(KEY, learner.init(GIVEN), DATA)
        part, _ = learner.fit(KEY, learner.init(GIVEN), DATA.between(0, 2))
        part, _ = learner.fit(KEY, part, DATA.between(2, STEPS))
        for one, other in zip(jax.tree.leaves(whole), jax.tree.leaves(part), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("mean", ["sgd", "newton"])
def test_natural_gradient_finds_the_posterior(mean):
    """Linear regression: the posterior of independent weights has precision λ E x² + Λ₀ and the mode as its mean."""
    many = 6000
    rows = jnp.asarray(RNG.integers(ROWS, size=(many, ROWS)))
    rate = 0.02 if mean == "sgd" else 0.004
    options = NaturalOptions(mean=mean, learning_rate=rate, curvature_decay=0.998, curvature=0.5, pull=10.0, floor=0.0)
    learner = natural_learner(MODEL, PACKING, options, gaussian)
    prior = MeanField.from_moments(jnp.array([0.5, 0.0, 0.0]), jnp.array([0.2, 1.0, 3.0]))
    own = learner.start(learner.init(GIVEN), prior, prior)
    own, _ = jax.jit(learner.fit)(KEY, own, Minibatches(X, Y, rows, samples=float(ROWS)))
    b = learner.belief(own)
    precision = ROWS * (X**2).mean(0) + prior.precision
    mode = jnp.linalg.solve(X.T @ X + jnp.diag(prior.precision), X.T @ Y + prior.precision_mean)
    np.testing.assert_allclose(b.mean, mode, atol=0.15 / np.sqrt(precision).min())
    np.testing.assert_allclose(b.precision, precision, rtol=0.25)


def test_newton_s_step_stays_where_data_and_prior_are_in_balance():
    """Where ĝ + δ (m − m₀) = 0, from a round's first step on, while the momentum is still gathering."""
    options = NaturalOptions(mean="newton", learning_rate=0.1, curvature_decay=1 - 1e-12, curvature=0.3)
    learner = natural_learner(MODEL, PACKING, options, lambda outputs, targets: -outputs[:, 0])  # ĝ = mean x, anywhere
    data = Minibatches(jnp.tile(X[:BATCH], (STEPS, 1)), Y, jnp.arange(STEPS * BATCH).reshape(STEPS, BATCH), ROWS * 1.0)
    prior = MeanField.from_moments(GIVEN["w"], jnp.array([0.2, 1.0, 3.0]))
    balanced = prior.mean - X[:BATCH].mean(0) * ROWS / prior.precision
    q = MeanField.from_moments(balanced, jnp.ones(D))
    own, _ = learner.fit(KEY, learner.start(learner.init(GIVEN), prior, q), data)
    np.testing.assert_allclose(learner.belief(own).mean, balanced, rtol=1e-9)


def test_without_a_pull_the_prior_comes_in_by_bayes_rule():
    learner = natural_learner(MODEL, PACKING, NaturalOptions(pull=0.0), gaussian)
    prior = MeanField.from_moments(jnp.array([5.0, 5.0, 5.0]), jnp.ones(3))
    far = MeanField.from_moments(GIVEN["w"], jnp.ones(3))
    own, _ = learner.fit(KEY, learner.start(learner.init(GIVEN), prior, far), DATA)
    b, evidence = learner.belief(own), own.scale * PACKING.flatten(own.curvature)
    site = MeanField(b.precision - prior.precision, b.precision_mean - prior.precision_mean)
    np.testing.assert_allclose(site.precision, evidence, rtol=1e-6)
    np.testing.assert_allclose(site.mean, PACKING.flatten(own.mean), rtol=1e-5)
    other = MeanField.from_moments(jnp.array([-5.0, 0.0, 2.0]), jnp.ones(3))
    moved, _ = learner.fit(KEY, learner.start(learner.init(GIVEN), other, far), DATA)
    np.testing.assert_allclose(PACKING.flatten(moved.mean), PACKING.flatten(own.mean), rtol=1e-6)  # the data's alone


def test_where_evidence_is_summed_up_a_pull_is_none():
    """A pull holds the mean near the prior; what is told of the data is N(m, 1/(λh)), wherever that led m."""
    learner = natural_learner(MODEL, PACKING, NaturalOptions(pull=0.5), gaussian, summed=True)
    prior = MeanField.from_moments(jnp.array([5.0, 5.0, 5.0]), jnp.full(3, 1e-3))
    own, _ = learner.fit(KEY, learner.start(learner.init(GIVEN), prior, prior), DATA)
    free, _ = natural_learner(MODEL, PACKING, NaturalOptions(pull=0.0), gaussian).fit(
        KEY, learner.start(learner.init(GIVEN), prior, prior), DATA
    )
    mean, at = PACKING.flatten(own.mean), PACKING.flatten(free.mean)
    assert (jnp.abs(mean - prior.mean) < jnp.abs(at - prior.mean)).all()
    b, evidence = learner.belief(own), own.scale * PACKING.flatten(own.curvature)
    np.testing.assert_allclose(b.precision_mean - prior.precision_mean, evidence * mean, rtol=1e-3)
    np.testing.assert_allclose(b.precision - prior.precision, evidence, rtol=1e-3)


SLOPED = Minibatches(jnp.tile(X[:BATCH], (STEPS, 1)), Y, jnp.arange(STEPS * BATCH).reshape(STEPS, BATCH), ROWS * 1.0)
CAVITY = MeanField.from_moments(jnp.array([5.0, -1.0, 2.0]), jnp.array([0.2, 1.0, 3.0]))
Q = MeanField.from_moments(GIVEN["w"], jnp.full(D, 0.1))


def slope(outputs, targets):
    """A loss whose gradient is the mean of the inputs, whatever weights are drawn."""
    return -outputs[:, 0]


@pytest.mark.parametrize("pull", [0.0, 0.3])
def test_a_correction_adds_the_slope_that_the_cavity_has_where_the_round_begins(pull):
    options = NaturalOptions(correction=0.8, pull=pull, learning_rate=0.03, momentum=0.6)
    learner = natural_learner(MODEL, PACKING, options, slope, summed=True)
    own, _ = learner.fit(KEY, learner.start(learner.init(GIVEN), CAVITY, Q), SLOPED)
    delta, m, v = CAVITY.precision / ROWS, Q.mean, jnp.zeros(D)
    for _ in range(STEPS):
        v = 0.6 * v + X[:BATCH].mean(0) + delta * (Q.mean - CAVITY.mean) + jnp.minimum(delta, pull) * (m - Q.mean)
        m = m - 0.03 * v
    np.testing.assert_allclose(PACKING.flatten(own.mean), m, rtol=1e-6)


def test_what_a_corrected_agent_says_of_its_data_moves_by_what_it_learnt():
    """t ← t · b/q: with the curvature of t, its mean goes as far as m went; h is at most what a round can take back."""
    options = NaturalOptions(
        correction=0.8, curvature=9.0, curvature_decay=1 - 1e-12, learning_rate=0.03, momentum=0.6, pull=0.0
    )
    learner = natural_learner(MODEL, PACKING, options, slope, summed=True)
    evidence = ROWS * 0.8 * (1 - 0.6) / (0.03 * STEPS)
    site = MeanField(jnp.full(D, evidence), evidence * jnp.array([1.0, 2.0, -3.0]))
    q = MeanField(CAVITY.precision + site.precision, CAVITY.precision_mean + site.precision_mean)
    own, _ = learner.fit(KEY, learner.start(learner.init(GIVEN), CAVITY, q), SLOPED)
    b = learner.belief(own)
    new = MeanField(b.precision - CAVITY.precision, b.precision_mean - CAVITY.precision_mean)
    np.testing.assert_allclose(new.precision, site.precision, rtol=1e-5)
    np.testing.assert_allclose(new.mean - site.mean, PACKING.flatten(own.mean) - q.mean, rtol=1e-4)
    nothing = learner.belief(learner.adopt(own))  # without data what is believed is the cavity
    np.testing.assert_allclose(nothing.precision_mean, CAVITY.precision_mean, rtol=1e-6)


def test_temperature_is_a_factor_on_the_data():
    """λ = n / temperature: half the temperature is twice the data."""
    both = [
        natural_learner(MODEL, PACKING, NaturalOptions(temperature=temperature), gaussian).fit(
            KEY, natural_learner(MODEL, PACKING, NaturalOptions(), gaussian).init(GIVEN), DATA._replace(samples=samples)
        )[0]
        for temperature, samples in ((0.5, float(ROWS)), (1.0, 2.0 * ROWS))
    ]
    for one, other in zip(*map(jax.tree.leaves, both), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_tracked_gradients_agree_where_all_data_together_is_best():
    """Two agents, each with its own half of a regression: averages of local descents do not end at the pooled best."""
    halves = [slice(0, 5), slice(5, ROWS)]
    best = jnp.linalg.solve(*(sum(f(X[own], Y[own]) / (own.stop - own.start) for own in halves)
                              for f in (lambda x, y: x.T @ x, lambda x, y: x.T @ y)))  # fmt: skip
    options = GradientOptions(learning_rate=0.05, decay=1.0, momentum=0.0)
    found = {}
    for shifted in (False, True):
        learner = gradient_learner(MODEL, PACKING, options, gaussian, shifted)
        agent = gradient_tracking(learner, PACKING, options) if shifted else pooling(learner)
        _, learn, publish, pool = (jax.jit(f) for f in agent)
        batches = [
            Minibatches(X[own], Y[own], jnp.tile(jnp.arange(own.stop - own.start), (6, 1)), 1.0) for own in halves
        ]
        states = [agent.init(GIVEN) for _ in halves]
        for _ in range(300):
            states = [learn(KEY, state, batch)[0] for state, batch in zip(states, batches, strict=True)]
            said = [publish(state) for state in states]
            mixed = [jax.tree.map(lambda a, b, p=p: p * a + (1 - p) * b, *said) for p in (0.7, 0.3)]
            states = [pool(state, Inbox(heard)) for state, heard in zip(states, mixed, strict=True)]
        last = publish(states[0])
        found[shifted] = (last.weights if isinstance(last, Descended) else last).value
    np.testing.assert_allclose(found[True], best, atol=1e-6)
    assert np.abs(found[False] - best).max() > 1e-3
