"""Classification on the embedded digits: what the paper claims, resumed to the bit, refused by name."""

import json

import numpy as np
import pytest

from consilience.data import load_dataset
from consilience.data.labels import label_number
from consilience.errors import InputError
from consilience.experiments import EXPERIMENTS, load
from consilience.experiments.images.arms import arms, setting_of, shares
from consilience.experiments.images.measure import taken_for
from consilience.experiments.images.summary import compared, summarise
from consilience.runs import folder as files
from consilience.runs import run, sent
from consilience.runs.record import Record

SMALL = [
    "rounds=8",
    "record_every=4",
    "checkpoint_every=4",
    "model.hidden=[24]",
    "learner.epochs=2",
    "samples=4",
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "digits"
    run.begin(load("star-digits", SMALL), folder)
    run.carry_on(folder)
    return folder


def test_talking_agents_recognise_what_they_never_saw(tmp_path):
    settings = ["rounds=30", "record_every=15", "model.hidden=[32]", "samples=8", "confusion=true"]
    run.begin(load("star-digits", settings), tmp_path / "run")
    arms = run.carry_on(tmp_path / "run")["arms"]
    assert arms["alone"]["edge_accuracy"] < 0.25, "two labels of ten cannot give more"
    assert arms["cooperating"]["edge_accuracy"] > 0.5
    record = Record.read(tmp_path / "run" / "record.csv")
    seen, unseen = (record.select("cooperating", f"confidence_{k}")[-1, 1:].mean() for k in (0, 2))
    alone = record.select("alone", "confidence_2")[-1, 1:].mean()
    assert unseen > 3 * alone
    assert seen > 0.3
    pairs = taken_for([str(k) for k in range(10)])
    taken = np.zeros((10, 10, 9))
    for name, pair in pairs.items():
        taken[pair] = record.select("cooperating", name)[-1]
    np.testing.assert_allclose(taken.sum(1), 1, rtol=1e-5)
    _, of_label = np.unique(load_dataset("digits").test_labels, return_counts=True)
    right = np.einsum("kka,k->a", taken, of_label / of_label.sum())
    np.testing.assert_allclose(right, record.select("cooperating", "accuracy")[-1], rtol=1e-5)
    assert (tmp_path / "run" / "figures" / "confusion.png").exists()


class Cut(Exception):
    pass


def test_interrupted_runs_end_with_the_same_bytes(whole, tmp_path):
    folder = tmp_path / "again"
    run.begin(load("star-digits", SMALL), folder)

    def cut(played, words):
        if played >= 6:
            raise Cut

    with pytest.raises(Cut):
        run.carry_on(folder, cut)
    run.carry_on(folder)
    assert (folder / "record.csv").read_bytes() == (whole / "record.csv").read_bytes()


def test_the_record_and_figures_are_complete(whole):
    record = Record.read(whole / "record.csv")
    names = {"accuracy", "nll", "brier", "ece", "entropy", "aleatoric", "epistemic", "disagreement", "pooled_accuracy"}
    assert names <= set(record.columns)
    assert {f"confidence_{k}" for k in range(10)} <= set(record.columns)
    assert record.rounds("alone").tolist() == [4, 8]
    summary = json.loads((whole / "summary.json").read_text())
    assert {"average_accuracy", "center_accuracy", "nll", "ece", "hours", "command", "configuration"} <= set(summary)
    told = {arm: row["bytes_sent"] for arm, row in summary["arms"].items()}
    assert told == {"cooperating": 8 * 16 * 2 * 4 * (65 * 24 + 25 * 10), "alone": 0}  # rounds, links, numbers, bytes
    for figure in summary["figures"]:
        assert (whole / figure).stat().st_size > 10_000


def test_what_is_sent_is_known_of_a_run_that_goes_further(tmp_path):
    run.begin(load("star-digits", [*SMALL, "rounds=2"]), tmp_path / "run")
    run.extend(tmp_path / "run", 5)
    kept = files.shares(tmp_path / "run")
    message = kept["sent"]["cooperating"]["message_bytes"]
    assert sent.told(kept, "cooperating", 5) == {"bytes_sent": 5 * 16 * message, "bytes_a_round": 16.0 * message}


@pytest.mark.parametrize("name", [n for n, e in EXPERIMENTS.items() if e.room == "images"])
def test_every_preset_is_valid(name):
    config = load(name)
    assert config.experiment == name
    for network in config.networks.values():
        others = {"time-varying-25": 26, "time-varying-100": 101, "skewed-fmnist": 10}
        assert network.build().agents == others.get(name, 9 if config.watched else 12)


@pytest.mark.parametrize("name", ["star-mnist", "grid-center", "ambiguous-fmnist"])
def test_presets_have_the_paper_updates_a_round(name):
    """u = floor(n_edge/B)·E: 155 for Setup1 and the grid, 150 for FMNIST."""
    learner = load(name).learner
    edge = 3000 if "fmnist" in name else 1583
    assert edge // learner.batch * learner.epochs == (150 if "fmnist" in name else 155)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["learner.batch=500"], "learner.batch: must be at most"),
        (["networks.other.kind=ring", "networks.other.agents=4"], "networks: must all have the same number of agents"),
        (["dataset=mnits"], "dataset: unknown 'mnits', neither a name nor a file .npz.*; did you mean 'mnist'"),
        (["partition.groups=[{labels=[0,1],agents=[0]}]"], "partition: label"),
        (["partition.groups=[{labels=[77],agents=[0]}]"], "partition: no label 77 in digits"),
        (["partition.groups=[{labels=[0],agents=[12]}]"], "partition: names agent 12, there are agents 0 to 8"),
        (
            ["partition.groups=[{labels=[0,1],agents=[1,2,1]}]"],
            "agent 1 is named twice as a holder of label 0",
        ),
        (
            ["partition.groups=[{labels=[0],agents=[1]},{labels=['0'],agents=[2]}]"],
            "label '0' is named twice",
        ),
        (["watched=[3,11]"], "watched: no label 11 in digits; it has 0, 1, 2"),
        (["networks.cooperating.changes.clocks.durations=[]"], "durations: should have at least 1 entr"),
        (["confusion=3"], "confusion: should be true or false, got 3"),
        (["watched=['cat']"], "watched: no label 'cat' in digits"),
        (["learner.initial_sd=-1"], "learner.initial_sd: should be greater than 0, got -1"),
        (["model.kind=cnn", "model.channels=[2,2,2,2]"], "model.channels: 8 × 8 pixels can be halved 3 times, got 4"),
        (["model.hidden=[1000000000,1000000000]"], "parameters: needs about"),
        ([f"model.hidden=[{10**400}]"], "parameters: needs about"),
        (["model.kind=transformer"], "model: unknown kind 'transformer'"),
        (
            ["strangers=digit"],
            "strangers: unknown 'digit', neither a name nor a file .npz, .csv, .parquet; did you mean 'digits'",
        ),
        (["strangers=none.npz"], "strangers: cannot read"),
        (["partition.kind=skewed"], "learner.batch: must be at most 5, the smallest share, got 10; learner.steps=own"),
        (["training=1401"], "training: must be at most 1400, as many as there are, got 1401"),
        (["model.activation=tanh"], "model.activation: should be 'relu' or 'sigmoid', got 'tanh'"),
        (["partition.kind=dirichlet", "partition.alpha=0"], "partition.alpha: should be greater than 0"),
    ],
)
def test_bad_settings_are_named(settings, message, tmp_path):
    with pytest.raises(InputError, match=message.replace("[", r"\[").replace("(", r"\(")):
        run.begin(load("star-digits", settings), tmp_path / "bad")
    assert not (tmp_path / "bad").exists()


