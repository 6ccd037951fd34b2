"""A user's own files: who learns from which row, who is judged by which, and what is refused."""

import csv
import sys

import jax
import numpy as np
import pytest

from consilience.command.main import main
from consilience.engines.simulate import Simulation
from consilience.errors import InputError
from consilience.experiments import arms, load
from consilience.experiments.learn.arms import setting_of
from consilience.runs import run

SIZES = {"north": 3, "east": 12, "south": 1, "west": 40}
HEAD = """experiment = "learn"
rounds = 3
record_every = 1
checkpoint_every = 1
samples = 4
[learner]
epochs = 2
batch = 8
[network]
kind = "ring"
agents = AGENTS
[columns.age]
kind = "number"
centre = 50
scale = 10
[columns.sex]
kind = "category"
levels = ["f", "m"]
[columns.ill]
kind = "label"
levels = ["no", "yes"]
"""


def rows_of(seed, count):
    """Lines of a table, each with an age of its own."""
    rng = np.random.default_rng(seed)
    ages = np.round(50 + 10 * rng.normal(size=count), 4)
    return [f"{age},{rng.choice(['f', 'm'])},{'yes' if age > 50 else 'no'}" for age in ages]


def files(folder, **content):
    """A description and a file for each agent; `content` are lines in the place of somebody's."""
    tables = {name: ["age,sex,ill", *rows_of(number, size)] for number, (name, size) in enumerate(SIZES.items())}
    named = ""
    for name, lines in {**tables, **content}.items():
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n" if lines else "")
        if name in SIZES:
            named += f'{name} = "{folder / name}.csv"\n'
    text = HEAD.replace("AGENTS", str(len(SIZES))) + f'[shares]\nkind = "files"\n[shares.files]\n{named}'
    (folder / "study.toml").write_text(text)
    return str(folder / "study.toml")


def table_file(folder, partition):
    """A description of one table whose rows are dealt out."""
    (folder / "all.csv").write_text("\n".join(["age,sex,ill", *rows_of(0, 60)]) + "\n")
    text = HEAD.replace("AGENTS", "3") + f'[shares]\nkind = "table"\nfile = "{folder / "all.csv"}"\n{partition}\n'
    (folder / "study.toml").write_text(text)
    return str(folder / "study.toml")


def test_rows_that_are_held_out_are_nobodys_to_learn_from(tmp_path):
    setting = setting_of(load(files(tmp_path), ["seed=5", "replicates=3"]))
    drawn = []
    for seed, held in setting.task.held.items():
        kept = setting.task.kept[seed]
        assert not ((held.owner >= 0) & (kept.owner >= 0)).any()
        together = np.maximum(held.owner, kept.owner)  # −1 is nobody
        np.testing.assert_array_equal(together, setting.held.owner)  # who had it learns from it or is judged by it
        assert held.sizes().tolist() == [2, 10, 1, 32]
        assert kept.sizes().tolist() == [1, 2, 0, 8]
        drawn.append(kept.owner.tobytes())
    assert len(set(drawn)) == 3
    alone = setting_of(load(files(tmp_path), ["seed=6"]))
    np.testing.assert_array_equal(alone.task.kept[6].owner, setting.task.kept[6].owner)


