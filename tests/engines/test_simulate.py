"""The engine against the closed form, and against itself played in other pieces."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consilience.beliefs import Categorical, Gaussian
from consilience.engines.arm import Arm, agent_key, data_key, round_key
from consilience.engines.simulate import Simulation
from consilience.learners import Minibatches, Observations, conjugate, evidence, exact, variational
from consilience.models import mlp
from consilience.network import erdos_renyi, from_matrix, grid, ring, star

D, NOISE = 3, 0.8
PRIOR = Gaussian.from_moments(jnp.zeros(D), 0.5 * jnp.eye(D))
PAPER = from_matrix([[0.5, 0.5, 0, 0], [0.3, 0.1, 0.3, 0.3], [0, 0.5, 0.5, 0], [0, 0.5, 0, 0.5]])


def draw(data, key, number):
    inputs, noise = jax.random.split(agent_key(key, number))
    features = jax.random.normal(inputs, (5, D)) * (1 + number)
    return Observations(features, features.sum(-1) + NOISE * jax.random.normal(noise, (5,)))


def arm_of(network) -> Arm:
    def measure(data, progress, number, key):
        return {"mean": progress.public.mean[0], "round": 1.0 * number}

    return Arm(conjugate(PRIOR, NOISE), draw, network, measure)


OTHERS = (star(4, 0.3), grid(2, 3), erdos_renyi(7, 0.6, 3))  # each is compiled


def played(network, rounds, seeds=(0,), pieces=None):
    simulation = Simulation(arm_of(network), seeds)
    progress, first, metrics = simulation.start(), 1, []
    for stops in pieces or [[rounds]]:
        progress, measured = simulation.play(first, stops, [True] * len(stops), progress)
        first = stops[-1] + 1
        metrics.append(measured)
    return jax.tree.map(jnp.asarray, simulation.agents(progress)), metrics


@pytest.mark.parametrize(
    "network",
    [PAPER, ring(5, directed=True), *(pytest.param(one, marks=pytest.mark.soak) for one in OTHERS)],
)
def test_pooled_gaussians_equal_the_closed_form(network):
    """q_i^(n) has natural parameters η₀ + Σ_{k=1}^{n} Σ_j (W^k)_ij e_j^(n−k+1), with e the evidence of each batch."""
    seed, N, W = 7, network.agents, network.W.toarray()
    simulation = Simulation(arm_of(network), (seed,))

    @partial(jax.vmap, in_axes=(0, None))
    @partial(jax.vmap, in_axes=(None, 0))
    def evidence_of(number, agent):
        return evidence(draw((), data_key(round_key(seed, number)), agent), NOISE)

    batches = jax.tree.map(np.asarray, evidence_of(jnp.arange(26), jnp.arange(N)))
    for rounds in (1, 2, 25):
        progress, _ = simulation.play(1, [rounds], [True], simulation.start())
        state = simulation.agents(progress).state
        expected = [np.broadcast_to(leaf, (N, *leaf.shape)).copy() for leaf in PRIOR]
        power = np.eye(N)
        for k in range(1, rounds + 1):
            power = power @ W
            for total, leaf in zip(expected, batches, strict=True):
                total += np.tensordot(power, leaf[rounds - k + 1], axes=1)
        for ours, closed in zip(state, expected, strict=True):
            scale = np.abs(closed).max()
            np.testing.assert_allclose(ours[0] / scale, closed / scale, atol=1e-12)
        mean = Gaussian(*map(jnp.asarray, state)).mean[0]
        np.testing.assert_allclose(mean, Gaussian(*map(jnp.array, expected)).mean, atol=1e-9)


def test_public_beliefs_are_before_pooling():
    progress, _ = played(PAPER, 3)
    pooled = np.einsum("ij,sjab->siab", PAPER.W.toarray(), progress.public.precision)
    np.testing.assert_allclose(progress.state.precision, pooled, rtol=1e-12)


@pytest.mark.usefixtures("optimised")
def test_playing_in_pieces_changes_no_bit():
    whole, _ = played(PAPER, 20)
    pieces, metrics = played(PAPER, 20, pieces=[[3, 7], [7, 11], [20]])
    for one, other in zip(jax.tree.leaves(whole), jax.tree.leaves(pieces), strict=True):
        np.testing.assert_array_equal(one, other)
    assert [float(m) for part in metrics for m in part["round"][:, 0, 0]] == [3, 7, 7, 11, 20]


@pytest.mark.usefixtures("optimised")
def test_each_replicate_is_the_run_with_its_seed():
    together, _ = played(PAPER, 6, seeds=(3, 4, 5))
    alone, _ = played(PAPER, 6, seeds=(4,))
    np.testing.assert_array_equal(together.state.precision[1], alone.state.precision[0])


def test_randomness_depends_on_identity_not_on_company():
    """Agents that hear nobody else live the same life in a network of any size."""
    small, _ = played(from_matrix(np.eye(3)), 4)
    large, _ = played(from_matrix(np.eye(8)), 4)
    np.testing.assert_allclose(small.state.precision_mean[0], large.state.precision_mean[0, :3], rtol=1e-13)


def test_data_and_learning_use_different_streams():
    key = round_key(0, 1)
    drawn = {tuple(map(int, jax.random.key_data(agent_key(data_key(key), i)))) for i in range(50)}
    learned = {tuple(map(int, jax.random.key_data(agent_key(key, i)))) for i in range(50)}
    assert len(drawn) == len(learned) == 50
    assert not drawn & learned


def test_a_complete_network_of_exact_agents_is_one_tempered_bayesian():
    """With W = 1/N everywhere the pooled log-likelihood is the average of all agents' log-likelihoods."""
    logs = jnp.log(jnp.array([[0.2, 0.5], [0.6, 0.3], [0.9, 0.1]]))
    agent = exact(Categorical.uniform(2), lambda number: logs[number])
    everybody = from_matrix(np.full((3, 3), 1 / 3))
    arm = Arm(agent, lambda data, key, number: number, everybody, lambda data, now, n, key: {})
    simulation = Simulation(arm)
    progress, _ = simulation.play(1, [10], [True], simulation.start())  # seed 0 is in lane 0
    expected = Categorical(10 * logs.mean(0)).log_probabilities()
    np.testing.assert_allclose(progress.state.log_probabilities()[0], jnp.tile(expected, (3, 1)), rtol=1e-12)


