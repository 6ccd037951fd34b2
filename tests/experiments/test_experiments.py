"""The experiments show what the paper claims, at sizes that take seconds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consilience.described.networks import Complete
from consilience.engines.arm import Progress
from consilience.experiments import coins, load
from consilience.experiments.linear_regression import arms as of_regression
from consilience.experiments.linear_regression.description import network_of
from consilience.experiments.linear_regression.theory import hardest_alternative, second_moments
from consilience.experiments.theorem_1.theory import predict
from consilience.network import check
from consilience.runs import run

pytestmark = pytest.mark.usefixtures("all_optimised")


@pytest.fixture(scope="module")
def regression(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "regression"
    run.begin(load("linear-regression", ["replicates=20", "record_every=50"]), folder)
    return run.carry_on(folder)


def test_cooperating_agents_reach_the_central_one(regression):
    arms = regression["arms"]
    assert arms["cooperating"]["mse_over_central"] == pytest.approx(1, abs=0.02)
    assert arms["cooperating"]["mse_of_worst_agent"] / arms["central"]["mse"] < 1.02
    assert arms["alone"]["mse_over_central"] > 1.2


def test_measured_rates_are_the_predicted_ones(regression):
    for row in regression["arms"].values():
        assert row["rate_measured"] == pytest.approx(row["rate_predicted"], rel=0.05)


def test_the_second_moments_are_those_of_the_inputs():
    config = load("linear-regression")
    network = network_of(config)
    offset = hardest_alternative(config, network) - np.array(config.theta)
    assert np.linalg.norm(offset) == pytest.approx(1)
    moments = second_moments(config, 4)
    rng = np.random.default_rng(0)
    for j in range(4):
        x = rng.uniform(-1, 1, 200_000) * config.half_widths[j]
        features = np.zeros((200_000, 5))
        features[:, 0], features[:, 1 + j] = 1, x
        np.testing.assert_allclose(features.T @ features / 200_000, moments[j], atol=0.01)


@pytest.mark.parametrize(("seeds", "within"), [(3000, 0.08), pytest.param(20_000, 0.03, marks=pytest.mark.soak)])
def test_the_rate_prediction_is_exact_in_the_mean(seeds, within, tmp_path):
    """Three rounds of very many seeds: every arm's slowest agent against the exact mean, within its standard error."""
    settings = ["rounds=3", "record_every=3", f"replicates={seeds}", "batch=2"]
    run.begin(load("linear-regression", settings), tmp_path / "run")
    for row in run.carry_on(tmp_path / "run")["arms"].values():
        assert row["rate_measured"] == pytest.approx(row["rate_predicted"], rel=within)


def test_hypotheses_that_nobody_can_tell_from_the_truth_are_not_wrong(tmp_path):
    twin = [[0.9, 0.1], [0.9, 0.1], [0.1, 0.9]]
    settings = [f"likelihoods={[twin, twin]}", "rounds=200", "points=3", "replicates=20", "epsilon=0.95", "delta=0.5"]
    config = load("theorem-1", settings)
    config = config.model_copy(update={"networks": {"pair": Complete(agents=2)}})
    run.begin(config, tmp_path / "run")
    pair = run.carry_on(tmp_path / "run")["networks"]["pair"]
    assert pair["event_measured"] == 1
    assert pair["wrong_at_last"] == 0


def test_mse_from_sums_of_squares_is_the_mse():
    config = load("linear-regression", ["test_samples=30"])
    arm = of_regression.arms(config)["alone"]
    prior = arm.agent.init(jax.random.key(0))
    belief = type(prior)(prior.precision, jnp.array([0.1, 0.2, 0.3, 0.4, 0.5]))
    test = of_regression.test_set(config)
    measured = arm.measure((), Progress(belief, belief), jnp.array(1), jax.random.key(0))
    direct = jnp.mean((test.labels - test.features @ belief.mean) ** 2)
    np.testing.assert_allclose(measured["mse"], direct, rtol=1e-12)


@pytest.mark.soak
def test_any_network_will_do(tmp_path):
    settings = ["network.kind=watts-strogatz", "network.agents=12", "rounds=60", "replicates=3", "record_every=20"]
    run.begin(load("linear-regression", settings), tmp_path / "run")
    assert run.carry_on(tmp_path / "run")["arms"]["cooperating"]["mse_over_central"] < 1.02


SEVERAL = ("star", "directed-ring")
EVERY = (*SEVERAL, "small-world", "complete", "grid")


@pytest.fixture(scope="module", params=[SEVERAL, pytest.param(EVERY, marks=pytest.mark.soak)], ids=["several", "all"])
def theorem(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "theorem"
    settings = ["rounds=2000", "replicates=1000", "points=6", "epsilon=0.95", "delta=0.5"]
    config = load("theorem-1", [*settings, "networks.small-world.agents=9", "networks.directed-ring.agents=3"])
    networks = {name: config.networks[name] for name in request.param}
    run.begin(config.model_copy(update={"networks": networks}), folder)
    return run.carry_on(folder)


def test_measured_decay_is_k_and_follows_the_exact_mean(theorem):
    for network in theorem["networks"].values():
        assert network["decay_over_K"] == pytest.approx(1, abs=0.05)
        assert network["worst_difference_from_exact_mean"] < 0.02
        assert network["worst_difference_of_log_ratio"] < 0.02
        assert network["wrong_at_last"] == 0


def test_the_corrected_bound_keeps_its_promise(theorem):
    kept = [network for network in theorem["networks"].values() if network["event_measured"] is not None]
    assert kept, "at least one network got to its sample size"
    for network in kept:
        assert network["event_measured"] >= network["event_promised"]


def test_default_rounds_reach_every_promise():
    config = load("theorem-1")
    for name, theory in predict(config).items():
        check(config.networks[name].build())
        assert theory.n_corrected <= config.rounds, name


def test_own_likelihood_tables():
    tables = [[[0.5, 0.5], [0.9, 0.1]], [[0.5, 0.5], [0.5, 0.5]]]
    config = load("theorem-1", [f"likelihoods={tables}", "networks.pair.kind=complete", "networks.pair.agents=2"])
    own = coins.tables_for(config, 2)
    np.testing.assert_allclose(own, tables)