def test_what_is_held_out_changes_nothing_that_is_learnt(tmp_path):
    """Other values in the rows that somebody is judged by: every belief has the same bits."""
    config = load(files(tmp_path))
    setting = setting_of(config)
    with jax.enable_x64(False):
        beliefs = []
        for spoilt in (False, True):
            arm = arms(config)["together"]
            if spoilt:
                data = setting.task.data(np.arange(4), [0])
                rows = data.kept.order[: int(data.kept.size.sum())]
                inputs = np.array(data.inputs)
                inputs[rows] = 1e3
                arm = arm._replace(data=lambda *_, data=data, inputs=inputs: data._replace(inputs=inputs))
            simulation = Simulation(arm, [0])
            progress, metrics = simulation.play(1, [3], [True], simulation.start())
            beliefs.append((jax.tree.map(np.asarray, simulation.agents(progress).public), metrics["held_out_nll"]))
    for ours, theirs in zip(beliefs[0][0], beliefs[1][0], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert not np.array_equal(np.asarray(beliefs[0][1]), np.asarray(beliefs[1][1]), equal_nan=True)


def test_with_a_test_file_too_it_is_judged_both_ways(tmp_path):
    source = files(tmp_path, test=["ill,age,sex", "no,30,f", "yes,70,m"])
    folder = run.begin(load(source, [f"test={tmp_path / 'test.csv'}", "held_out=0.2", "alone=true"]), tmp_path / "run")
    summary = run.carry_on(folder)
    with (folder / "record.csv").open(newline="") as file:
        names = next(csv.reader(file))
    for start in ("test_", "pooled_test_", "held_out_", "pooled_held_out_"):
        assert f"{start}accuracy" in names
    assert summary["tested_on"] == "a test set of 2 rows"
    sent = {arm: told["bytes_sent"] for arm, told in summary["arms"].items()}
    assert sent == {"together": 3 * 8 * 2 * 4 * 6, "alone": 0}  # rounds, links, numbers, bytes, coefficients
    only = setting_of(load(source, [f"test={tmp_path / 'test.csv'}"]))
    assert only.task.kept is None
    assert only.task.held[0].sizes().tolist() == list(SIZES.values())


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize(
    "partition",
    [
        pytest.param("", marks=pytest.mark.soak),
        pytest.param('partition = {kind = "iid"}', marks=pytest.mark.soak),
        pytest.param('partition = {kind = "dirichlet", alpha = 0.7}', marks=pytest.mark.soak),
    ],
)
def test_a_seed_has_the_same_rows_alone_and_in_company(partition, tmp_path):
    source = table_file(tmp_path, partition) if partition else files(tmp_path)
    tables = []
    for name, seeds in (("alone", ["seed=4"]), ("company", ["seed=3", "replicates=4"])):
        run.begin(load(source, seeds), tmp_path / name)
        run.carry_on(tmp_path / name)
        with (tmp_path / name / "record.csv").open(newline="") as file:
            tables.append(list(csv.DictReader(file)))
    alone, company = tables
    of_four = [{key: text for key, text in row.items() if key != "seed"} for row in company if row["seed"] == "4"]
    assert of_four == alone


def test_an_agent_may_hold_no_file(tmp_path):
    source = files(tmp_path)
    config = load(source, ['shares.without_data=["nobody"]', "network.agents=5"])
    setting = setting_of(config)
    assert setting.names == (*SIZES, "nobody")
    assert setting.task.held[0].sizes().tolist()[-1] == 0
    with pytest.raises(InputError, match=r"^shares.without_data: 'north' has a file$"):
        setting_of(load(source, ['shares.without_data=["north"]']))


def command(monkeypatch, capfd, *words):
    monkeypatch.setattr(sys, "argv", ["consilience", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code, *capfd.readouterr()


BAD = {
    "other columns": ({"east": ["age,ill", "40,no"]}, [], "must have a column 'sex'"),
    "one more column": ({"east": ["age,sex,ill,x", "40,f,no,1"]}, [], "column 'x' is not described"),
    "unknown level": ({"east": ["age,sex,ill", "40,f,no", "41,d,no"]}, [], "line 3, column 'sex'"),
    "unknown label": ({"east": ["age,sex,ill", "40,f,maybe"]}, [], "line 2, column 'ill'"),
    "text for a number": ({"east": ["age,sex,ill", "old,f,no"]}, [], "line 2, column 'age'"),
    "empty": ({"east": []}, [], "east.csv"),
    "no rows": ({"east": ["age,sex,ill"]}, [], "must have rows"),
    "NaN": ({"east": ["age,sex,ill", "nan,f,no"]}, [], "line 2, column 'age'"),
    "no value": ({"east": ["age,sex,ill", ",f,no"]}, [], "has no value"),
    "agents": ({}, ["network.agents=3"], "network: must have an agent for each of the 4 shares, got 3 agents"),
    "test label": ({"t": ["age,sex,ill", "40,f,perhaps"]}, ["test=FOLDER/t.csv"], "test: cannot read"),
    "not judged": ({}, ["held_out=0"], "held_out: there is no test file"),
    "gaussian labels": ({}, ["likelihood.kind=gaussian"], "likelihood: gaussian predicts a number"),
    "poisson labels": ({}, ["likelihood.kind=poisson"], "likelihood: poisson predicts a number"),
    "no file": ({}, ["shares.files.east=FOLDER/none.csv"], "none.csv"),
    "given model": ({}, ["model.kind=given", "model.network=3"], "model: was given in Python"),
    "given likelihood": ({}, ["likelihood.kind=given", "likelihood.likelihood=3"], "likelihood: was given in Python"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_one_line_and_leaves_nothing(what, tmp_path, monkeypatch, capfd):
    content, settings, said = BAD[what]
    source = files(tmp_path, **content)
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    words = [word for text in settings for word in ("--set", text.replace("FOLDER", str(tmp_path)))]
    code, out, err = command(monkeypatch, capfd, "run", source, *words)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert said in err
    assert err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_learn_by_its_name_says_what_is_lacking(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    code, out, err = command(monkeypatch, capfd, "run", "learn")
    assert (code, out) == (2, "")
    assert err.startswith("error: shares: are required")
    assert not list(tmp_path.iterdir())


def test_a_label_that_one_agent_knows_is_allowed_and_said(tmp_path, monkeypatch, capfd):
    files(tmp_path, north=["age,sex,ill", "40,f,perhaps", "30,m,no"])
    monkeypatch.chdir(tmp_path)
    names = [f"{name}.csv" for name in SIZES]
    code, out, _ = command(monkeypatch, capfd, "new", "mine", *names, "--label", "ill")
    assert code == 0
    assert "column 'ill': only 'north' has 'perhaps'" in " ".join(out.split())


def test_archives_of_different_shapes(tmp_path):
    x = np.zeros((4, 2), np.float32)
    for name, own in (("a", x), ("b", x[:, :1]), ("c", x.astype(np.uint8))):
        np.savez(tmp_path / f"{name}.npz", x=own, y=np.array(["p", "q"] * 2))
    np.savez(tmp_path / "t.npz", x=x, y=np.array(["p", "r"] * 2))
    np.savez(tmp_path / "n.npz", x=x, y=np.ones(4))
    for names, test, said in (
        ("ab", None, r"^shares.files: inputs must be alike, 'a' has float32\[2\], 'b' has float32\[1\]$"),
        ("ac", None, r"^shares.files: inputs must be alike, 'a' has float32\[2\], 'c' has uint8\[2\]$"),
        ("aa", "t.npz", r"^test: '.*t.npz' has a label that no share has, 'r'$"),
        ("aa", "n.npz", r"^test: '.*n.npz' has numbers to predict, the shares have labels$"),
        ("na", None, r"^shares.files: targets must be of one kind"),
    ):
        named = ", ".join(f'{name}{k} = "{tmp_path / name}.npz"' for k, name in enumerate(names))
        text = HEAD.split("[columns.age]", maxsplit=1)[0].replace("AGENTS", "2")
        text += f'[shares]\nkind = "files"\nfiles = {{{named}}}\n'
        (tmp_path / "study.toml").write_text((f'test = "{tmp_path / test}"\n' if test else "") + text)
        with pytest.raises(InputError, match=said.replace("'a'", "'a0'").replace("'b'", "'b1'").replace("'c'", "'c1'")):
            setting_of(load(str(tmp_path / "study.toml")))


def test_raw_columns_are_noted(tmp_path, monkeypatch, capfd):
    source = files(tmp_path)
    monkeypatch.chdir(tmp_path)
    code, out, _ = command(monkeypatch, capfd, "run", source, "--set", "columns.age.centre=0", "--set", "rounds=1")
    assert code == 0
    assert "note: 'age' has a mean of 5" not in out  # five of its scale: near enough
    words = ["--set", "columns.age.centre=0", "--set", "columns.age.scale=1", "--set", "rounds=1"]
    code, out, _ = command(monkeypatch, capfd, "run", source, *words)
    assert code == 0
    assert "note: 'age' has a mean of 5" in out
