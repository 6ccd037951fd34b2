"""Rules by name: what they combine, what does not go together, and that each learns."""

import numpy as np
import pytest

import consilience as cs
from consilience.errors import InputError
from consilience.experiments import load
from consilience.experiments.images.arms import setting_of
from consilience.learning import export
from consilience.network import Fixed, Lossy, Network, Participating, from_matrix, ring, star
from consilience.runs.play import RunFailed
from consilience.task.consensus import Central, FedAvg, Pooling
from consilience.task.learner import Gradient
from consilience.task.rule import rule_of
from consilience.task.rules import RULES
from consilience.task.task import counts_alike
from consilience.theory import stationary

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.where(X @ [1.0, -2.0, 0.5] + 0.3 * RNG.normal(size=60) > 0, "yes", "no")
ONE_WAY = [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]]
SHARES = [(X[:4], Y[:4]), (X[4:20], Y[4:20]), (X[20:], Y[20:])]


def learnt(rule, hidden=(), network=None, rounds=3, **more):
    _, learner, consensus = RULES[rule]
    ruled = {
        "learner": {**(learner or {}), **more.pop("learner", {})},
        "consensus": {**consensus, **more.pop("consensus", {})},
    }
    model, hears = cs.mlp((3,), 2, hidden), network or cs.ring(3)
    return cs.learn(model, SHARES, hears, rounds=rounds, test=(X, Y), progress=False, **ruled, **more)


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_a_learner_and_a_consensus_with_the_data_of_the_experiment(rule):
    config, plain = load("star-mnist", [], rule), load("star-mnist")
    _, learner, consensus = RULES[rule]
    assert config.learner.kind == (learner or {"kind": "variational"})["kind"]
    assert config.consensus.kind == consensus["kind"]
    if rule != "laplace":
        assert (config.learner.epochs, config.learner.batch) == (plain.learner.epochs, plain.learner.batch)
    if rule in ("paper", "alone", "central"):
        assert config.learner == plain.learner