@pytest.mark.parametrize(
    ("names", "label", "number"),
    [
        (("cat", "dog"), "dog", 1),
        (("cat", "dog"), 1, 1),
        (("1", "2", "3"), 1, 0),
        (("1", "2", "3"), "3", 2),
        (("1", "2", "3"), 0, None),
        (("0.5", "1.5"), 1, None),
        (("cat", "dog"), 2, None),
        (("cat", "dog"), -1, None),
        pytest.param(("cat", "dog"), 16**5000, None, id="thousands of digits"),
        (("cat", "dog"), "1", None),
    ],
)
def test_labels_are_known_by_name_first(names, label, number):
    if number is None:
        with pytest.raises(InputError, match=r"partition: no label .* in pets; it has"):
            label_number(names, label, "partition", "pets")
    else:
        assert label_number(names, label) == number


@pytest.mark.parametrize("kind", ["iid", "dirichlet", "shards", "feature"])
def test_other_partitions_and_a_cnn_run(kind, tmp_path):
    settings = [*SMALL, "rounds=1", f"partition.kind={kind}", "alone=false", "learner.batch=5"]
    if kind == "iid":
        settings += ["model.kind=cnn", "model.channels=[2]", "model.hidden=8", "learner.estimator=outputs"]
    if kind == "dirichlet":
        settings += ["partition.alpha=2.0"]
    run.begin(load("star-digits", settings), tmp_path / "run")
    assert 0 < run.carry_on(tmp_path / "run")["average_accuracy"] <= 1


