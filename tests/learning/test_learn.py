"""From arrays to predictions: the same run as the command's, whatever is handed over."""

import json
import signal
import warnings
from functools import partial

import equinox
import flax.linen
import jax
import numpy as np
import pytest

import consilience as cs
from consilience.described.changes import Changes
from consilience.described.networks import Ring
from consilience.errors import InputError
from consilience.experiments import described as experiment_of
from consilience.experiments import load as described
from consilience.learning import from_arrays
from consilience.learning.watching import interruptible
from consilience.runs import folder as files
from consilience.runs import run

SMALL = {"rounds": 4, "record_every": 2, "checkpoint_every": 1, "samples": 4, "progress": False}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3)).astype(np.float32)
PLACES = np.split(np.arange(80), [3, 15, 16, 16])  # shares of 3, 12, 1, 0 and 64 rows
LABELS = np.where(X @ [1.0, -2.0, 0.5] > 0, "yes", "no")
COUNTS = RNG.poisson(np.exp(0.3 * X[:, 0] + 0.5))
NUMBERS = 10 + 3 * X[:, 0] + RNG.normal(size=80)
NETWORK = Ring(agents=5)
CHANGING = Ring(agents=5, changes=Changes(loss=0.2))


def shared(y, x=X):
    return {f"clinic {k}": (x[rows], y[rows]) for k, rows in enumerate(PLACES)}


def small(y=LABELS, model=None, network=NETWORK, shares=None, **more):
    outputs = 2 if y is LABELS else 1
    made = cs.mlp((3,), outputs, hidden=()) if model is None else model
    return cs.learn(made, shared(y) if shares is None else shares, network, **(SMALL | more))


def record(folder):
    return (folder / "record.csv").read_bytes()


@pytest.mark.parametrize(
    ("y", "more"),
    [
        (LABELS, {"model": cs.mlp((3,), 2, hidden=(5,)), "network": CHANGING, "alone": True}),
        (LABELS, {"likelihood": "bernoulli", "model": cs.mlp((3,), 1, hidden=())}),
        (NUMBERS, {"replicates": 2, "test": (X[:9], NUMBERS[:9]), "held_out": 0.2}),
        (COUNTS, {"likelihood": "poisson", "precision": "float64"}),
    ],
    ids=["categorical", "bernoulli", "gaussian", "poisson"],
)
def test_the_command_gives_the_same_record_byte_for_byte(y, more, tmp_path):
    fit = small(y, folder=tmp_path / "python", **more)
    again = run.begin(described(str(tmp_path / "python" / "config.toml")), tmp_path / "command")
    run.carry_on(again)
    assert record(again) == record(tmp_path / "python")
    assert (again / "data.npz").read_bytes() == (tmp_path / "python" / "data.npz").read_bytes()
    assert fit.agents == tuple(shared(y))
    if "test" in more:  # judged both ways
        names = set(fit.record.columns)
        assert {"test_rmse", "pooled_test_nll", "held_out_rmse", "pooled_held_out_nll"} <= names
        assert "a test set of 9 rows" in fit.summary()["tested_on"]


