"""Mixing, information and Theorem 1's numbers against definitions."""

import numpy as np
import pytest
from scipy import integrate, stats

from consilience.errors import InputError
from consilience.network import Network, complete, from_matrix, grid, lazy, path, ring, star, watts_strogatz
from consilience.theory import (
    certain_sample_size,
    deviation,
    finite_information,
    gaussian_information,
    lambda_max,
    lemma_1,
    log_ratio_bound,
    mean_log_ratio,
    mean_log_ratio_limit,
    mixing,
    rate,
    sample_size,
    stationary,
    wrong_hypotheses,
)

NETWORKS = [star(8, 0.5), grid(3, 3), ring(6, directed=True), complete(4), path(5), watts_strogatz(12, 4, 0.3)]
IDS = [n.name for n in NETWORKS]


def information_for(network):
    return np.random.default_rng(0).uniform(0, 2, network.agents)


@pytest.mark.parametrize("network", NETWORKS, ids=IDS)
@pytest.mark.parametrize("which", ["public", "pooled"])
def test_mean_log_ratio_is_the_sum_of_powers(network, which):
    I, W = information_for(network), network.W.toarray()
    powers = [np.linalg.matrix_power(W, k) for k in range(12)]
    for n in (1, 2, 11):
        used = powers[:n] if which == "public" else powers[1 : n + 1]
        np.testing.assert_allclose(mean_log_ratio(network, I, [n], which)[0], sum(used) @ I, rtol=1e-12)


@pytest.mark.parametrize("network", NETWORKS, ids=IDS)
@pytest.mark.parametrize("which", ["public", "pooled"])
def test_its_limit(network, which):
    I = information_for(network)
    exact = mean_log_ratio(network, I, [2000], which)[0]
    np.testing.assert_allclose(mean_log_ratio_limit(network, I, 2000, which), exact, rtol=1e-10)


@pytest.mark.parametrize("network", NETWORKS, ids=IDS)
def test_the_limit_is_the_fundamental_matrix(network):
    N, v, I = network.agents, stationary(network), information_for(network)
    Z = np.linalg.inv(np.eye(N) - network.W.toarray() + np.outer(np.ones(N), v))
    np.testing.assert_allclose(
        mean_log_ratio_limit(network, I, 7, "pooled"), 7 * v @ I + (Z - np.eye(N)) @ I, rtol=1e-10
    )


@pytest.mark.parametrize(
    "network", [watts_strogatz(60, 6, 0.3), ring(60), ring(60, directed=True)], ids=lambda n: n.name
)
def test_large_networks_sum_the_series_or_factorise(network, monkeypatch):
    v, I = stationary(network), information_for(network)
    dense = deviation(network, v, I)
    monkeypatch.setattr(mixing, "DENSE_AGENTS", 10)
    for terms in (1_000_000, 10):
        monkeypatch.setattr(mixing, "SERIES_TERMS", terms)
        np.testing.assert_allclose(deviation(network, v, I), dense, atol=1e-9)


@pytest.mark.parametrize("network", NETWORKS, ids=IDS)
def test_lemma_1_against_its_definition(network):
    v, W = stationary(network), network.W.toarray()
    lemma = lemma_1(network, v, 1 - lambda_max(network))
    direct = sum(np.abs(np.linalg.matrix_power(W, k) - v).sum(1) for k in range(1, lemma.terms + 1)).max()
    assert lemma.sum == pytest.approx(direct)
    assert lemma.converged
    assert lemma.sum <= lemma.bound


def drift(agents: int, forward: float = 0.9) -> Network:
    """A reversible path along which evidence drifts: i hears i−1 by 0.9 and i+1 by 0.1."""
    W = np.zeros((agents, agents))
    i = np.arange(agents)
    W[i, np.maximum(i - 1, 0)] += forward
    W[i, np.minimum(i + 1, agents - 1)] += 1 - forward
    return from_matrix(W)


def test_lemma_1_fails_for_reversible_networks_with_drift():
    network = drift(40)
    lemma = lemma_1(network, stationary(network), 1 - lambda_max(network))
    assert lemma.converged
    assert lemma.sum > lemma.bound


