"""Experiments on networks that change: configuration, recorded turns, replay, simulated time."""

import json

import numpy as np
import pytest

from consilience.command import theory as theory_report
from consilience.errors import InputError
from consilience.experiments import coins, load
from consilience.network import Lossy, Schedule, read_turns, ring, turns_as_csv
from consilience.network.schedule import Fixed
from consilience.runs import run
from consilience.runs.record import Record

SMALL = ["rounds=6", "record_every=2", "model.hidden=[8]", "learner.epochs=1", "samples=2"]


@pytest.fixture(scope="module")
def churned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "churn"
    # A seed with which everybody is heard within so few rounds; runs in which somebody is not are refused.
    changes = [f"networks.cooperating.changes.{one}" for one in ("loss=0.3", "seed=1")] + ["precision=float64"]
    run.begin(load("churn-digits", [*SMALL, *changes]), folder)
    return folder, run.carry_on(folder)


def test_turns_are_recorded_and_replayed_to_the_same_beliefs(churned, tmp_path):
    folder, summary = churned
    turns = read_turns(folder / "turns-cooperating.csv")
    assert len(turns) == 6
    assert set(summary["arms"]) == {"cooperating", "alone"}
    replay = f"networks.cooperating.changes.replay={folder / 'turns-cooperating.csv'}"
    run.begin(load("churn-digits", [*SMALL, replay, "precision=float64"]), tmp_path / "replay")
    run.carry_on(tmp_path / "replay")
    one, other = (Record.read(place / "record.csv") for place in (folder, tmp_path / "replay"))
    for name in ("accuracy", "nll", "mean_sd", "time"):
        np.testing.assert_allclose(one.select("cooperating", name), other.select("cooperating", name), rtol=1e-9)


def test_turns_survive_a_file(tmp_path):
    lossy = Lossy(Fixed(ring(5)), 0.5)
    (tmp_path / "turns.csv").write_text(turns_as_csv(lossy, 4))
    for number, turn in enumerate(read_turns(tmp_path / "turns.csv"), start=1):
        for one, other in zip(turn, lossy.turn(number), strict=True):
            np.testing.assert_array_equal(one, other)
    for text, message in (
        ("a,b\n", "its first line must be round,time"),
        ("round,time,agent,hears,weight,age\n2,2.0,0,learns,,\n", "round 1 is missing"),
        ("round,time,agent,hears,weight,age\n1,1.0,x,learns,,\n", "column 'agent' must be a whole number, got 'x'"),
    ):
        (tmp_path / "bad.csv").write_text(text)
        with pytest.raises(InputError, match=message):
            read_turns(tmp_path / "bad.csv")


@pytest.mark.soak
def test_who_does_not_wait_gets_further_in_the_same_time(tmp_path):
    config = load("async-digits", ["rounds=40", "record_every=40", "model.hidden=[24]", "samples=4"])
    schedules = {name: described.schedule() for name, described in config.networks.items()}
    assert all(isinstance(schedule, Schedule) for schedule in schedules.values())
    acted = {name: sum(len(s.turn(n).learners) for n in range(1, 41)) for name, s in schedules.items()}
    assert acted["asynchronous"] > 1.5 * acted["synchronous"]
    run.begin(config, tmp_path / "run")
    summary = run.carry_on(tmp_path / "run")
    accuracy = {name: row["average_accuracy"] for name, row in summary["arms"].items()}
    assert accuracy["asynchronous"] > accuracy["synchronous"]
    assert "figures/time.png" in json.loads((tmp_path / "run" / "summary.json").read_text())["figures"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["changes.gossip=edge", "changes.clocks.spread=1"], "changes: gossip and clocks exclude each other"),
        (["changes.loss=1"], "loss: should be less than 1"),
        (["changes.clocks.spread=1e300"], "spread: is too large"),
        (["changes.clocks.tick=9", "changes.clocks.spread=0"], "tick: must be above 0 and at most"),
        (["changes.replay=nowhere.csv"], "changes.replay: cannot read '.*nowhere.csv'"),
        (["kind=rotating-star", "edges=10", "laziness=0.5"], "laziness: a rotating star has its own turns"),
        (["kind=rotating-star", "edges=10", "changes.up=5"], "changes: up and down go together"),
    ],
)
def test_bad_changes_are_one_line(settings, message, tmp_path):
    with pytest.raises(InputError, match=message):
        run.begin(load("churn-digits", [f"networks.cooperating.{each}" for each in settings]), tmp_path / "run")