@pytest.mark.parametrize(
    ("rule", "more"),
    [
        ("sites", {"hidden": (4,), "alone": True}),
        ("sites-corrected", {"hidden": (4,), "alone": True}),
        ("tracking", {"hidden": (4,)}),
        ("natural", {"learner": {"mean": "newton", "learning_rate": 0.01}}),
        pytest.param("central", {}, marks=pytest.mark.soak),
        pytest.param("alone", {}, marks=pytest.mark.soak),
        ("fedavg", {"consensus": {"fraction": 0.5}, "learner": {"optimizer": "adam", "learning_rate": 0.01}}),
        pytest.param("gradient-tracking", {"alone": True}, marks=pytest.mark.soak),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_learnt_can_be_used(rule, more, tmp_path):
    fit = learnt(rule, folder=tmp_path / "run", **more)
    for arm in fit.arms:
        p = fit.predict(X, agent=2, arm=arm).probabilities
        assert np.isfinite(p).all()
        assert fit.belief(0, "own", arm=arm).mean[-1]["w"].shape[0] == 2
    if rule in ("fedavg", "gradient-tracking"):
        with pytest.raises(InputError, match=r"^run: was learnt with point weights, which have no sds to export$"):
            fit.export(tmp_path / "b.safetensors")
    if rule == "central":
        np.testing.assert_allclose(fit.predict(X, 0).probabilities, fit.predict(X, 1).probabilities, atol=1e-5)


def test_a_covariance_is_exported_and_read(tmp_path):
    fit = learnt("laplace", rounds=8, precision="float64")
    found = export.read(fit.export(tmp_path / "b.safetensors", 1))
    assert found.covariance.shape == (8, 8)
    np.testing.assert_array_equal(found.covariance, fit.belief(1).covariance)
    theirs, mine = fit.predict(X, belief=found), fit.predict(X, agent=1)
    np.testing.assert_allclose(theirs.probabilities, mine.probabilities, atol=1e-6)
    coefficients = fit.coefficients(0).to_pandas()
    np.testing.assert_allclose(coefficients["sd"], fit.coefficients(2).to_pandas()["sd"], rtol=1e-6)


@pytest.mark.parametrize(
    ("learner", "consensus", "line"),
    [
        (
            {"kind": "gradient"},
            {"kind": "sites"},
            "consensus: sites sums up evidence, and learner 'gradient' has points",
        ),
        ({"kind": "gradient"}, {"kind": "tracking"}, "with points go pooling, fedavg and gradient-tracking"),
        ({"kind": "laplace"}, {"kind": "alone"}, "learner 'laplace' would count again in every round"),
        ({"kind": "natural"}, {"kind": "gradient-tracking"}, "needs learner 'gradient' with optimizer 'sgd'"),
        ({"kind": "natural", "correction": 1}, {"kind": "pooling"}, "consensus 'pooling' does not keep it apart"),
        (
            {"kind": "natural", "correction": 1, "mean": "newton"},
            {"kind": "sites"},
            "learner.correction: means by 'newton' follow others' evidence as it is",
        ),
        ({"kind": "gradient", "optimizer": "adam"}, {"kind": "gradient-tracking"}, "with optimizer 'sgd'"),
        ({}, {"kind": "sites", "damping": 0.0}, r"consensus.damping: should be greater than 0, got 0.0"),
        ({}, {"kind": "tracking", "damping": 1.5}, r"consensus.damping: should be less than or equal to 1, got 1.5"),
        ({}, {"kind": "sight"}, "consensus: unknown kind 'sight'; known: alone, central"),
        ({"kind": "laplace", "epochs": 3}, {}, "learner.epochs: no such field; known: batch, kind, prior_sd"),
    ],
)
def test_what_does_not_go_together_is_refused(learner, consensus, line):
    with pytest.raises(InputError) as refused:
        cs.learn(
            cs.mlp((3,), 2, ()), SHARES, cs.ring(3), learner=learner, consensus={"kind": "pooling", **consensus},
            progress=False,
        )  # fmt: skip
    assert line in str(refused.value)
    assert "\n" not in str(refused.value)


def test_laplace_is_for_models_without_hidden_layers():
    with pytest.raises(InputError, match="'laplace' is for models without hidden layers"):
        learnt("laplace", hidden=(4,))


def test_tracking_needs_a_listener_for_everybody():
    deaf = from_matrix([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])  # nobody hears agent 2
    with pytest.raises(InputError, match=r"strongly connected|nobody listens to agent 2"):
        learnt("tracking", network=deaf)


def test_averages_are_by_shares_of_the_data():
    sizes, model, likelihood = np.array([10, 30, 60]), cs.mlp((3,), 2, ()), cs.Categorical(("a", "b"))
    whole = rule_of(Gradient(), FedAvg(), model, likelihood, sizes).hears(ring(3), 5)
    assert isinstance(whole, Network)
    np.testing.assert_allclose(whole.W.toarray(), np.tile([0.1, 0.3, 0.6], (3, 1)))
    some = rule_of(Gradient(), FedAvg(fraction=0.6), model, likelihood, sizes).hears(ring(3), 5)
    assert isinstance(some, Participating)
    drawn = {tuple(some.turn(number).learners) for number in range(1, 30)}
    assert drawn == {(0, 1), (0, 2), (1, 2)}
    central = rule_of(Gradient(), Central(), model, likelihood, sizes).hears(ring(3), 5)
    np.testing.assert_array_equal(central.W.toarray(), np.tile([1.0, 0.0, 0.0], (3, 1)))


def test_agents_that_count_alike_count_less_the_more_central_they_are():
    network = star(4, 0.5)
    plain = setting_of(load("star-digits")).task
    alike = plain._replace(consensus=Pooling(alike=True))
    np.testing.assert_allclose(counts_alike(alike, network) * stationary(network) * 5, 1)
    assert counts_alike(plain, network) is None


@pytest.mark.parametrize(
    ("rule", "network", "line"),
    [
        ("fedavg", Lossy(Fixed(ring(3)), 0.3), "consensus: fedavg goes through a server"),
        ("gradient-tracking", Lossy(Fixed(ring(3)), 0.3), "needs a network that stays the same"),
        ("gradient-tracking", from_matrix(ONE_WAY), "gradient-tracking needs links that go both ways"),
    ],
)
def test_a_network_that_a_rule_would_not_use_is_refused(rule, network, line):
    task = setting_of(load("star-digits", [], rule)).task
    made = rule_of(task.learner, task.consensus, cs.mlp((3,), 2, ()), cs.Categorical(("a", "b")), np.full(3, 10))
    with pytest.raises(InputError, match=line):
        made.hears(network, 5)


def test_numbers_that_are_none_come_with_what_may_help():
    with pytest.raises(RunFailed, match=r"at round \d+; precision=float64 or a smaller learner\.prior_sd or a smaller"):
        learnt("laplace", rounds=40, learner={"prior_sd": 1e12})
