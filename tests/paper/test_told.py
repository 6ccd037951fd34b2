"""What a run tells outlives its folder: its file holds all that claims and figures ask; damaged ones are refused."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes

from consilience.command.main import main
from consilience.errors import InputError
from consilience.experiments import load
from consilience.files.sealed import sealed
from consilience.paper import Part, claims, document, plays, reproduce, told_file
from consilience.paper.from_run import told_by
from consilience.paper.parts import PARTS
from consilience.paper.plays import Play
from consilience.paper.reproduce import due, kept, tell, told_in
from consilience.runs import run

REGRESSION = Play("linear-regression", "linear-regression", ("rounds=20", "replicates=2", "test_samples=50"))
TINY = ("rounds=2", "record_every=1", "model.hidden=[4]", "learner.epochs=1", "alone=false", "samples=2")
DIGITS = Play("digits", "star-digits", (*TINY, "confusion=true", "replicates=2", "learner.sd_rate=1.23456789"))
LATER = Play("later", "star-digits", (*TINY, "seed=7"))


def asked(runs):
    """What claims and figures can ask of a run about labels."""
    one = runs["digits"]
    yield claims.Claim("x", "accuracy", "–", f"{one.last():.4%}", None, DIGITS.command())
    yield claims.Claim("x", "mistake", "–", str(one.commonest_mistake("edges")), None, DIGITS.command())


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A regression and a run about labels, finished."""
    folder = tmp_path_factory.mktemp("paper")
    for play in (REGRESSION, DIGITS):
        run.begin(load(play.experiment, play.settings), folder / play.name, play.command())
        run.carry_on(folder / play.name)
    return folder


@pytest.fixture
def out(played, tmp_path, monkeypatch):
    monkeypatch.setattr(plays, "LINEAR_REGRESSION", REGRESSION)
    return shutil.copytree(played, tmp_path / "out")


FIRST = Part("1", "quick", (REGRESSION,), (claims.linear_regression,))
SECOND = Part("2", "labels", (DIGITS,), (asked,))
THIRD = Part("3", "not there", (DIGITS, LATER), (asked,))


def test_the_file_holds_the_very_value_that_was_told(out):
    for play in (REGRESSION, DIGITS):
        told = told_by(play.name, out / play.name)
        told_file.write(told, out / "x.json")
        again = told_file.read(out / "x.json")
        assert told_file.values_of(again) == told_file.values_of(told)
        for name in ("rounds", "by_seed", "by_agent", "counts"):
            np.testing.assert_array_equal(getattr(again, name), getattr(told, name))
        assert again.facts["seeds"] == [0, 1]
        assert {"command", "hours", "versions", "machine"} <= set(again.facts)


def test_what_is_told_is_what_was_recorded_to_six_digits(out):
    told = kept(due([SECOND], out)[0])
    _, record = run.recorded(out / "digits")
    np.testing.assert_allclose(told.by_agent, record.select("cooperating", "accuracy"), rtol=1e-5)
    np.testing.assert_allclose(told.by_seed, record.each("cooperating", "accuracy").mean(2), rtol=1e-5)
    confidence = record.select("cooperating", "confidence_3")
    np.testing.assert_allclose(told.confidence("3", "centre"), confidence[:, 0], rtol=1e-5)
    np.testing.assert_allclose(told.confidence("3", "edges"), confidence[:, 1:].mean(1), rtol=1e-5)
    of_3_as_8 = record.select("cooperating", "3_taken_for_8")[-1]
    assert told.taken_for("3", "8", "edges") == pytest.approx(of_3_as_8[1:].mean(), abs=1e-6)
    np.testing.assert_allclose(sum(told.confusions["centre"].T), 1, rtol=1e-5)


def test_a_finished_run_counts_without_its_folder(out):
    found = tell([FIRST, SECOND], out)
    for play in (REGRESSION, DIGITS):
        shutil.rmtree(out / play.name)
    assert [(one.finished, one.done) for one in due([FIRST, SECOND], out)] == [(True, 20), (True, 2)]
    assert tell([FIRST, SECOND], out).claims == found.claims
    assert not (out / "digits").exists()


def test_settings_are_kept_to_the_last_digit(out):
    kept(due([SECOND], out)[0])
    other = DIGITS._replace(settings=(*DIGITS.settings[:-1], "learner.sd_rate=1.23457"))
    assert due([SECOND], out)[0].finished
    with pytest.raises(InputError, match=r"digits\.json' is not the run of `consilience run star-digits .*; move it"):
        due([SECOND._replace(plays=(other,))], out)


def test_where_the_data_lay_is_nobody_elses_business(out, tmp_path):
    config = load(LATER.experiment, LATER.settings).model_copy(update={"data_dir": tmp_path})
    run.begin(config, out / "later")
    run.carry_on(out / "later")
    kept(due([THIRD], out)[1])
    assert str(tmp_path) not in (out / "later.json").read_text()


def test_parts_that_wait_for_a_run_are_left_out_and_named(out):
    found = tell([FIRST, SECOND, THIRD], out)
    assert found.missing == {"3": ["later"]}
    assert len(found.claims) == 4
    assert len(json.loads((out / "paper.json").read_text())) == 4
    run.begin(load(LATER.experiment, LATER.settings), out / "later")
    assert tell([THIRD], out).missing == {"3": ["later"]}, "begun is not finished"