def test_lemma_1_fails_for_a_chain_that_forgets_late():
    """Hear the one before, and agent 0 all by halves: other eigenvalues of modulus about ½, yet N rounds to forget."""
    N = 40
    W = np.zeros((N, N))
    W[0] = 0.5 ** np.arange(1, N + 1)
    W[0, -1] *= 2
    W[np.arange(1, N), np.arange(N - 1)] = 1.0
    network = from_matrix(W)
    assert lambda_max(network) == pytest.approx(0.5, abs=0.05)
    lemma = lemma_1(network, stationary(network), 1 - lambda_max(network))
    assert lemma.sum > 2 * lemma.bound


def test_a_certain_sample_size_covers_slow_memory():
    """Where Lemma 1 fails, the corrected n can be too small; the certain one waits until every agent can have heard."""
    network = drift(300)
    v = stationary(network)
    lemma = lemma_1(network, v, 1 - lambda_max(network))
    numbers = {"agents": 300, "hypotheses": 2, "epsilon": 6.0, "delta": 0.05}
    corrected = sample_size(6.9, gap=1 - lambda_max(network), **numbers)
    certain = certain_sample_size(6.9, lemma_sum=lemma.sum, **numbers)
    assert corrected < 300 < certain


def test_finite_information_is_the_mean_log_ratio():
    rng = np.random.default_rng(1)
    tables = rng.dirichlet(np.ones(4), size=(3, 5))
    I = finite_information(tables, truth=2, samples=3)
    for j in range(3):
        for k in range(5):
            assert I[j, k] == pytest.approx(3 * stats.entropy(tables[j, 2], tables[j, k]))


def test_gaussian_information_by_integration():
    """One coordinate, uniform on ±a: E_x KL(N(θ*x, α²) ‖ N(θx, α²)) by quadrature."""
    a, noise, truth, other = 1.5, 0.8, 0.5, -0.2
    value, _ = integrate.quad(lambda x: ((truth - other) * x) ** 2 / (2 * noise**2) / (2 * a), -a, a)
    assert gaussian_information([[[a**2 / 3]]], noise, [other - truth], samples=4)[0] == pytest.approx(4 * value)


@pytest.mark.parametrize(("noise", "offset"), [(5e-324, 1.0), (5e-324, 0.0), (1.0, 1e200)])
def test_an_information_that_is_no_number_is_refused(noise, offset):
    with pytest.raises(InputError, match="for an information that is a number"):
        gaussian_information([[[1.0]]], noise, [offset])


def test_more_trust_is_not_always_better():
    """Only the centre rejects A (gap 0.3), only the edges reject B (gap 0.1): K is best at v₁ = b/(a+b) = 1/4."""
    information = np.zeros((9, 3))
    information[0, 1], information[1:, 2] = 0.3, 0.1
    K = {trust: rate(stationary(star(8, trust)), information, 0).K for trust in (0.1, 0.3, 0.7)}
    assert K[0.3] > K[0.7]
    assert K[0.3] > K[0.1]
    v1 = stationary(star(8, 0.3))[0]
    assert K[0.3] == pytest.approx(min(v1 * 0.3, (1 - v1) * 0.1))


def test_rate_ignores_what_nobody_can_tell_apart():
    v = np.array([0.5, 0.5])
    assert rate(v, np.array([[0, 0, 0.2], [0, 0, 0.0]]), truth=0) == (0.1, 2)
    assert wrong_hypotheses(np.array([[0, 0, 0.2], [0, 0, 0.0]])) == [2]
    with pytest.raises(InputError, match="no hypothesis can be told from the truth 0"):
        rate(v, np.zeros((2, 2)), truth=0)


def test_sample_sizes():
    numbers = {"C": 2.0, "agents": 9, "hypotheses": 4, "gap": 0.5, "epsilon": 0.1, "delta": 0.05}
    assert sample_size(**numbers, version="corrected") == pytest.approx(
        2 * sample_size(**numbers, version="paper"), abs=2
    )
    assert sample_size(**numbers, version="paper") == np.ceil(8 * 2 * np.log(9 * 4 / 0.05) / (0.01 * 0.5))
    for name, value in (("epsilon", 0.0), ("delta", 1.0), ("gap", 0.0)):
        with pytest.raises(InputError, match=f"{name}: must be greater than 0"):
            sample_size(**{**numbers, name: value})
    with pytest.raises(InputError, match="too small for a finite number of rounds"):
        sample_size(**{**numbers, "epsilon": 1e-200})


