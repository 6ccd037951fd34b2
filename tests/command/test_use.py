"""`predict`, `export`, `coefficients` and `compare` as a person types them: what they print, write and refuse."""

import json
import shutil
import sys

import numpy as np
import pandas as pd
import pytest

from consilience.command import main as cli
from consilience.experiments import load
from consilience.learning import Fit
from consilience.runs import run as runs


@pytest.fixture
def consilience(capsys, monkeypatch, tmp_path):
    """Run the command in a new folder; gives (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["consilience", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return call


def rows(count, seed):
    rng = np.random.default_rng(seed)
    age, side = rng.normal(50, 10, count).round(3), rng.choice(["left", "right"], count)
    ill = np.where((age > 50) ^ (rng.uniform(size=count) < 0.1), "yes", "no")
    return pd.DataFrame({"age": age, "side": side, "ill": ill, "weight": (60 + 0.5 * age + rng.normal(size=count))})


ILL = """
experiment = "learn"
rounds = 4
record_every = 2
checkpoint_every = 2
alone = true
network = {kind = "ring", agents = 2}
shares = {kind = "files", files = {north = "north.csv", south = "south.csv"}}
test = "test.csv"
[columns]
age = {kind = "number", centre = 50, scale = 10, unit = "years", low = 0}
side = {kind = "category", levels = ["left", "right"]}
ill = {kind = "label", levels = ["no", "yes"]}
weight = {kind = "ignore"}
"""
WEIGHT = (
    ILL.replace('"label", levels = ["no", "yes"]', '"ignore"')
    .replace('weight = {kind = "ignore"}', 'weight = {kind = "target", centre = 85, scale = 5, unit = "kg"}')
    .replace("alone = true", 'alone = false\nlikelihood = {kind = "gaussian"}')
)


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """Runs on labels (twice, with other rounds and two seeds), on a number, and on arrays."""
    place = tmp_path_factory.mktemp("played")
    for seed, name in enumerate(("north", "south", "test")):
        rows(40, seed).to_csv(place / f"{name}.csv", index=False)
    for name, text in {"ill": ILL, "weight": WEIGHT}.items():
        inside = text
        for file in ("north", "south", "test"):
            inside = inside.replace(f'"{file}.csv"', f'"{place / file}.csv"')
        (place / f"{name}.toml").write_text(inside)
    settings = {
        "ill": ("ill", [], None),
        "weight": ("weight", [], None),
        "again": ("ill", ["rounds=2", "replicates=2", "alone=false"], None),
        "points": ("ill", ["rounds=2", "alone=false"], "gossip"),
        "hasty": ("ill", ["rounds=1", "alone=false", "held_out=0.25"], "laplace"),
        "pooled": ("ill", ["rounds=25", "alone=false", "held_out=0.25", "precision=float64"], "laplace"),
        "tested": ("ill", ["rounds=25", "alone=false", "precision=float64", f"test={place / 'test.csv'}"], "laplace"),
    }
    for name, (source, changed, rule) in settings.items():
        runs.carry_on(runs.begin(load(str(place / f"{source}.toml"), changed, rule), place / name))
    return place


def test_predictions_are_the_library_s(consilience, played, tmp_path):
    code, out, err = consilience("predict", played / "ill", played / "test.csv", "--agent", "south")
    assert (code, err) == (0, "")
    assert "What south predicts" in out
    assert "the first 10 of 40 rows; --out FILE writes all" in out
    code, out, _ = consilience("predict", played / "ill", played / "test.csv", "--agent", "1", "--json")
    told = json.loads(out)
    assert (code, told["agent"], told["rows"]) == (0, "south", 40)
    fit = Fit(played / "ill")
    mine = fit.predict(fit.read_inputs(played / "test.csv"), agent=1)
    assert list(told["predictions"][0]) == ["prediction", "p_no", "p_yes", "aleatoric", "epistemic"]
    np.testing.assert_array_equal([row["p_yes"] for row in told["predictions"]], mine.p_yes)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_predictions_in_a_file(consilience, played, tmp_path, ending):
    new = rows(30, 9).drop(columns=["ill", "weight"])[["side", "age"]]  # without what is predicted, in another order
    new.to_csv("new.csv", index=False)
    words = ("predict", played / "weight", "new.csv", "--level", "0.5", "--out", f"p.{ending}")
    code, out, err = consilience(*words)
    assert (code, err) == (0, "")
    assert "low to high holds 50 %" in out
    assert f"wrote p.{ending}: 30 rows" in out
    written = pd.read_csv("p.csv") if ending == "csv" else pd.read_parquet("p.parquet")
    fit = Fit(played / "weight")
    mine = fit.predict(fit.read_inputs("new.csv"), level=0.5)
    assert list(written) == ["prediction", "sd", "low", "high", "aleatoric", "epistemic"]
    np.testing.assert_allclose(written["low"], mine.low)
    code, _, err = consilience(*words)
    assert (code, err) == (2, f"error: --out: 'p.{ending}' is there already; --force writes over it\n")
    code, out, _ = consilience(*words, "--force", "--json")
    assert json.loads(out) == {"run": str(played / "weight"), "agent": "north", "level": 0.5, "rows": 30,
                               "wrote": f"p.{ending}"}  # fmt: skip


def test_an_exported_belief_predicts(consilience, played):
    code, out, _ = consilience("export", played / "ill", "--agent", "south", "--out", "b.safetensors")
    assert (code, out) == (0, "wrote b.safetensors: what south believes of 6 parameters, means and sds\n")
    kinds = {
        belief: json.loads(consilience("predict", played / "ill", played / "test.csv", *belief, "--json")[1])
        for belief in (("--belief", "b.safetensors"), ("--agent", "south"))
    }
    first, second = ([row["p_yes"] for row in kind["predictions"]] for kind in kinds.values())
    np.testing.assert_allclose(first, second, atol=1e-5)
    code, _, err = consilience("predict", played / "weight", played / "test.csv", "--belief", "b.safetensors")
    assert code == 2
    assert err.startswith("error: belief: is of another model than ")
    assert err.count("\n") == 1


def test_coefficients_together_and_alone(consilience, played):
    code, out, err = consilience("coefficients", played / "ill")
    assert (code, err) == (0, "")
    for words in ("side = right (against left)", "odds ratio", "north alone", "log odds of yes against no", "years"):
        assert words in out
    told = json.loads(consilience("coefficients", played / "ill", "--agent", "south", "--json")[1])
    mine = Fit(played / "ill").coefficients("south", arm="alone")
    assert [line["mean"] for line in told["alone"]["south"]] == mine.columns["mean"].tolist()
    together = told["together"]
    assert [line["column"] for line in together] == ["(intercept)", "age", "side"]
    assert together[1]["ratio"] == pytest.approx(np.exp(together[1]["mean"]))
    code, out, _ = consilience("coefficients", played / "weight")
    assert code == 0
    assert "mean of weight (kg)" in out
    assert "`consilience run … --set alone=true` adds it" in out
    assert json.loads(consilience("coefficients", played / "weight", "--json")[1])["alone"] is None


def test_points_do_not_say_how_sure_they_are(consilience, played):
    code, out, _ = consilience("predict", played / "points", played / "test.csv")
    assert code == 0
    assert "epistemic is 0, up to rounding" in out
    told = json.loads(consilience("predict", played / "points", played / "test.csv", "--json")[1])
    assert max(row["epistemic"] for row in told["predictions"]) < 1e-6
    code, out, _ = consilience("coefficients", played / "points")
    assert code == 0
    assert "points by this run's rule, which do not say how sure they are" in out
    assert "interval" not in out
    line = json.loads(consilience("coefficients", played / "points", "--json")[1])["together"][1]
    assert line["mean"] is not None
    assert line["sd"] is line["low"] is line["ratio_high"] is None
    code, _, err = consilience("export", played / "points", "--out", "belief.safetensors")
    assert (code, err) == (2, "error: run: was learnt with point weights, which have no sds to export\n")


def test_a_pooled_analysis_says_of_which_rows(consilience, played):
    out = consilience("coefficients", played / "pooled")[1]
    assert "a regression on all rows but the 20 held out (none are with a test file), with the run's prior" in out
    code, out, _ = consilience("coefficients", played / "tested")
    assert code == 0
    assert "means and intervals are those of a regression on everybody's data" in out


def test_an_analysis_that_has_not_come_to_rest_is_not_called_one(consilience, played):
    out = consilience("coefficients", played / "hasty")[1]
    assert "not at rest yet: the next round would move a mean by" in out
    assert "means and intervals are those" not in out


def test_runs_side_by_side(consilience, played):
    code, out, err = consilience("compare", played / "ill", played / "again")
    assert (code, err) == (0, "")
    assert "together: test accuracy" in out
    assert "±" in out
    told = json.loads(consilience("compare", played / "ill", played / "again", "--json")[1])
    assert told["differences"] == {"replicates": [1, 2], "rounds": [4, 2], "alone": [True, False]}
    first, second = told["scores"]["together"]["test accuracy"]
    record = Fit(played / "again").record
    each = record.each("together", "pooled_test_accuracy")[-1].mean(1)
    assert second["value"] == pytest.approx(each.mean())
    assert second["standard_error"] == pytest.approx(abs(each[0] - each[1]) / 2)
    assert first["standard_error"] is None
    assert told["scores"]["alone"]["test nll"][1] is None


@pytest.fixture(scope="module")
def theorem(tmp_path_factory):
    place = tmp_path_factory.mktemp("theorem")
    runs.carry_on(runs.begin(load("theorem-1", ["rounds=4", "replicates=2"]), place / "theorem"))
    return place / "theorem"


def test_runs_that_cannot_be_compared(consilience, played, theorem):
    for words, said in {
        (played / "ill",): "RUN: two or more runs are compared, got 1",
        (played / "ill", played / "ill"): "RUN: a run is there twice",
        (played / "ill", "nowhere"): "run: 'nowhere' is not a run folder, it has no config.toml",
        (played / "ill", theorem): "cannot be compared: theorem-1 has no scores of predictions",
    }.items():
        code, out, err = consilience("compare", *words)
        assert (code, out) == (2, "")
        assert said in err
        assert err.count("\n") == 1


def test_bad_input_is_one_line_and_nothing_is_written(consilience, played, theorem, tmp_path):
    rows(5, 1).drop(columns="age").to_csv("no_age.csv", index=False)
    rows(5, 1).assign(side="up").to_csv("up.csv", index=False)
    rows(5, 1).to_csv("mine.csv", index=False)
    np.savez("x.npz", x=np.ones((3, 2)))
    (tmp_path / "damaged.safetensors").write_bytes(b"12345678")
    (tmp_path / "folder.csv").mkdir()
    shutil.copytree(played / "ill", "begun")
    for file in tmp_path.glob("begun/checkpoint*"):
        file.unlink()
    shutil.copytree(played / "ill", "older")
    (tmp_path / "older" / "checkpoint.safetensors").unlink()
    before = sorted(tmp_path.rglob("*"))
    ill, new = played / "ill", played / "test.csv"
    for words, said in {
        ("predict", ill, new, "--agent", "west"): "agent: no agent 'west'; known: north, south",
        ("predict", ill, new, "--agent", "7"): "agent: must be a name, or a number from 0 to 1, got 7",
        ("predict", "begun", new): "run: 'begun' has learnt nothing yet",
        ("predict", "older", new): "'checkpoint-before.safetensors' is of round 2, before the last",
        ("predict", theorem, new): "run: 'theorem-1' learns no model that predicts",
        ("predict", tmp_path, new): "is not a run folder",
        ("predict", ill, "no_age.csv", "--out", "p.csv"): "FILE: cannot read 'no_age.csv': must have a column 'age'",
        ("predict", ill, "up.csv"): "line 2, column 'side' must be one of 'left', 'right', got 'up'",
        ("predict", ill, "nowhere.csv"): "FILE: cannot read 'nowhere.csv': No such file or directory",
        ("predict", ill, "x.npz"): "a table's file must end in .csv or .parquet, got '.npz'",
        ("predict", ill, new, "--out", "no/p.csv"): "--out: 'no' is no folder",
        ("predict", ill, new, "--out", "/proc/p.csv"): "--out: nothing can be written in '/proc': ",
        ("predict", ill, new, "--out", "folder.csv"): "--out: 'folder.csv' is a folder",
        ("predict", ill, new, "--out", "p.xlsx"): "--out: must end in .csv or .parquet, got 'p.xlsx'",
        ("predict", ill, "mine.csv", "--out", "mine.csv", "--force"): "--out: 'mine.csv' is what is read",
        ("predict", ill, new, "--level", "90"): "level: must lie between 0 and 1, got 90.0",
        ("predict", ill, new, "--belief", "mine"): "--belief: must be pooled, own or a .safetensors file, got 'mine'",
        ("predict", ill, new, "--belief", "damaged.safetensors"): "it is not a safetensors file",
        ("predict", ill, new, "--belief", "mine.csv"): "--belief: cannot read 'mine.csv'",
        ("export", ill, "--out", "b.txt"): "--out: must end in .safetensors, got 'b.txt'",
        ("export", ill, "--out", "b.safetensors", "--belief", "mine"): "--belief: must be pooled or own, got 'mine'",
        ("export", ill, "--out", "b.safetensors", "--agent", "w"): "agent: no agent 'w'",
        ("export", theorem, "--out", "b.safetensors"): "run: 'theorem-1' learns no model that predicts",
        ("coefficients", theorem): "run: 'theorem-1' learns no model that predicts",
        ("coefficients", ill, "--agent", "w"): "agent: no agent 'w'",
    }.items():
        code, out, err = consilience(*words)
        assert said in err
        assert (code, out, err.count("\n")) == (2, "", 1)
    assert sorted(tmp_path.rglob("*")) == before


def test_arrays_of_a_run_on_arrays(consilience, tmp_path):
    import consilience as cs

    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 2, 2))
    fit = cs.learn(cs.mlp((2, 2), 2, (3,)), [(x, x.sum((1, 2)) > 0)], cs.complete(1), rounds=1, folder=tmp_path / "run")
    np.savez("new.npz", x=x[:7])
    told = json.loads(consilience("predict", "run", "new.npz", "--json")[1])["predictions"]
    np.testing.assert_array_equal([row["p_True"] for row in told], fit.predict(x[:7]).p_True)
    np.savez("wide.npz", x=x[:7, :, :1])
    np.savez("other.npz", y=x)
    rows(5, 1).to_csv("table.csv", index=False)
    for file, said in {
        "wide.npz": "FILE: 'wide.npz': x must be 2 × 2 for each row, as in learning, got 2 × 1",
        "other.npz": "FILE: cannot read 'other.npz': must have an array x, it has y",
        "table.csv": "must be an .npz archive with an array x: the run learnt from arrays, not from a table",
    }.items():
        code, _, err = consilience("predict", "run", file)
        assert said in err
        assert (code, err.count("\n")) == (2, 1)
    code, _, err = consilience("coefficients", "run")
    assert (code, err) == (
        2,
        "error: model: must be an mlp without hidden layers to have coefficients, got hidden = [3]\n",
    )
