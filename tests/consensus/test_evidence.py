"""Every agent's data counts once: sums of sites on any graph, with loss, clocks and churn, are those of all data."""

import jax
import jax.numpy as jnp
import numpy as np
import plain_agents
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from troubled_networks import TROUBLES, directed, troubled

from consilience.agent import Inbox
from consilience.beliefs import Categorical, Gaussian, MeanField
from consilience.consensus import pooling, sites, tracking
from consilience.consensus.evidence import at_least, renewed
from consilience.learners import Observations, conjugate_learner, evidence, exact_learner
from consilience.network import from_matrix
from consilience.network.flows import Flows
from consilience.network.tables import Tables

NOISE, D = 0.7, 3
PRIOR = Gaussian.from_moments(jnp.zeros(D), 2.0 * jnp.eye(D))


def observed(rng, agents):
    x = jnp.asarray(rng.normal(size=(agents, 4, D)))
    return Observations(x, jnp.asarray(x @ np.arange(1, D + 1) + NOISE * rng.normal(size=(agents, 4))))


def of_all(data):
    return evidence(Observations(data.features.reshape(-1, D), data.labels.reshape(-1)), NOISE)


def relative(one, other):
    return max(float(jnp.abs(x - y).max() / jnp.abs(y).max()) for x, y in zip(one, other, strict=True))


LEARNER = conjugate_learner(PRIOR, NOISE)
AGENTS = 6
AGENT = {
    name: plain_agents.compiled(agent)
    for name, agent in {
        "sites": sites(LEARNER),
        "tracking": tracking(LEARNER, AGENTS),
        "paper": pooling(LEARNER),
    }.items()
}


@pytest.mark.parametrize(("rule", "rounds"), [("sites", 60), ("tracking", 250)])
@settings(max_examples=4, deadline=None)
@given(trouble=st.sampled_from(TROUBLES), seed=st.integers(0, 10**6))
def test_everybody_ends_with_the_posterior_of_all_data(rule, rounds, trouble, seed):
    """Each sees its data once, in the first round that it learns in; then nothing new."""
    rng = np.random.default_rng(seed)
    schedule = troubled(rng, directed(rng, AGENTS), trouble)
    data = observed(rng, AGENTS)
    seen = set()

    def batch(number, i):
        first, _ = i not in seen, seen.add(i)
        return jax.tree.map(lambda x: np.asarray(x)[i] * float(first), data)

    exact = jax.tree.map(jnp.add, PRIOR, of_all(data))

    def error_after(rounds):
        made = Tables(schedule, rounds) if rule == "sites" else Flows(schedule, rounds)
        turns = [made.turn(number) for number in range(1, rounds + 1)]
        seen.clear()
        states = plain_agents.play(AGENT[rule], [plain_agents.KEY] * AGENTS, turns, batch)
        assert len(seen) == AGENTS
        return max(relative(state.q.moments(), exact.moments()) for state in states)

    assert error_after(rounds) < 1e-6 or error_after(4 * rounds) < 1e-6  # some networks mix more slowly than most
    plain = [schedule.turn(number) for number in range(1, rounds + 1)]
    seen.clear()
    states = plain_agents.play(AGENT["paper"], [plain_agents.KEY] * AGENTS, plain, batch)
    assert max(relative(state.moments(), exact.moments()) for state in states) > 1e-2  # the paper's rule weighs by v


def test_who_gives_all_away_and_hears_nobody_keeps_its_belief():
    """Half of its part goes in every round, until nothing is left that could be divided by; float32 ends first."""
    agent, data = AGENT["tracking"], observed(np.random.default_rng(3), 1)
    with jax.enable_x64(False):
        state = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), agent.init(plain_agents.KEY))
        batch = jax.tree.map(lambda x: jnp.asarray(x[0], jnp.float32), data)
        for number in range(300):
            state, _ = agent.learn(plain_agents.KEY, state, jax.tree.map(lambda x, n=number: x * (n == 0), batch))
            state = agent.pool(state, Inbox(jax.tree.map(lambda x: x / 2, agent.publish(state))))
            if number == 20:
                early = state.q
    assert float(state.sums.agents) < 1e-30
    assert relative(state.q.moments(), early.moments()) < 1e-3


def test_hypotheses_too():
    tables = jnp.log(jnp.array([[0.5, 0.5], [0.2, 0.8], [0.9, 0.1]]))  # of two outcomes under three hypotheses
    learner = exact_learner(Categorical.uniform(3), lambda outcome: tables[:, outcome])
    network = from_matrix([[0.9, 0.1, 0], [0, 0.5, 0.5], [0.3, 0.3, 0.4]])
    outcomes = np.random.default_rng(0).integers(2, size=(12, 3))
    total = sum(tables[:, outcome] for outcome in outcomes.reshape(-1))
    made = Tables(network, 12)
    turns = [made.turn(number) for number in range(1, 13)]
    states = plain_agents.play(
        plain_agents.compiled(sites(learner)),
        [plain_agents.KEY] * 3,
        turns,
        lambda number, i: int(outcomes[number - 1, i]),
    )
    # On this cycle the newest outcomes have not reached everybody: agent 0 hears 1 at once and 2 a round later.
    missing = tables[:, int(outcomes[-1, 2])]
    expected = Categorical(total - missing).moments()
    np.testing.assert_allclose(states[0].q.moments(), expected, rtol=1e-9)


def test_a_site_never_takes_precision_away():
    q = MeanField(jnp.array([4.0, 4.0]), jnp.array([4.0, 4.0]))
    site = MeanField(jnp.array([1.0, 1.0]), jnp.array([1.0, 1.0]))
    b = MeanField(jnp.array([6.0, 2.0]), jnp.array([12.0, 6.0]))  # surer of one, less sure of the other; means 2 and 3
    new, floored = renewed(site, b, q, 1.0)
    np.testing.assert_allclose(new.precision, [3.0, 0.0])
    assert floored == 0.5
    cavity = MeanField(q.precision - site.precision, q.precision_mean - site.precision_mean)
    mean = (cavity.precision_mean + new.precision_mean) / (cavity.precision + new.precision)
    np.testing.assert_allclose(mean, [2.0, 3.0])  # where learning put them
    half, _ = renewed(site, b, q, 0.5)
    np.testing.assert_allclose(half.precision, [2.0, 0.0])


def test_a_cavity_is_at_least_as_sure_as_the_first_prior():
    first = MeanField(jnp.full(3, 2.0), jnp.zeros(3))
    belief = MeanField(jnp.array([3.0, 1.0, -1.0]), jnp.array([3.0, 1.0, 4.0]))
    raised, low = at_least(belief, first)
    np.testing.assert_allclose(raised.precision, [3.0, 2.0, 2.0])
    np.testing.assert_allclose(raised.mean[:2], [1.0, 1.0])
    assert np.isfinite(raised.mean).all()
    assert float(low) == pytest.approx(2 / 3)


def test_a_full_precision_is_made_positive_where_it_is_not():
    first = Gaussian(jnp.eye(2), jnp.zeros(2))
    turned = jnp.array([[0.6, -0.8], [0.8, 0.6]])
    mixed = Gaussian(jnp.eye(2) + (turned * jnp.array([3.0, -5.0])) @ turned.T, jnp.ones(2))
    raised, low = at_least(mixed, first)
    np.testing.assert_allclose(np.linalg.eigvalsh(raised.precision), [1.0, 4.0])
    assert float(low) == 0.5
    sound = Gaussian(2 * jnp.eye(2), jnp.ones(2))
    same, none = at_least(sound, first)
    np.testing.assert_array_equal(same.precision, sound.precision)
    assert float(none) == 0