def test_every_kind_of_damage_is_refused_by_name(out):
    kept(due([FIRST], out)[0])
    file = told_in(out / REGRESSION.name)
    good = file.read_text()
    for damaged in (good.replace("0.", "1.", 1), good[: len(good) // 2], "", "[]", "NaN", "{}", "\x00"):
        file.write_text(damaged)
        with pytest.raises(InputError, match=r"linear-regression\.json' is damaged, it does not have its checksum"):
            due([FIRST], out)
    for foreign in ({"rounds": [1]}, {**told_file.values_of(kept_from(good, file)), "by_seed": [[1], [1, 2]]}):
        file.write_text(json.dumps(sealed(foreign)))
        with pytest.raises(InputError, match=r"linear-regression\.json' is not what a run tells"):
            due([FIRST], out)
    file.write_text(json.dumps(sealed({**json_of(good), "configuration": {"experiment": "linear-regresion"}})))
    with pytest.raises(InputError, match=r"linear-regression\.json': experiment: unknown 'linear-regresion'"):
        due([FIRST], out)
    file.unlink()
    file.mkdir()
    with pytest.raises(InputError, match=r"cannot read '.*linear-regression\.json': Is a directory"):
        due([FIRST], out)


def kept_from(text, file):
    file.write_text(text)
    return told_file.read(file)


def json_of(text):
    known = json.loads(text)
    del known["sha256"]
    return known


def test_figures_from_a_file_show_the_same_data(out, monkeypatch, tmp_path):
    shown = []
    monkeypatch.setattr(Axes, "imshow", lambda self, data, **_: shown.append(np.asarray(data)))
    monkeypatch.setattr(plays, "AMBIGUOUS", (DIGITS,))
    monkeypatch.setattr("consilience.paper.figures.finish", lambda figure, caption, file: file)
    from consilience.paper import figures

    told = told_by("digits", out / "digits")
    told_file.write(told, tmp_path / "digits.json")
    for one in (told, told_file.read(tmp_path / "digits.json")):
        figures.confusion({"digits": one}, 0, tmp_path / "x.png")
    assert len(shown) == 4
    np.testing.assert_array_equal(shown[0], shown[2])
    np.testing.assert_array_equal(shown[1], shown[3])
    np.testing.assert_allclose(shown[1] ** 2, told.confusions["edges"], atol=1e-12)


@pytest.fixture
def consilience(monkeypatch):
    """The command; gives its exit code."""

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["consilience", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code

    return call


def test_only_finished_plays_nothing(out, consilience, monkeypatch, capsys):
    monkeypatch.setattr("consilience.paper.parts.PARTS", (FIRST, THIRD))
    monkeypatch.setattr("consilience.command.paper.play", None)  # which would fail
    assert consilience("reproduce", "--only-finished", "--out", str(out), "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [claim["figure"] for claim in told["claims"]] == ["1", "1"]
    assert told["missing"] == {"3": ["later"]}
    assert (out / "digits.json").exists(), "finished before there were such files"
    assert consilience("reproduce", "--only-finished", "--out", str(out)) == 0
    assert "not told: 3, which waits for later" in capsys.readouterr().out
    assert consilience("reproduce", "--only-finished", "--estimate") == 2


def test_a_run_that_the_command_plays_leaves_its_file(out, consilience, monkeypatch):
    monkeypatch.setattr("consilience.paper.parts.PARTS", (THIRD,))
    monkeypatch.setattr(reproduce, "measure", lambda config: None)
    assert consilience("reproduce", "--out", str(out), "--quiet") == 0
    assert told_file.read(out / "later.json").facts["command"] == LATER.command()


def test_a_document_gets_the_table_between_its_marks(out, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(document, "PARTS", (FIRST, THIRD))
    page = tmp_path / "page.md"
    page.write_text(f"# Above\n{document.BEGIN}\nbefore\n{document.END}\nBelow\n")
    assert document.main([str(out), str(page)]) == 0
    once = page.read_text()
    assert "before" not in once
    assert once.startswith("# Above\n")
    assert once.endswith("Below\n")
    assert "| 1 | MSE of cooperating agents" in once
    assert "From 2 of 3 runs" in once
    assert "- 3: `later`\n" in once
    assert document.main([str(out), str(page)]) == 0
    assert page.read_text() == once
    for text in ("nothing", document.BEGIN, f"{document.END} {document.BEGIN}"):
        page.write_text(text)
        assert document.main([str(out), str(page)]) == 2
        assert "page.md': it must have one <!-- claims: begin -->" in capsys.readouterr().err
        assert page.read_text() == text
    assert document.main([str(tmp_path / "none"), str(page)]) == 2
    assert "must be a folder" in capsys.readouterr().err
    assert document.main([]) == 2


def test_no_play_is_called_like_the_claims():
    assert "paper" not in {play.name for part in PARTS for play in part.plays}


def test_the_paper_s_page_says_what_the_results_say():
    root = Path(__file__).parents[2]
    text = (root / "docs" / "paper.md").read_text(encoding="utf-8")
    assert document.filled(text, document.table(root / "results" / "paper")) == text
