"""The paper's parts: their runs are real runs, their claims follow from records by hand, and reproducing resumes."""

import json

import numpy as np
import pytest

from consilience.errors import InputError
from consilience.experiments import load
from consilience.experiments.images.measure import taken_for
from consilience.network import grid
from consilience.paper import Part, claims, part_named, plays
from consilience.paper.from_run import curves
from consilience.paper.parts import PARTS
from consilience.paper.plays import Play, trusted, trusted_again
from consilience.paper.reproduce import due, speeds, tell
from consilience.paper.told import by_seed, rising
from consilience.paper.told_file import from_values
from consilience.runs import run
from consilience.runs.estimate import Speed, kind_of, measure
from consilience.runs.record import Record
from consilience.theory import mean_log_ratio

NAMES = ["0", "2", "4", "9", "coat", "pullover", "trouser"]


def told(rounds, curve, seeds=None, confidence=0.5, centre=0, agents=3, taken=0.0):
    """A run whose average accuracy is the curve; agents differ by a hundredth."""
    number = len(seeds or [0])
    rows = [(n, s, i) for n in rounds for s in (seeds or [0]) for i in range(agents)]
    spread = 0.01 * (np.arange(agents) - (agents - 1) / 2)
    accuracy = np.array([curve(n) + spread[i] + 0.001 * s for n, s, i in rows])
    columns = {
        "arm": np.full(len(rows), "cooperating"),
        "round": np.array([n for n, _, _ in rows]),
        "agent": np.array([i for _, _, i in rows]),
        "accuracy": accuracy,
    }
    if number > 1:
        columns["seed"] = np.array([s for _, s, _ in rows])
    for name in NAMES:
        columns[f"confidence_{name}"] = np.array(
            [confidence(name, i == centre, n) if callable(confidence) else confidence for n, _, i in rows]
        )
    for name, (true, chosen) in taken_for(NAMES).items():
        columns[name] = np.array(
            [taken(NAMES[true], NAMES[chosen], i) if callable(taken) else taken for _, _, i in rows]
        )
    counts = np.ones((agents, len(NAMES)), int)
    counts[[i for i in range(agents) if i != centre], 1:] = 0
    record = Record(columns, {"label_names": NAMES, "counts": counts.tolist()})
    config = load("star-digits", ["confusion=true"])
    values = {"name": "made", "configuration": {}, "facts": {}, "summary": {}, "rounds": list(rounds)}
    return from_values({**values, **curves(config, record)})


def test_every_part_is_made_of_runs_that_can_be_described():
    for part in PARTS:
        for play in part.plays:
            config = load(play.experiment, play.settings)
            assert config.rounds >= 100
            assert play.command().startswith(f"consilience run {play.experiment}")
    names = [play for part in PARTS for play in part.plays]
    assert len({play.name for play in names}) == len(set(names)), "one name, one run"


def test_three_seeds_come_of_two_runs():
    first, again = (
        load(p.experiment, p.settings) for p in (trusted("star-mnist", 0.2), trusted_again("star-mnist", 0.2))
    )
    assert first.seeds() + again.seeds() == [0, 1, 2]
    assert first.model_dump(exclude={"seed", "rounds", "replicates"}) == again.model_dump(
        exclude={"seed", "rounds", "replicates"}
    )
    runs = {
        "star-mnist-0.2": told([10, 25], lambda n: n / 100),
        "star-mnist-0.2-seeds": told([10, 25], lambda n: n / 100, seeds=[1, 2]),
    }
    np.testing.assert_allclose(by_seed(runs, "star-mnist", 0.2, 25), [0.25, 0.251, 0.252])


def test_rounds_to_a_level_lie_on_the_line_between_two_records():
    one = told([1, 5, 10], lambda n: 0.1 * n)
    assert one.rounds_to(0.75) == pytest.approx(7.5)
    assert one.rounds_to(0.05) == 1
    assert one.rounds_to(1.01) is None


