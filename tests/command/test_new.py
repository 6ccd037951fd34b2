"""`consilience new`: what it writes fits the files that it was made from, and where they differ is said."""

import datetime
import json
import sys
import tomllib

import numpy as np
import pandas as pd
import pytest
from pydantic import TypeAdapter

from consilience.command import main as cli
from consilience.data.tables import read_rows
from consilience.described.networks import NetworkConfig
from consilience.task.columns import Columns, features


@pytest.fixture
def consilience(capsys, monkeypatch, tmp_path):
    """Run the command in a new folder; gives (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["consilience", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return call


def hospital(rows, seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "patient": [f"{seed}-{n}" for n in range(rows)],
            "mean radius": rng.normal(14, 3, rows),
            "age": rng.integers(20, 90, rows),
            "side": rng.choice(["left", "right", "none"], rows),
            "smoker": rng.choice([True, False], rows),
            "site": "x",
            "diagnosis": rng.choice(["benign", "malignant"], rows),
            "visits": rng.poisson(3, rows),
        }
    )


@pytest.fixture
def hospitals(tmp_path):
    made = {name: hospital(60, seed) for seed, name in enumerate(("a", "b", "c"))}
    for name in ("a", "b"):
        made[name].assign(constant=3).to_csv(tmp_path / f"{name}.csv", index=False)
    made["c"].to_parquet(tmp_path / "c.parquet", index=False)
    return made


def columns_of(described):
    return TypeAdapter(Columns).validate_python(described["columns"])


FILES = ("a.csv", "b.csv", "c.parquet")


def test_what_is_written_fits_the_files(consilience, hospitals, tmp_path):
    code, out, err = consilience("new", "cancer", *FILES, "--label", "diagnosis")
    assert (code, err) == (0, "")
    assert "consilience run cancer.toml" in out
    described = tomllib.loads((tmp_path / "cancer.toml").read_text())
    columns = columns_of(described)
    assert {name: column.kind for name, column in columns.items()} == {
        "patient": "ignore",
        "mean radius": "number",
        "age": "number",
        "side": "category",
        "smoker": "category",
        "site": "ignore",
        "constant": "ignore",
        "diagnosis": "label",
        "visits": "number",
    }
    assert columns["side"].levels == ["left", "none", "right"]
    assert columns["diagnosis"].levels == ["benign", "malignant"]
    together = pd.concat(hospitals.values())
    for name in ("mean radius", "age", "visits"):
        assert columns[name].centre == pytest.approx(together[name].mean(), abs=0.01 * together[name].std())
        assert columns[name].scale == pytest.approx(together[name].std(ddof=0), rel=0.01)
    assert described["experiment"] == "learn"
    assert described["shares"] == {"kind": "files", "files": {"a": "a.csv", "b": "b.csv", "c": "c.parquet"}}
    assert described["likelihood"] == {"kind": "categorical"}
    assert described["model"] == {"kind": "mlp", "hidden": []}
    assert TypeAdapter(NetworkConfig).validate_python(described["network"]).build().agents == 3
    rows = [read_rows(tmp_path / file, columns) for file in described["shares"]["files"].values()]
    inputs = np.concatenate([each.inputs for each in rows])
    assert inputs.shape == (180, len(features(columns)))
    numbers = [k for k, feature in enumerate(features(columns)) if feature.level is None]
    np.testing.assert_allclose(inputs[:, numbers].mean(0), 0, atol=0.02)
    np.testing.assert_allclose(inputs[:, numbers].std(0), 1, atol=0.02)
    assert "column 'constant': 'c' has no such column: not used" in out
    assert "column 'site': it is 'x' in every row: not used" in out
    assert "column 'patient': every row has another text" in out


def test_a_number_and_a_count_to_predict(consilience, hospitals, tmp_path):
    assert consilience("new", "radius", *FILES, "--target", "mean radius", "-q") == (0, "", "")
    described = tomllib.loads((tmp_path / "radius.toml").read_text())
    assert described["likelihood"]["kind"] == "gaussian"
    assert columns_of(described)["mean radius"].scale == pytest.approx(3, rel=0.2)
    assert columns_of(described)["diagnosis"].kind == "category"
    assert consilience("new", "visits.toml", *FILES, "--target", "visits", "--counts")[0] == 0
    described = tomllib.loads((tmp_path / "visits.toml").read_text())
    assert described["likelihood"]["kind"] == "poisson"
    assert described["columns"]["visits"] == {"kind": "target", "counts": True}
    assert read_rows(tmp_path / "a.csv", columns_of(described)).targets.tolist() == hospitals["a"]["visits"].tolist()


def test_one_table_with_owners(consilience, hospitals, tmp_path):
    together = pd.concat(frame.assign(who=name) for name, frame in hospitals.items()).sample(frac=1, random_state=0)
    together.loc[together["who"] == "b", "age"] *= 12
    together.to_csv(tmp_path / "all.csv", index=False)
    code, out, _ = consilience("new", "all", "all.csv", "--label", "diagnosis", "--owner", "who", "--json")
    assert code == 0
    told = json.loads(out)
    assert {agent: each["rows"] for agent, each in told["agents"].items()} == {"a": 60, "b": 60, "c": 60}
    assert next(note for note in told["notes"] if "another unit" in note).startswith("column 'age': 'b' has ")
    described = tomllib.loads((tmp_path / "all.toml").read_text())
    assert described["shares"] == {"kind": "table", "file": "all.csv", "owner": "who"}
    assert described["network"]["agents"] == 3
    assert "who" not in described["columns"]
    rows = read_rows(tmp_path / "all.csv", columns_of(described), owner="who")
    assert rows.owner_names == tuple(told["agents"])
    np.testing.assert_array_equal(rows.owners, together["who"].map({"a": 0, "b": 1, "c": 2}))


def notes(consilience, tmp_path, frames, *words):
    for name, made in frames.items():
        made.to_csv(tmp_path / f"{name}.csv", index=False)
    code, out, err = consilience("new", "n", *(f"{name}.csv" for name in frames), *words, "--json", "--force")
    assert (code, err) == (0, "")
    columns = columns_of(tomllib.loads((tmp_path / "n.toml").read_text()))
    return json.loads(out)["notes"], columns


def test_a_column_under_another_name_is_noticed(consilience, tmp_path):
    frames = {name: hospital(20, seed) for seed, name in enumerate(("a", "b", "c"))}
    frames["b"] = frames["b"].rename(columns={"mean radius": "Mean_Radius", "age": "years"})
    found, _ = notes(consilience, tmp_path, frames, "--label", "diagnosis")
    said = [note for note in found if "one name" in note]
    assert said == ["column 'mean radius': 'b' has 'Mean_Radius': if that is the same, give it one name"]


def test_where_files_differ(consilience, tmp_path):
    frames = {name: hospital(50, seed) for seed, name in enumerate(("a", "b", "c"))}
    assert not [note for note in notes(consilience, tmp_path, frames, "--label", "diagnosis")[0] if "'a'" in note]
    frames["a"] = frames["a"].drop(columns="age")
    frames["b"]["mean radius"] *= 100
    frames["c"].loc[3, "side"] = "both"
    frames["c"].loc[4, "diagnosis"] = "unclear"
    frames["b"].loc[5:9, "visits"] = np.nan
    found, columns = notes(consilience, tmp_path, frames, "--label", "diagnosis")
    for said in (
        "column 'age': 'a' has no such column: not used",
        "column 'side': only 'c' has 'both'",
        "column 'diagnosis': only 'c' has 'unclear'",
        "column 'visits': 5 of 150 values are missing: say what they mean, or they are refused",
    ):
        assert said in found
    assert [note for note in found if note.startswith("column 'mean radius': 'b' has ")]
    assert not [note for note in found if "one name" in note]
    assert len([note for note in found if "another unit" in note]) == 1
    assert columns["age"].kind == "ignore"
    text = (tmp_path / "n.toml").read_text()
    assert '\n# missing = "centre"' in text
    with_missing = columns_of(tomllib.loads(text.replace('# missing = "centre"', 'missing = "centre"')))
    for name in frames:
        read_rows(tmp_path / f"{name}.csv", with_missing)


def test_kinds_that_need_a_remark(consilience, tmp_path):
    made = hospital(300, 0)
    made["number"] = range(300)
    made["mixed"] = ["1", "2", "many"] * 100
    made["dose"] = [f"{n}.5" for n in range(299)] + ["5 mg"]
    made["lab"] = ["NA"] * 3 + [f"{n / 7}" for n in range(297)]
    made["empty"] = np.nan
    made["text"] = [f"some {n % 200}" for n in range(300)]
    made["huge"] = [1e300, -1e300] * 150
    made["grade"] = ["1", "2.0", "1.0"] * 100
    found, columns = notes(consilience, tmp_path, {"a": made}, "--label", "diagnosis")
    kinds = {name: column.kind for name, column in columns.items()}
    assert [kinds[name] for name in ("number", "mixed", "dose", "lab", "empty", "text", "huge", "grade")] == [
        *("number", "category", "ignore", "number", "ignore", "ignore", "ignore", "number")
    ]
    for said in (
        "column 'number': whole numbers, all different",
        "column 'mixed': it has text among its numbers, 'many' in 'a': taken for a category",
        "column 'dose': it has text among its numbers, '5 mg' in 'a': not used as it is",
        "column 'lab': it has 'NA': where that says that a value is missing, leave the cell empty",
        "column 'empty': it has no values: not used",
        "column 'text': it has over 100 different texts: not used as it is",
        "column 'huge': its numbers are too large",
    ):
        assert [note for note in found if note.startswith(said)], said


def test_levels_written_in_two_ways_are_one(consilience, tmp_path):
    first, second = hospital(40, 0), hospital(40, 1)
    first["grade"], second["grade"] = ["1", "2"] * 20, ["1.0", "2.0"] * 20
    first["old"], second["old"] = ["true", "false"] * 20, ["True", "False"] * 20
    _, columns = notes(consilience, tmp_path, {"a": first, "b": second}, "--label", "grade")
    assert columns["grade"].levels == ["1", "2"]
    assert [level.lower() for level in columns["old"].levels] == ["false", "true"]
    for name in ("a", "b"):
        assert read_rows(tmp_path / f"{name}.csv", columns).targets.tolist() == [0, 1] * 20


def test_words_of_every_kind_are_written_as_toml(consilience, tmp_path):
    made = pd.DataFrame({'a "b"\\': ['x"', "y\\", "é\U0001f600"] * 9, "c\nd": range(27), "é": ["=", "#"] * 13 + ["]"]})
    _, columns = notes(consilience, tmp_path, {"it's 1": made}, "--label", "é")
    assert list(columns) == ['a "b"\\', "c\nd", "é"]
    assert len(read_rows(tmp_path / "it's 1.csv", columns).inputs) == 27


def test_a_column_of_dates_is_left_out(consilience, hospitals, tmp_path):
    hospitals["c"].assign(day=datetime.date(2020, 1, 1)).to_parquet(tmp_path / "c.parquet", index=False)
    code, out, _ = consilience("new", "n", "c.parquet", "--label", "diagnosis")
    assert code == 0
    assert "column 'day': it holds date32[day]: not used" in out
    columns = columns_of(tomllib.loads((tmp_path / "n.toml").read_text()))
    assert len(read_rows(tmp_path / "c.parquet", columns).inputs) == 60


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (FILES, "--label, --target: name the one column that is predicted"),
        ((*FILES, "--label", "diagnosis", "--target", "age"), "--label, --target: name the one column"),
        ((*FILES, "--label", "diagnosis", "--counts"), "--counts: says what a --target is, got a --label"),
        ((*FILES, "--label", "diagnosis", "--owner", "side"), "--owner: is for one file, got 3 files"),
        (("a.csv", "--label", "side", "--owner", "side"), "--owner: 'side' is what is predicted"),
        (("a.csv", "--label", "side", "--owner", "whose"), "files: cannot read 'a.csv': must have a column 'whose'"),
        ((*FILES, "--label", "Diagnosis"), "--label: no column 'Diagnosis', there are 'patient', 'mean radius'"),
        ((*FILES, "--label", "patient"), "--label: column 'patient' must have at most 100 levels, got 180"),
        ((*FILES, "--label", "site"), "--label: column 'site' must have at least 2 levels, it is 'x' everywhere"),
        ((*FILES, "--target", "side"), "--target: column 'side' must hold numbers, got 'left' in 'a'"),
        ((*FILES, "--target", "mean radius", "--counts"), "--counts: column 'mean radius' must hold whole numbers"),
        (("a.csv", "--target", "constant"), "--target: column 'constant' must differ and not be too large, got 3 to 3"),
        (("a.csv", "a.csv", "--label", "side"), "FILE: each must have a name of its own"),
        (("none.csv", "--label", "side"), "files: cannot read 'none.csv': No such file or directory"),
        (("a.txt", "--label", "side"), "files: cannot read 'a.txt': a table's file must end in .csv or .parquet"),
    ],
)
def test_what_is_refused(consilience, hospitals, tmp_path, words, message):
    code, out, err = consilience("new", "n", *words)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {message}")
    assert err.count("\n") == 1
    assert not (tmp_path / "n.toml").exists()


def test_nothing_is_written_over(consilience, hospitals, tmp_path):
    (tmp_path / "n.toml").write_text("mine")
    code, _, err = consilience("new", "n", *FILES, "--label", "diagnosis")
    assert (code, err) == (2, "error: NAME: 'n.toml' is there already; --force writes over it\n")
    assert (tmp_path / "n.toml").read_text() == "mine"
    assert consilience("new", "n", *FILES, "--label", "diagnosis", "--force")[0] == 0
    assert consilience("new", "n", *FILES, "--label", "diagnosis", "--out", "sub/folder")[0] == 0
    assert (tmp_path / "sub" / "folder" / "n.toml").exists()


def test_nothing_to_learn_from(consilience, tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,a\n1,b\n")
    code, _, err = consilience("new", "n", "a.csv", "--label", "y")
    assert code == 2
    assert err.startswith("error: FILE: no column is left to predict 'y' from; column 'x': it is '1' in every row")