def test_a_network_that_never_connects_is_explained(tmp_path):
    settings = ["rounds=2", "networks.cooperating.changes.gossip=edge"]
    with pytest.raises(InputError, match="schedule: over 2 rounds agent"):
        run.begin(load("churn-digits", settings), tmp_path / "run")


SEVERAL = ("lossy star", "own clocks")
EVERY = (*SEVERAL, "churn", "rotating star", "gossip on a grid")


@pytest.fixture(scope="module", params=[SEVERAL, pytest.param(EVERY, marks=pytest.mark.soak)], ids=["several", "all"])
def rates(request, tmp_path_factory):
    """An arm for each network and each rule; compiling them takes the time."""
    folder = tmp_path_factory.mktemp("runs") / "rates"
    config = load("changing-rates", ["rounds=150", "replicates=100", "points=6"])
    networks = {name: described for name, described in config.networks.items() if name in request.param}
    run.begin(config.model_copy(update={"networks": networks}), folder)
    return folder, run.carry_on(folder)


def test_measured_rates_are_those_that_the_realised_turns_predict(rates):
    _, summary = rates
    assert len(summary["networks"]) in (len(SEVERAL), len(EVERY))
    for told in summary["networks"].values():
        assert list(told["rules"]) == ["paper", "sites", "tracking"]
        for row in told["rules"].values():
            assert row["worst_in_standard_errors"] < 5
            assert row["rate_measured"] == pytest.approx(row["rate_exact"], rel=0.04)
        assert told["rules"]["paper"]["measured_over_realised"] == pytest.approx(1, abs=0.1)


def test_an_average_has_an_nth_of_what_sums_have(rates):
    """What the data allows is summed by sites and tracking, whatever changes; after few turns some is on the way."""
    for name, told in rates[1]["networks"].items():
        shares = {rule: row["measured_over_allowed"] for rule, row in told["rules"].items()}
        assert shares["paper"] < 1.1 / told["agents"]
        assert (0.7 if name == "churn" else 0.95) < shares["sites"] < 1.02
        assert shares["tracking"] == pytest.approx(1, abs=0.25 if name == "churn" else 0.05)


def test_the_paper_s_rule_alone_has_the_same_numbers(rates, tmp_path):
    folder, _ = rates
    network = 'networks={"own clocks"={kind="complete",agents=9,changes={clocks={spread=0.7,delay=0.5}}}}'
    settings = ["rounds=150", "replicates=100", "points=6", network, 'rules=["paper"]']
    run.begin(load("changing-rates", settings), tmp_path / "run")
    summary = run.carry_on(tmp_path / "run")
    assert summary["figures"] == ["figures/rates.png", "figures/shares.png"]
    one, other = (Record.read(place / "record.csv") for place in (folder, tmp_path / "run"))
    assert other.arms() == ["own clocks"]
    np.testing.assert_array_equal(one.select("own clocks", "log_ratio"), other.select("own clocks", "log_ratio"))


@pytest.mark.parametrize("rules", ['["sites", "sites"]', "[]", '["laplace"]'])
def test_rules_that_cannot_be_are_one_line(rules):
    with pytest.raises(InputError, match=r"^rules"):
        load("changing-rates", [f"rules={rules}"])


def test_the_theory_of_recorded_turns(rates, tmp_path):
    folder, summary = rates
    config = load("changing-rates")
    for name, row in summary["networks"].items():
        told = theory_report.describe_turns(str(folder / f"turns-{name}.csv"))
        np.testing.assert_allclose(told["realised_centrality"], row["realised_centrality"])
        assert told["mixing_window"] == row["mixing_window"]
    tables = coins.tables_for(config, 9).tolist()
    (tmp_path / "model.toml").write_text(f"likelihoods = {tables}\ntruth = 0\n")
    told = theory_report.describe_turns(str(folder / "turns-lossy star.csv"), tmp_path / "model.toml")
    assert told["K"] == pytest.approx(summary["networks"]["lossy star"]["K_realised"])
    (tmp_path / "model.toml").write_text("noise = 1.0\n")
    with pytest.raises(InputError, match="must have a key 'likelihoods'"):
        theory_report.describe_turns(str(folder / "turns-lossy star.csv"), tmp_path / "model.toml")


def test_agents_that_have_heard_nothing_have_no_rate_to_compare(tmp_path):
    network = 'networks={a={kind="star",edges=3,changes={gossip="edge"}}}'
    run.begin(load("changing-rates", ["rounds=8", "replicates=2", network]), tmp_path / "run")
    json.dumps(run.carry_on(tmp_path / "run"), allow_nan=False)