SKEWED = ["dataset=digits", "training=300", "model.hidden=[8]", "learner.epochs=2", "rounds=5", "samples=2"]


def test_some_of_the_training_examples_are_used_drawn_by_seed():
    config = load("skewed-fmnist", [*SKEWED, "replicates=2", "validation=100"])
    setting = setting_of(config)
    owners = [partition.owner for partition in setting.partitions.values()]
    assert [(len(owner), int((owner >= 0).sum())) for owner in owners] == [(1300, 300)] * 2
    assert ((owners[0] >= 0) != (owners[1] >= 0)).any()
    used = np.bincount(setting.dataset.labels[owners[0] >= 0], minlength=10) / 300
    np.testing.assert_allclose(used, np.bincount(setting.dataset.labels) / 1300, atol=0.06)
    assert shares(config)["counts"] == setting.partitions[0].counts(setting.dataset.labels, 10).tolist()


@pytest.mark.parametrize("rule", ["sites", "fedavg", "central"])
def test_rules_learn_from_shares_of_any_size(rule, tmp_path):
    """Sizes from nothing to most of the data; what is told is the mean of the last three rounds."""
    settings = [*SKEWED, "record_also=[3,4]", "partition.sizes=0.1", "seed=3"]
    config = load("skewed-fmnist", settings, rule)
    sizes = setting_of(config).partitions[3].sizes()
    assert sizes.min() == 0
    assert sizes.max() > 100
    run.begin(config, tmp_path / "run")
    told = run.carry_on(tmp_path / "run")
    assert told["told_over"] == [3, 4, 5]
    record = Record.read(tmp_path / "run" / "record.csv")
    assert record.rounds("cooperating").tolist() == [3, 4, 5]
    np.testing.assert_allclose(told["average_accuracy"], record.select("cooperating", "accuracy").mean(), rtol=1e-9)
    with_nothing = int(sizes.argmin())
    if rule == "fedavg":  # believes what it has heard, having nothing else
        own, heard = (record.select("cooperating", name)[:, with_nothing] for name in ("nll", "pooled_nll"))
        np.testing.assert_allclose(own[1:], heard[:-1], rtol=1e-4)


