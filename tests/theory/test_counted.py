"""Whose evidence is in whose belief under sites and tracking: held to agents that apply Bayes' rule, turn by turn."""

import jax.numpy as jnp
import numpy as np
import plain_agents
import pytest
from drawn_schedules import draw_schedule
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.beliefs import Categorical
from consilience.consensus import pooling, sites, tracking
from consilience.errors import InputError
from consilience.learners import exact_learner
from consilience.network import Fixed, Flows, Lossy, Tables, complete, path, ring
from consilience.network.schedule import Most
from consilience.theory import counted_by_sites, counted_by_tracking, learnt_at, realised

N, TURNS = 5, 20
PRIOR = Categorical.from_moments(jnp.array([0.3, 0.7]))
LEARNER = exact_learner(PRIOR, lambda log_ratio: jnp.stack([log_ratio, jnp.zeros(())]))  # a batch is what it says
AGENTS = {
    name: plain_agents.compiled(agent)
    for name, agent in (("paper", pooling(LEARNER)), ("sites", sites(LEARNER)), ("tracking", tracking(LEARNER, N)))
}
HEARS = {"paper": lambda schedule, rounds: schedule, "sites": Tables, "tracking": Flows}


def drawn(seed):
    return draw_schedule(np.random.default_rng(seed), N, TURNS, Most(N, N, N**2, 3))[0]


def log_ratios(rule, schedule, turns, batch):
    """What everybody believes of the first hypothesis against the second, prior aside."""
    hears = HEARS[rule](schedule, turns)
    states = plain_agents.play(
        AGENTS[rule],
        [plain_agents.KEY] * N,
        [hears.turn(number) for number in range(1, turns + 1)],
        lambda number, i: np.float64(batch(number, i)),
    )
    beliefs = [state if rule == "paper" else state.q for state in states]
    return np.array([float(q.log_weights[0] - q.log_weights[1]) for q in beliefs]) - np.log(3 / 7)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), turns=st.integers(1, TURNS))
def test_under_sites_a_belief_is_the_prior_times_all_batches_up_to_the_versions_held(seed, turns):
    schedule = drawn(seed)
    said = np.random.default_rng(seed).normal(size=(turns + 1, N))
    own = [[said[n, j] for n in range(1, turns + 1) if j in schedule.turn(n).learners] for j in range(N)]
    versions = counted_by_sites(Tables(schedule, turns), [turns])[0]
    assert (versions == versions.round()).all()
    expected = [sum(sum(own[j][: int(versions[i, j])]) for j in range(N)) for i in range(N)]
    np.testing.assert_allclose(log_ratios("sites", schedule, turns, lambda n, j: said[n, j]), expected, atol=1e-9)


@pytest.mark.parametrize("rule", AGENTS)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), turns=st.integers(1, TURNS))
def test_a_log_ratio_is_what_counts_times_what_a_batch_says(rule, seed, turns):
    """Where every batch of agent j says the same, I_j: so the mean is, wherever it says so on average."""
    schedule = drawn(seed)
    information = np.random.default_rng(seed).normal(size=N)
    try:
        measured = log_ratios(rule, schedule, turns, lambda n, j: information[j])
    except InputError:  # tracking, where somebody is heard by nobody
        return
    counts = {
        "paper": lambda: realised(schedule, turns).counts,
        "sites": lambda: counted_by_sites(Tables(schedule, turns), [turns])[0],
        "tracking": lambda: counted_by_tracking(Flows(schedule, turns), [turns])[0],
    }[rule]()
    np.testing.assert_allclose(measured, counts @ information, atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), turns=st.integers(1, TURNS))
def test_nobody_counts_more_than_was_learnt_and_everybody_its_own(seed, turns):
    schedule = drawn(seed)
    learnt = learnt_at(schedule, [turns])[0]
    assert learnt.tolist() == [sum(j in schedule.turn(n).learners for n in range(1, turns + 1)) for j in range(N)]
    counts = counted_by_sites(Tables(schedule, turns), [turns])[0]
    assert (counts <= learnt).all()
    np.testing.assert_array_equal(np.diagonal(counts), learnt)


def test_what_is_on_the_way_is_all_that_is_missing():
    """On a path of four, whose news takes a turn a step; on a complete graph nothing is ever missing."""
    distance = np.abs(np.arange(4)[:, None] - np.arange(4))
    for turns, counts in zip([1, 2, 9], counted_by_sites(Tables(path(4), 9), [1, 2, 9]), strict=True):
        np.testing.assert_array_equal(counts, np.maximum(turns - np.maximum(distance - 1, 0), 0))
    for counted, hears in ((counted_by_sites, Tables), (counted_by_tracking, Flows)):
        np.testing.assert_allclose(counted(hears(complete(4), 7), [7])[0], np.full((4, 4), 7))


def test_running_sums_come_to_all_evidence_in_the_long_run():
    early, late = counted_by_tracking(Flows(Lossy(Fixed(ring(N)), 0.5), 500), [20, 500])
    assert np.abs(late / 500 - 1).max() < 0.05 < np.abs(early / 20 - 1).max()


@pytest.mark.parametrize("consensus", [sites, lambda learner, damping: tracking(learner, 3, damping)])
def test_evidence_that_comes_once_is_taken_on_whole(consensus):
    with pytest.raises(InputError, match=r"^damping: data that comes once counts whole, got 0\.5$"):
        consensus(LEARNER, damping=0.5)