def test_the_order_of_trusts_is_judged_by_their_means():
    def runs(slope):
        made = {}
        for a in (0.3, 0.5, 0.7):
            curve = lambda n, a=a: 0.5 + slope * a * n / 300  # noqa: E731
            made[f"star-fmnist-{a}"] = told([10, 25, 50, 100, 300], curve)
            made[f"star-fmnist-{a}-seeds"] = told([10, 25, 50, 100], curve, seeds=[1, 2])
        return made

    for slope, holds in ((0.7, True), (-0.7, False)):
        found = list(claims.stars(runs(slope), "star-fmnist", (0.3, 0.5, 0.7), "2b", 0.6))
        assert [claim.holds for claim in found] == [holds] * 5
    assert "never" in found[-1].here
    assert not rising([1.0, 2.0, 2.0])


def test_confidence_claims_count_every_recorded_round():
    def confidence(name, at_centre, n):
        known = (name == "2") == at_centre  # the centre holds 2, the edges 0
        return (0.9 if known else 0.3) if n < 50 else 0.6

    runs = {f"star-mnist-{a}": told([10, 25, 50, 100], lambda n: 0.9, confidence=confidence) for a in (0.1, 0.5)}
    found = list(claims.confidences(runs, "star-mnist", (0.1, 0.5), "3", "0", "2"))
    assert [claim.holds for claim in found] == [False] * 6
    assert found[0].here.startswith("at 4 of 8")


def test_the_corner_is_later_by_what_the_theory_says():
    expected = claims.predicted_rounds(30.0)
    held = [mean_log_ratio(grid(3, 3), np.eye(9)[place], [30, int(expected), int(expected) + 1]) for place in (4, 0)]
    assert held[1][1].mean() <= held[0][0].mean() <= held[1][2].mean()
    assert claims.predicted_rounds(500.0) / 500 == pytest.approx(5 / 3, rel=0.02), "v of the middle over the corner's"


def all_runs():
    rounds, made = [1, 10, 25, 50, 100, 300], {}
    for part in PARTS:
        for play in part.plays:
            made[play.name] = told(rounds, lambda n: 0.98 - 0.5 / n, seeds=[1, 2] if "seeds" in play.name else None)
    return made


@pytest.mark.usefixtures("real_figures")
def test_all_figures_are_drawn(tmp_path):
    made = all_runs()
    for part in PARTS:
        for draw in part.drawings:
            assert draw(made, tmp_path).stat().st_size > 10_000
    confusions = sorted(file.name for file in tmp_path.glob("figure-5-confusion-*.png"))
    assert confusions == sorted(f"figure-5-confusion-{play.name}.png" for play in plays.AMBIGUOUS)
    assert all(claim.holds is not None for claim in claims.placement(made))
    assert sum(1 for _ in claims.ambiguous(made)) == 8


def test_rounds_in_middle_and_corner_stand_beside_the_theory():
    made = {
        play.name: told([1, 100, 200], lambda n, late=late: 0.5 + 0.005 * n / late)
        for play, late in zip(plays.GRIDS, (1, 2), strict=True)
    }
    to_90, to_95, at_the_end = claims.placement(made)
    assert to_90.here == f"middle 80, corner 160 (theory, given the middle's: {claims.predicted_rounds(80.0):.0f})"
    assert to_95.here.startswith("middle 90, corner 180")
    assert at_the_end.here == "middle 150.00%, corner 100.00%"
    assert to_90.holds
    assert to_95.holds
    late = {play.name: told([1, 100], lambda n: 0.1) for play in plays.GRIDS}
    assert next(claims.placement(late)).here == "middle never, corner never"