@pytest.mark.soak
def test_strangers_are_told_apart_by_doubt(tmp_path):
    """Those of the task itself as often right as wrong; what else is measured does not depend on them."""
    digits, noise = load_dataset("digits"), np.random.default_rng(0).integers(0, 256, (50, 8, 8)).astype(np.uint8)
    for name, strange in (("same", digits.test_inputs), ("noise", noise), ("small", noise[:, 0])):
        arrays = {"x": strange[:9], "y": np.arange(9) % 2, "x_test": strange}
        np.savez(tmp_path / f"{name}.npz", **arrays, y_test=np.zeros(len(strange), int))
    few = [*SMALL, "rounds=2", "record_every=2", "alone=false"]
    columns = [f"{of}stranger_auroc{by}" for of in ("", "pooled_") for by in ("", "_entropy")]
    records, summaries = {}, {}
    for rule, name in (("paper", "same"), ("paper", "noise"), ("gossip", "noise")):
        folder = tmp_path / f"{rule}-{name}"
        run.begin(load("star-digits", [*few, f"strangers={tmp_path / name}.npz"], rule), folder)
        summaries[rule, name] = run.carry_on(folder)["arms"]["cooperating"]
        records[rule, name] = Record.read(folder / "record.csv")
    found = {
        key: {name: record.select("cooperating", name)[-1] for name in record.metrics()}
        for key, record in records.items()
    }
    same, noise, points = found.values()
    for column in columns:
        np.testing.assert_allclose(same[column], 0.5, atol=1e-3)
        for key, values in (("paper", noise[column]), ("gossip", points[column])):
            assert ((values >= 0) & (values <= 1)).all()
            assert (np.abs(values - 0.5) > 0.01).any()
            np.testing.assert_allclose(summaries[key, "noise"][column], values.mean(), rtol=1e-6)
    assert (noise["stranger_auroc"] != noise["stranger_auroc_entropy"]).any()
    np.testing.assert_array_equal(points["stranger_auroc"], points["stranger_auroc_entropy"])
    for column in set(same) - set(columns):
        np.testing.assert_array_equal(same[column], noise[column])
    assert {"stranger auroc", "pooled stranger auroc"} <= set(compared(records["gossip", "noise"]))
    with pytest.raises(InputError, match=r"strangers: must have inputs of the shape \(8, 8\), .* got \(8,\)"):
        arms(load("star-digits", [f"strangers={tmp_path / 'small.npz'}"]))


def test_what_was_pooled_is_told_beside_what_is_published_and_how_sure_averages_are():
    """Of a record made by hand: two rounds, three seeds, four agents."""
    rng = np.random.default_rng(0)
    shape, names = (2, 3, 4), ("accuracy", "nll", "brier", "ece")
    measured = {f"{of}{name}": rng.random(shape) for of in ("", "pooled_") for name in names}
    number, seed, agent = (axis.ravel() for axis in np.indices(shape))
    keys = {"arm": np.full(24, "cooperating"), "round": number + 1, "agent": agent, "seed": seed}
    counts = [[1, 0], [1, 1], [1, 0], [0, 1]]  # agent 1 is the best informed
    record = Record({**keys, **{name: values.ravel() for name, values in measured.items()}}, {"counts": counts})
    told = summarise(load("star-digits"), record)["arms"]["cooperating"]
    at_end = {name: values[-1].mean(0) for name, values in measured.items()}
    for of, average in (("", "average_accuracy"), ("pooled_", "pooled_accuracy")):
        accuracy = at_end[f"{of}accuracy"]
        expected = {
            average: accuracy.mean(),
            f"{of}center_accuracy": accuracy[1],
            f"{of}edge_accuracy": accuracy[[0, 2, 3]].mean(),
            f"{of}worst_accuracy": accuracy.min(),
            **{f"{of}{name}": at_end[f"{of}{name}"].mean() for name in names[1:]},
        }
        assert {name: told[name] for name in expected} == pytest.approx(expected)
    for name, of in (("average_accuracy", "accuracy"), *((name, name) for name in ("pooled_accuracy", "nll", "ece"))):
        averages = measured[of][-1].mean(1)
        assert told[f"{name}_se"] == pytest.approx(averages.std(ddof=1) / np.sqrt(3))
    last_two = summarise(load("star-digits", ["told_over=2"]), record)["arms"]["cooperating"]
    assert last_two["nll"] == pytest.approx(measured["nll"].mean())
    assert last_two["nll_se"] == pytest.approx(measured["nll"].mean((0, 2)).std(ddof=1) / np.sqrt(3))
