"""Partitions are disjoint and complete; shuffles are permutations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.data import by_feature, by_label, dirichlet, from_file, iid, shards, skewed
from consilience.data.shuffle import shuffled
from consilience.errors import InputError


@settings(max_examples=40, deadline=None)
@given(agents=st.integers(1, 12), examples=st.integers(60, 300), seed=st.integers(0, 1000))
def test_every_example_has_exactly_one_owner(agents, examples, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 5, examples)
    inputs = rng.normal(size=(examples, 3))
    group = [list(range(agents))[k % agents :] for k in range(5)]
    whole = (
        iid(examples, agents, seed),
        dirichlet(labels, agents, 5.0, seed),
        shards(labels, agents, 2, seed),
        by_feature(inputs, agents, 1),
        by_label(labels, dict(enumerate([group[0]] * 5)), agents, seed),
    )
    assert all((partition.sizes() > 0).all() for partition in whole)
    for partition in (*whole, skewed(labels, agents, 1.0, 0.5, seed)):  # in the last one some may hold nothing
        shares = [partition.share(agent) for agent in range(agents)]
        np.testing.assert_array_equal(np.sort(np.concatenate(shares)), np.arange(examples))
        assert partition.sizes().sum() == examples
        counts = partition.counts(labels, 5)
        np.testing.assert_array_equal(counts.sum(0), np.bincount(labels, minlength=5))
        np.testing.assert_array_equal(counts.sum(1), partition.sizes())


def test_the_paper_sizes():
    """MNIST-Setup1: labels 0 and 1 of 60,000 images over eight edges, 1,583 each."""
    labels = np.repeat(np.arange(10), [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949])
    holders = {k: list(range(1, 9)) if k < 2 else [0] for k in range(10)}
    sizes = by_label(labels, holders, 9).sizes()
    assert sizes[0] == 47335
    assert set(sizes[1:].tolist()) <= {1583, 1584}
    assert iid(60_000, 26).sizes().min() == 2307
    assert iid(60_000, 101).sizes().min() == 594


def test_small_alpha_makes_agents_different():
    labels = np.repeat(np.arange(10), 200)
    spread = [dirichlet(labels, 5, alpha, 0).counts(labels, 10).std() for alpha in (0.1, 100.0)]
    assert spread[0] > 3 * spread[1]


def test_skewed_sizes_and_labels_have_their_law():
    """With labels alike every label is dealt out by s ~ Dirichlet(a, …): var s_k = (1/N)(1 − 1/N) / (N a + 1). With
    sizes alike and two agents, of many labels, a share is p / (p + p') for p, p' ~ Gamma(a): Beta(a, a), of variance
    1 / (4 (2a + 1))."""
    labels = np.repeat(np.arange(5), 400)
    shares = np.stack([skewed(labels, 4, 1.0, 1e9, seed).counts(labels, 5) / 400 for seed in range(400)])
    assert np.abs(shares - shares.mean(2, keepdims=True)).max() <= 1.001 / 400  # the same of every label, but for one
    np.testing.assert_allclose(shares.mean((0, 2)), 1 / 4, atol=0.03)
    np.testing.assert_allclose(shares[:, :, 0].var(0), 3 / 16 / 5, rtol=0.2)
    labels = np.repeat(np.arange(400), 50)
    shares = np.stack([skewed(labels, 2, 1e9, 0.5, seed).counts(labels, 400)[0] / 50 for seed in range(20)])
    np.testing.assert_allclose(shares.var(), 1 / 8, rtol=0.05)
    # Sizes weigh labels: an agent with s_k near 1 has nearly all of each.
    uneven = skewed(np.repeat(np.arange(10), 100), 3, 1e-3, 0.5)
    assert uneven.sizes().max() > 950


@pytest.mark.parametrize("alpha", [1e-100, 1e-9, 1e100])
def test_proportions_that_no_float_holds_are_dealt_out(alpha):
    labels = np.repeat(np.arange(6), 7)
    counts = skewed(labels, 3, alpha, alpha, 1).counts(labels, 6)
    assert counts.sum() == 42
    if alpha < 1:  # one has it all, of every label
        assert set(counts.max(0)) == {7}


def test_bad_partitions_are_named():
    labels = np.array([0, 1, 2])
    with pytest.raises(InputError, match="label 2 has no holder"):
        by_label(labels, {0: [0], 1: [1]}, 2)
    with pytest.raises(InputError, match="agent 1 would hold no data"):
        by_label(labels, {0: [0], 1: [0], 2: [0]}, 2)
    with pytest.raises(InputError, match="feature must be 0 to 1, got 7"):
        by_feature(np.zeros((4, 2)), 2, 7)
    with pytest.raises(InputError, match="take a larger alpha"):
        dirichlet(np.zeros(5, int), 5, 0.01)
    with pytest.raises(InputError, match="2 examples are too few for 3 agents"):
        dirichlet(np.array([0, 1]), 3, 1.0)
    with pytest.raises(InputError, match="3 examples cannot be cut into 2 × 1000000000000 pieces"):
        shards(labels, 2, 10**12)
    with pytest.raises(InputError, match="agent 1 is named twice as a holder of label 0"):
        by_label(labels, {0: [1, 0, 1], 1: [1], 2: [0]}, 2)


@pytest.mark.parametrize("agents", [0, -1])
@pytest.mark.parametrize(
    "deal",
    [
        lambda agents: iid(3, agents),
        lambda agents: by_label(np.arange(3), {0: [0], 1: [0], 2: [0]}, agents),
        lambda agents: dirichlet(np.arange(3), agents, 1.0),
        lambda agents: shards(np.arange(3), agents, 1),
        lambda agents: skewed(np.arange(3), agents),
        lambda agents: by_feature(np.zeros((3, 1)), agents, 0),
    ],
)
def test_there_must_be_somebody(deal, agents):
    with pytest.raises(InputError, match=f"partition: agents must be at least 1, got {agents}"):
        deal(agents)


@pytest.mark.parametrize(
    ("deal", "message"),
    [
        (lambda: shards(np.arange(3), 2, 0), "each must be at least 1, got 0"),
        (lambda: by_label(np.arange(1), {0: []}, 1), "label 0 has no holder"),
        (lambda: by_label(np.arange(1), {0: [3]}, 2), "label 0 names agent 3, there are agents 0 to 1"),
        (lambda: by_feature(np.zeros((0, 2)), 2, 0), "there are no examples to divide"),
        (lambda: skewed(np.zeros(0, int), 2), "there are no examples to divide"),
    ],
)
def test_pieces_and_holders_that_cannot_be_are_named(deal, message):
    with pytest.raises(InputError, match=message):
        deal()


@pytest.mark.parametrize("alpha", [0.0, -1.0, float("nan"), float("inf"), 1e308])
def test_alphas_without_a_distribution_are_refused(alpha):
    with pytest.raises(InputError, match="partition: alpha must be above 0 and at most 1e\\+100"):
        dirichlet(np.repeat([0, 1], 50), 3, alpha)
    for field in ("sizes", "classes"):
        with pytest.raises(InputError, match=f"partition: {field} must be from 1e-100 to 1e\\+100"):
            skewed(np.repeat([0, 1], 50), 3, **{field: alpha})


@pytest.mark.parametrize("text", ["0\n1\n0\n", "\ufeff0\r\n1\r\n0", "\n0\n\n 1 \n0\n\n"])
def test_owners_in_a_file(tmp_path, text):
    (tmp_path / "owners.txt").write_bytes(text.encode())
    assert from_file(tmp_path / "owners.txt", 3, 2).owner.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "an owner for each of 3 examples, got 0"),
        ("0\n1\n", "an owner for each of 3 examples, got 2"),
        ("0\n1\n0\n0", "an owner for each of 3 examples, got 4"),
        ("0\n\n5\n0\n", "line 3 names agent 5, there are agents 0 to 1"),
        ("0\n1\n-1\n", "line 3 names agent -1, there are agents 0 to 1"),
        ("0\n1\n1.0\n", "line 3 must be a whole number, got '1.0'"),
        ("0 1 0\n", "line 1 must be a whole number, got '0 1 0'"),
        ("0\n1_0\n0\n", "line 2 must be a whole number, got '1_0'"),
        ("0\n٣\n0\n", "line 2 must be a whole number"),
        (f"0\n{10**30}\n0\n", "line 2 must be a whole number"),
        ("0\n" + "9" * 5000 + "\n0\n", "line 2 must be a whole number"),
        ("0\n1\0\n0\n", "line 2 must be a whole number"),
        ("0\n0\n0\n", "agent 1 would hold no data"),
        (b"\xff\n", "it is not UTF-8 text"),
    ],
)
def test_bad_owners_are_named(tmp_path, text, message):
    file = tmp_path / "owners.txt"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError) as refused:
        from_file(file, 3, 2)
    assert message in str(refused.value)
    assert len(str(refused.value)) < 200 + len(str(file))


def test_files_of_owners_that_are_none(tmp_path):
    for file, message in ((tmp_path / "none.txt", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(InputError, match=message):
            from_file(file, 3, 2)


@settings(max_examples=30, deadline=None)
@given(n=st.integers(1, 3000), seed=st.integers(0, 1000))
def test_shuffled_is_a_permutation(n, seed):
    values = np.asarray(jax.jit(shuffled)(jax.random.key(seed), jnp.arange(3000) % n, n))[:n]
    np.testing.assert_array_equal(np.sort(values), np.arange(n))


def test_shuffled_looks_random():
    n = 1583
    firsts = np.stack([np.asarray(shuffled(jax.random.key(s), jnp.arange(n), n)) for s in range(60)])
    assert abs(np.corrcoef(firsts[0], np.arange(n))[0, 1]) < 0.1
    assert np.abs(np.corrcoef(firsts)[np.triu_indices(60, 1)]).max() < 0.15
    counts, _ = np.histogram(firsts[:, :50], bins=10, range=(0, n))
    assert ((counts - 300) ** 2 / 300).sum() < 40