def heavy_arm(agents: int, steps: int = 5) -> Arm:
    model = mlp((4,), 3, (6,))
    rng = np.random.default_rng(0)
    data = rng.normal(size=(50, 4)), rng.integers(0, 3, 50)

    def draw(data, key, number):
        return Minibatches(*data, jax.random.randint(agent_key(key, number), (steps, 8), 0, 50), 50.0)

    def measure(data, progress, number, key):
        return {"mean": progress.public.mean.sum(), "chance": jax.random.normal(key)}

    def compare(measured):
        return {**measured, "together": jnp.full(agents, measured["mean"].sum())}

    agent = variational(model, model.init(jax.random.key(1)))
    return Arm(agent, draw, erdos_renyi(agents, 0.6, 3), measure, compare, lambda *_: data, steps)


@pytest.mark.parametrize(
    ("agents", "several"),
    [(2, (4,)), *(pytest.param(*more, marks=pytest.mark.soak) for more in ((7, (3,)), (9, (2, 4))))],
)
def test_the_devices_change_no_number(agents, several):
    """One device, two, three and four: agents whole, cut in two and with slots to spare; two repetitions."""
    results = []
    for devices in (1, *several):
        simulation = Simulation(heavy_arm(agents), [0, 5], jax.devices()[:devices])
        assert simulation.placement.mesh.size == min(devices, agents)
        progress, metrics = simulation.play(1, [2, 3], [True, True], simulation.start())
        results.append((simulation.agents(progress), metrics))
    assert results[0][1]["mean"].shape == (2, 2, agents)
    for other in results[1:]:
        jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-6, atol=1e-9), results[0], other)


def test_a_simulation_carries_on_on_other_devices():
    """A checkpoint has agents in order, so any number of devices can take it up."""
    wide, narrow = (Simulation(heavy_arm(7), devices=jax.devices()[:devices]) for devices in (3, 1))
    stopped, _ = wide.play(1, [2], [False], wide.start())
    there, _ = narrow.play(3, [4], [False], narrow.slots(wide.agents(stopped)))
    whole, _ = wide.play(1, [4], [False], wide.start())
    pairs = wide.agents(whole), narrow.agents(there)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-6, atol=1e-9), *pairs)


def test_data_is_in_memory_once():
    simulation = Simulation(heavy_arm(4), devices=jax.devices())
    for array in simulation._data:
        assert len({shard.data.unsafe_buffer_pointer() for shard in array.addressable_shards}) == 1
