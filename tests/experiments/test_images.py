"""Classification on the embedded digits: what the paper claims, resumed to the bit, refused by name."""

import json

import numpy as np
import pytest

from consilience.data import load_dataset
from consilience.data.labels import label_number
from consilience.errors import InputError
from consilience.experiments import EXPERIMENTS, load
from consilience.experiments.images.arms import taken_for
from consilience.runs import run
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
    for figure in summary["figures"]:
        assert (whole / figure).stat().st_size > 10_000


@pytest.mark.parametrize("name", [n for n, e in EXPERIMENTS.items() if e.room == "images"])
def test_every_preset_is_valid(name):
    config = load(name)
    assert config.experiment == name
    for network in config.networks.values():
        assert network.build().agents == {"time-varying-25": 26, "time-varying-100": 101}.get(
            name, 9 if config.watched else 12
        )


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
        (["dataset=mnits"], "dataset: unknown 'mnits'; did you mean 'mnist'"),
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