def test_log_ratios_never_exceed_the_bound():
    tables = np.random.default_rng(2).dirichlet(np.ones(3), size=(4, 5))
    ratios = np.log(tables[:, :, None, :] / tables[:, None, :, :])
    assert np.abs(ratios).max() <= log_ratio_bound(tables)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (0.0, "agent 0, hypothesis 1, outcome 0 must be greater than 0, got 0"),
        (float("nan"), "got nan"),
        (0.4, "agent 0, hypothesis 1 sums to 0.9, not 1"),
    ],
)
def test_bad_likelihoods_are_named(change, message):
    with pytest.raises(InputError, match=message):
        finite_information([[[0.5, 0.5], [change, 0.5]]], truth=0)


@pytest.mark.parametrize(
    ("tables", "truth", "message"),
    [
        ([[[0.5, 0.5], [0.9, 0.1]]], 2, "truth: must be a hypothesis from 0 to 1, got 2"),
        ([[[0.5, 0.5], [0.9, 0.1]]], -1, "truth: must be a hypothesis from 0 to 1, got -1"),
        (np.ones((0, 2, 1)), 0, "likelihoods: must be agents × hypotheses × outcomes, some of each, got 0 × 2 × 1"),
        ([0.5, 0.5], 0, "likelihoods: must be agents × hypotheses × outcomes, some of each, got 2"),
    ],
)
def test_tables_and_truths_that_cannot_be_are_named(tables, truth, message):
    with pytest.raises(InputError, match=message):
        finite_information(tables, truth)


def test_information_is_never_below_0_and_nobody_has_none():
    assert finite_information([[[0.5, 0.5], [0.5 + 1e-9, 0.5 + 1e-9]]], 0).tolist() == [[0.0, 0.0]]
    with pytest.raises(InputError, match="no hypothesis can be told"):
        rate(np.ones(0), np.ones((0, 2)), 0)


def test_laziness_slows_by_its_share():
    network = grid(3, 3)
    slow = Network(lazy(network.W, 0.5))
    np.testing.assert_allclose(stationary(slow), stationary(network), rtol=1e-12)
    assert 1 - lambda_max(slow) == pytest.approx((1 - lambda_max(network)) / 2)


@pytest.mark.parametrize("shape", [(), (1,), (6,), (3, 2), (6, 6), (6, 1), (1, 6)])
@pytest.mark.parametrize("dense", [True, False])
def test_information_about_many_things_at_once(shape, dense, monkeypatch):
    """Agents × anything, also where that looks like a stack of square matrices: as column by column."""
    if not dense:
        monkeypatch.setattr(mixing, "DENSE_AGENTS", 1)
    network = ring(6, directed=True)
    v, values = stationary(network), np.random.default_rng(0).normal(size=(6, *shape))
    for f in (
        lambda x: deviation(network, v, x),
        lambda x: mean_log_ratio_limit(network, x, 9),
        lambda x: mean_log_ratio_limit(network, x, 9, "pooled"),
        lambda x: mean_log_ratio(network, x, [2, 5])[1],
        lambda x: mean_log_ratio(network, x, [2, 5], "pooled")[0],
    ):
        at_once = f(values)
        assert at_once.shape == values.shape
        for place in np.ndindex(*shape):
            column = (slice(None), *place)
            np.testing.assert_allclose(at_once[column], f(values[column]), atol=1e-12)


def test_sums_without_any_digits_are_told():
    """Two pairs that hear each other by 1e-15: evidence needs more rounds than numbers have digits."""
    W = np.kron(np.eye(2), [[0.5, 0.5], [0.4, 0.6]])
    W[0, 2] = W[2, 0] = 1e-15
    network = from_matrix(W)
    v = stationary(network)
    with pytest.raises(InputError, match="too slowly for any digits"):
        deviation(network, v, np.array([0.0, 1.0, 0.0, 1.0]))
    assert np.abs(deviation(network, v, np.array([0.0, 0.0, 1.0, 1.0]))).max() > 1e14
