"""Evidence in changing networks: against powers of W, and against what a simulation measures."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consilience.beliefs import Categorical
from consilience.engines.arm import Arm, agent_key
from consilience.engines.simulate import Simulation
from consilience.learners import exact
from consilience.network import Asynchronous, Churn, Fixed, Gossip, Lossy, RotatingStar, erdos_renyi, star
from consilience.theory import finite_information, mean_log_ratio, mixing_windows, realised, realised_at, stationary

N = 6
GRAPH = erdos_renyi(N, 0.7, 1)
TABLES = np.array([[[0.5, 0.5], [0.5 + 0.06 * j, 0.5 - 0.06 * j]] for j in range(N)])
INFORMATION = finite_information(TABLES, truth=0)[:, 1]


def test_a_fixed_network_has_its_powers_and_its_centrality():
    network = star(5, 0.4)
    after = realised(Fixed(network), 400)
    public = mean_log_ratio(network, INFORMATION, [400])[0]
    np.testing.assert_allclose(after.mean_log_ratio(INFORMATION), network.W @ public)
    np.testing.assert_allclose(after.centrality, stationary(network), atol=5e-3)
    assert after.contraction == pytest.approx(0, abs=1e-9)
    assert after.rate(INFORMATION) == pytest.approx(stationary(network) @ INFORMATION, rel=0.02)


@pytest.mark.parametrize(
    "schedule",
    [
        RotatingStar(5, 1),
        Gossip(GRAPH, matching=True),
        Lossy(Fixed(GRAPH), 0.5),
        Churn(Fixed(GRAPH), up=5, down=5),
        Asynchronous(GRAPH, [1, 1, 2, 3, 1, 1.5], delay=1.2, tick=0.5),
    ],
    ids=["rotating star", "matching", "loss", "churn", "asynchronous"],
)
def test_the_predicted_rate_is_the_measured_one(schedule):
    rounds, seeds = 200, range(400)
    logs = jnp.log(jnp.array(TABLES))
    arm = Arm(
        exact(Categorical.uniform(2), lambda seen: logs[seen[0], :, seen[1]]),
        draw=lambda data, key, j: (j, jax.random.bernoulli(agent_key(key, j)).astype(int)),
        hears=schedule,
        measure=lambda data, now, n, key: {"ratio": now.state.log_weights[0] - now.state.log_weights[1]},
    )
    simulation = Simulation(arm, seeds)
    _, measured = simulation.play(1, [rounds], [True], simulation.start())
    ratio = np.asarray(measured["ratio"])[0]
    predicted = realised(schedule, rounds).mean_log_ratio(INFORMATION)
    error = 5 * ratio.std(0) / len(seeds) ** 0.5
    assert (np.abs(ratio.mean(0) - predicted) < error + 1e-9).all()


def test_histories_and_windows():
    lossy = Lossy(Fixed(GRAPH), 0.5)
    for after, turns in zip(realised_at(lossy, [3, 40]), (3, 40), strict=True):
        alone = realised(lossy, turns)
        np.testing.assert_array_equal(after.counts, alone.counts)
        assert after.contraction == alone.contraction
    windows = mixing_windows(lossy, 40, level=0.5)
    product, length = np.eye(N), windows[0]
    for number in range(1, length + 1):
        product = lossy.turn(number).matrix(N) @ product
    apart = max(np.abs(one - other).sum() / 2 for one in product for other in product)
    assert apart <= 0.5
    assert sum(windows) <= 40


def test_agents_that_never_meet_do_not_mix():
    alone = realised(Lossy(Fixed(GRAPH), 0.0), 1)
    assert alone.contraction > 0.1
    assert realised(Fixed(GRAPH), 60).contraction < 1e-6