def test_what_is_taken_for_what_is_counted_at_the_centre_and_on_average_over_the_edges():
    def taken(true, chosen, agent):
        if (true, chosen) == ("9", "4"):
            return 0.3 if agent == 1 else 0.01  # the centre is agent 1
        if (true, chosen) == ("4", "9"):
            return {0: 0.2, 1: 0.02, 2: 0.4}[agent]
        return 0.9 if true == chosen else 0.0

    one = told([1, 10], lambda n: 0.5, centre=1, taken=taken)
    assert one.taken_for("9", "4", "centre") == 0.3
    assert one.taken_for("4", "9", "edges") == pytest.approx(0.3)
    assert one.commonest_mistake("edges") == ("4", "9")
    assert one.holds("4", "centre")
    assert not one.holds("4", "edges")
    found = list(claims.confused({play.name: one for play in plays.AMBIGUOUS}))
    assert [claim.here for claim in found[:3]] == ["30.0%", "30.0%", "centre: 9 for 4, 30.0%; edges: 4 for 9, 30.0%"]
    assert found[0].claim == "MNIST-Setup2: 9 taken for 4 at the centre"
    assert {claim.holds for claim in found} == {None}
    assert found[7].claim == "FMNIST-Setup2: coat taken for pullover at the edges"


QUICK = Play("linear-regression", "linear-regression", ("rounds=20", "replicates=2", "test_samples=50"))


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(plays, "LINEAR_REGRESSION", QUICK)
    return Part("1", "quick", (QUICK,), (claims.linear_regression,))


def test_what_is_finished_is_not_run_again(quick, tmp_path):
    (one,) = due([quick], tmp_path)
    assert (one.done, one.finished) == (0, False)
    run.begin(one.config, one.folder, one.play.command())
    run.carry_on(one.folder)
    (one,) = due([quick], tmp_path)
    assert (one.done, one.finished) == (20, True)
    assert speeds([one]) == {}
    found = tell([quick], tmp_path)
    written = json.loads((tmp_path / "paper.json").read_text())
    assert [claim["claim"] for claim in written] == [claim.claim for claim in found.claims]
    assert set(written[0]) >= {"claim", "paper", "here", "holds", "command"}
    assert found.missing == {}
    summary = json.loads((one.folder / "summary.json").read_text())
    assert summary["command"] == QUICK.command()


def test_a_folder_of_another_run_is_refused(quick, tmp_path):
    run.begin(load("linear-regression", ["rounds=21"]), tmp_path / QUICK.name)
    with pytest.raises(InputError, match=r"is not the run of `consilience run linear-regression --set rounds=20"):
        due([quick], tmp_path)


def test_a_place_where_claims_cannot_be_written_is_refused_before_anything_is_played(quick, tmp_path):
    (tmp_path / "paper.json").mkdir()
    with pytest.raises(InputError, match=r"paper\.json' must be a file, got a folder"):
        due([quick], tmp_path)


def test_unknown_parts_are_named():
    with pytest.raises(InputError, match="figure: unknown '6'; known: 1, 2a, 2b"):
        part_named("6")


def test_speed_counts_the_rounds_that_are_left():
    config = load("star-mnist", ["rounds=100", "record_every=25"])
    assert Speed(2.0, 10.0).seconds(config) == 100 * 2 + 4 * 10
    assert Speed(2.0, 10.0).seconds(config, done=60) == 40 * 2 + 2 * 10
    kinds = {
        kind_of(load("star-mnist", [f"networks.cooperating.trust={a}", f"rounds={n}"])) for a, n in ((0.1, 3), (0.2, 5))
    }
    assert len(kinds) == 1
    assert kind_of(load("star-mnist", ["learner.estimator=weights"])) not in kinds


def test_a_speed_is_measured_by_playing():
    speed = measure(load("linear-regression", ["replicates=2", "test_samples=50"]))
    assert speed.of_round >= 0
    assert speed.of_record >= 0
    assert speed.of_round + speed.of_record > 0


def test_claims_are_a_table_of_a_document():
    made = [claims.Claim("1", "|x| falls", "falls", "0.5", holds, "consilience run x") for holds in (True, False, None)]
    head, rule, *rows = claims.as_markdown(made).splitlines()
    assert head.count("|") == rule.count("|") == 7
    assert [row.split(" | ")[-2] for row in rows] == ["yes", "**no**", "–"]
    assert r"\|x\| falls" in rows[0]