@pytest.fixture
def interrupts():
    """Ctrl-C as it is in a program, whatever plays the tests does with it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def interrupted_after(played):
    """`carry_on` with one interruption, when it was told for this time how far it is."""
    original, told = run.carry_on, []

    def carry_on(folder, on_round, asked, **named):
        def on_round_then(done, words):
            on_round(done, words)
            told.append(done)
            if len(told) == played:
                signal.raise_signal(signal.SIGINT)

        return original(folder, on_round_then, asked, **named)

    return carry_on


def test_interrupted_and_called_again_it_is_the_run_that_was_never_stopped(tmp_path, monkeypatch, interrupts):
    whole = small(rounds=6, checkpoint_every=6, folder=tmp_path / "whole")
    stopped = partial(small, rounds=6, checkpoint_every=6, folder=tmp_path / "stopped")
    for told, line in (
        (1, "^$"),  # at once: nothing has been played
        (2, r"^stopped after round 4 of 6; the same call carries it on$"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(from_arrays.run, "carry_on", interrupted_after(told))
            with pytest.raises(KeyboardInterrupt, match=line):
                stopped()
    assert files.played(tmp_path / "stopped") == 4
    carried = stopped()
    assert record(tmp_path / "stopped") == record(tmp_path / "whole")
    same_predictions(carried, whole)
    finished = stopped()  # and once more: there is nothing left to do
    assert record(finished.folder) == record(tmp_path / "whole")


def test_who_interrupts_twice_does_not_wait(interrupts):
    with interruptible() as asked:
        assert not asked()
        signal.raise_signal(signal.SIGINT)
        assert asked()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def same_predictions(one, other):
    for agent in (0, "clinic 3"):
        ours, theirs = one.predict(X[:7], agent), other.predict(X[:7], agent)
        assert list(ours.columns) == list(theirs.columns)
        for name, column in ours.columns.items():
            np.testing.assert_array_equal(column, theirs.columns[name])


@pytest.mark.parametrize("rule", ["sites", "fedprox", "laplace", "central"])
def test_a_rule_is_the_command_s(rule, tmp_path):
    plain, chosen = (
        from_arrays.described(cs.mlp((3,), 2, hidden=()), shared(LABELS), NETWORK, None, None, name, tmp_path)[0]
        for name in (None, rule)
    )
    by_command = experiment_of(plain.model_dump(mode="json", exclude_none=True), rule=rule)
    assert (chosen.learner, chosen.consensus) == (by_command.learner, by_command.consensus)


def test_what_is_given_of_a_learner_comes_after_the_rule(tmp_path):
    given = (cs.mlp((3,), 2, hidden=()), shared(LABELS), NETWORK, None, None, "sites", tmp_path)
    config, _ = from_arrays.described(*given, learner={"epochs": 2, "pull": 0.5}, consensus={"damping": 0.3})
    assert (config.learner.epochs, config.learner.pull, config.learner.temperature) == (2, 0.5, 0.01)
    assert (config.consensus.kind, config.consensus.damping) == ("sites", 0.3)
    with pytest.raises(InputError, match=r"^learner: should be a table of fields, got 'natural'$"):
        from_arrays.described(*given, learner="natural")


def test_labels_come_back_as_they_were():
    for y in (X[:, 0] > 0, 3 * (X[:, 0] > 0)):
        found = small(y, shares=[(X, y)], network=cs.ring(1), rounds=1, model=cs.mlp((3,), 2, hidden=())).predict(X)
        assert found.prediction.dtype == y.dtype
        assert (found.prediction == y).mean() > 0.5


def test_what_is_saved_predicts_the_same(tmp_path):
    fit = small()
    fit.save(tmp_path / "kept")
    loaded = cs.load(tmp_path / "kept")
    same_predictions(fit, loaded)
    for ours, theirs in zip(jax.tree.leaves(fit.belief(4)), jax.tree.leaves(loaded.belief("clinic 4")), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(InputError, match="already exists"):
        fit.save(tmp_path / "kept")


class Dense(flax.linen.Module):
    """A Flax model."""

    @flax.linen.compact
    def __call__(self, x):
        return flax.linen.Dense(2)(x)


@pytest.mark.parametrize("framework", ["flax", "equinox"])
def test_models_of_other_frameworks_are_taken_as_they_are(framework, tmp_path):
    model = Dense() if framework == "flax" else equinox.nn.Linear(3, 2, key=jax.random.key(0))
    fit = small(model=model, folder=tmp_path / "run")
    with pytest.raises(InputError, match=r"^model: was given in Python; give it again: cs.load\(folder, model=…\)"):
        cs.load(tmp_path / "run")
    same_predictions(fit, cs.load(tmp_path / "run", model=model))
    larger = cs.mlp((3,), 2, hidden=(4,))
    with pytest.raises(InputError, match=r"^model: must have 8 parameters, as the run's, got 26$"):
        cs.load(tmp_path / "run", model=larger)
    with pytest.raises(InputError, match="model: was given in Python"):
        run.begin(described(str(tmp_path / "run" / "config.toml")), tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_scores_are_missing_only_where_nothing_was_held_out(real_figures, tmp_path):
    """A share of one row, or of none, has nothing to spare; everything that reads a record copes with it."""
    fit = small(folder=tmp_path / "run", alone=True, replicates=2)
    table = fit.record.to_pandas()
    scores = [name for name in table if "held_out_" in name and name != "held_out_rows"]
    missing = table["agent"].isin([2, 3])
    assert table.loc[missing, scores].isna().to_numpy().all()
    assert not table.loc[~missing, scores].isna().to_numpy().any()
    assert not table.drop(columns=scores).isna().to_numpy().any()
    assert fit.record.to_polars().shape == table.shape
    told = fit.summary()["arms"]["together"]
    assert told["agents"]["clinic 2"]["accuracy"] is None
    assert 0 <= told["average_pooled"]["accuracy"] <= 1
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["rows"]["clinic 3"] == 0
    assert {file.name for file in (tmp_path / "run" / "figures").iterdir()} == {"scores.png", "shares.png"}


def test_who_has_no_data_learns_from_the_others():
    fit = small(rounds=30, learner={"learning_rate": 0.1})
    right = fit.predict(X, agent="clinic 3").prediction == LABELS
    assert right.mean() > 0.85
    alone = small(rounds=3, alone=True)
    np.testing.assert_allclose(
        alone.flat_belief(3, arm="alone").mean, alone.flat_belief(3, "own", arm="alone").mean, rtol=1e-5, atol=1e-6
    )


BAD = {
    "nobody": ({"shares": []}, "shares: must hold a pair"),
    "no data": ({"shares": [([], [])] * 5}, "shares: nobody has any data"),
    "other shapes": ({"shares": [(X[:, :k], LABELS) for k in (3, 2, 3, 3, 3)]}, "shares: inputs must be alike"),
    "y too short": ({"shares": [(X, LABELS[:-1])] * 5}, "y must hold 80 targets"),
    "a NaN": ({"shares": [(np.full_like(X, np.nan), LABELS)] * 5}, r"x\[0, 0\] must be finite"),
    "a NaN target": ({"shares": [(X, np.full(80, np.nan))] * 5}, r"y\[0\] must be finite"),
    "odd name": ({"shares": {" a": (X, LABELS)}}, "shares: an agent's name"),
    "network size": ({"network": cs.ring(4)}, "network: must have an agent for each of the 5 shares, got 4"),
    "described size": ({"network": Ring(agents=6)}, "network: must have an agent for each of the 5 shares, got 6"),
    "no network": ({"network": "ring"}, "network: must be a Network"),
    "model inputs": ({"model": cs.mlp((4,), 2, ())}, "model: does not take inputs of shape"),
    "model outputs": ({"model": cs.mlp((3,), 3, ())}, "model: must have as many outputs as the likelihood reads"),
    "no model": ({"model": 3}, "model: must be a Model"),
    "test label": ({"test": (X[:2], ["yes", "maybe"])}, "test: has a label that no share has, 'maybe'"),
    "test empty": ({"test": (X[:0], LABELS[:0])}, "test: must have rows"),
    "test shape": ({"test": (X[:, :2], LABELS)}, "shares: inputs must be alike"),
    "gaussian labels": ({"likelihood": "gaussian"}, "likelihood: gaussian predicts a number, the data has labels"),
    "poisson labels": ({"likelihood": "poisson"}, "likelihood: poisson predicts a number, the data has labels"),
    "no such likelihood": ({"likelihood": "cauchy"}, "likelihood"),
    "negative counts": ({"y": COUNTS - 9, "likelihood": "poisson"}, "poisson is for counts"),
    "broken counts": ({"y": NUMBERS, "likelihood": "poisson"}, "poisson is for counts"),
    "numbers as labels": ({"y": NUMBERS, "likelihood": "categorical"}, "likelihood: categorical predicts a label"),
    "not judged": ({"held_out": 0.0}, "held_out: there is no test file"),
    "none to spare": (
        {"shares": [(X[k : k + 1], LABELS[k : k + 1]) for k in range(5)]},
        "held_out: nobody has a row to spare",
    ),
    "unknown field": ({"round": 5}, "round"),
    "unknown rule": ({"rule": "site"}, "^rule: unknown 'site'; did you mean 'sites'"),
    "a consensus' name": ({"rule": "paper", "consensus": "sites"}, "^consensus: should be a table of fields"),
    "a class": ({"model": Dense}, r"^model: must be a module, not its class; give Dense\(…\)$"),
    "a matrix": ({"network": np.eye(5)}, r"^network: must be a Network \(cs.ring\(5\), cs.from_matrix\(W\), …\)"),
    "unknown learner field": ({"learner": {"epoch": 5}}, "learner.epoch"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_one_line_and_leaves_nothing(what, tmp_path):
    given, said = BAD[what]
    with pytest.raises(InputError, match=said) as refused:
        small(folder=tmp_path / "run", **given)
    assert str(refused.value).isprintable()
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        (5, "shares: must be a list of pairs"),
        ([X], r"shares\['agent 0'\]: must be a pair"),
        ({1: (X, LABELS), "1": (X, LABELS)}, "shares: two agents are called '1'"),
    ],
)
def test_shares_of_another_type_are_one_line(shares, said):
    with pytest.raises(InputError, match=said):
        from_arrays.arrays_of(shares, None)


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    small(folder=tmp_path / "run", rounds=1)
    before = {file: file.read_bytes() for file in (tmp_path / "run").rglob("*") if file.is_file()}
    for change in ({"seed": 1}, {"y": NUMBERS}, {"rounds": 2}):
        with pytest.raises(InputError, match=r"^folder: .* holds another run; give it another folder$"):
            small(folder=tmp_path / "run", **({"rounds": 1} | change))
    assert before == {file: file.read_bytes() for file in (tmp_path / "run").rglob("*") if file.is_file()}
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("x")
    with pytest.raises(InputError, match=r"^folder: .* already exists and is no run's folder$"):
        small(folder=tmp_path / "mine")


def test_arrays_beside_a_description_are_held_to_it(tmp_path):
    small(folder=tmp_path / "run", rounds=1)
    config, data = (tmp_path / "run" / name for name in ("config.toml", "data.npz"))
    content = data.read_bytes()
    data.write_bytes(content[:-1] + b"x")
    with pytest.raises(InputError, match=r"^shares: '.*data.npz' was changed: its sha256"):
        run.begin(described(str(config)), tmp_path / "again")
    data.unlink()
    with pytest.raises(InputError, match=r"^shares: '.*data.npz' is not there"):
        run.begin(described(str(config)), tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_whole_numbers_are_numbers_where_numbers_are_predicted():
    fit = small(COUNTS, likelihood="gaussian", rounds=1)
    assert fit.learnt.label_names == ()
    text = np.array(["a", "b"] * 40, dtype=object)  # as data frames keep it
    assert small(LABELS, shares=shared(text), rounds=1).learnt.label_names == ("a", "b")


def test_raw_inputs_are_warned_of_by_name():
    raw = X * [1, 400, 1] + [0, 0, 30]
    with pytest.warns(UserWarning, match=r"^x\[:, 1\] has a mean of .* and a standard deviation of .*; .* scaled"):
        small(shares=shared(LABELS, raw.astype(np.float32)), rounds=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small(rounds=1)


@pytest.mark.soak  # simulations do, as tests of the engine show
def test_one_device_or_four_learn_the_same(monkeypatch):
    """Unequal shares are cut over devices."""
    from consilience.engines.simulate import Simulation

    assert len(jax.devices()) == 4
    more = {"precision": "float64", "learner": {"batch": 4}, "model": cs.mlp((3,), 2, hidden=())}
    on_one = small(**more)
    monkeypatch.setattr(run, "Simulation", partial(Simulation, devices=jax.devices()))
    on_four = small(**more)
    for agent in range(5):
        one, four = (jax.tree.leaves(fit.flat_belief(agent)) for fit in (on_one, on_four))
        for ours, theirs in zip(one, four, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9)
