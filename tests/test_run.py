"""Runs in their folders: records that others can read, and interruptions that leave no trace."""

import json
import shutil

import duckdb
import jax
import numpy as np
import pandas as pd
import polars as pl
import pytest

from consilience import run
from consilience.checkpoint import load_checkpoint, save_checkpoint
from consilience.data import load_dataset
from consilience.errors import InputError
from consilience.experiments import classification, load
from consilience.record import Record, RecordWriter
from consilience.theory_report import describe_turns

SMALL = ["rounds=37", "replicates=3", "checkpoint_every=10", "record_every=2", "test_samples=50"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "whole"
    run.begin(load("linear-regression", SMALL), folder)
    run.carry_on(folder)
    return folder


class Cut(Exception):
    """As if the power failed."""


def stop_after(number):
    def on_round(played, words):
        if played >= number:
            raise Cut

    return on_round


@pytest.mark.parametrize("number", [0, 1, 20, 37])
def test_an_interrupted_run_ends_with_the_same_bytes(finished, tmp_path, number):
    folder = tmp_path / "again"
    run.begin(load("linear-regression", SMALL), folder)
    with pytest.raises(Cut):
        run.carry_on(folder, stop_after(number))
    run.carry_on(folder)
    assert (folder / "record.csv").read_bytes() == (finished / "record.csv").read_bytes()


def test_a_run_that_is_asked_to_stop_writes_a_checkpoint_first(finished, tmp_path):
    folder = tmp_path / "asked"
    run.begin(load("linear-regression", [*SMALL, "checkpoint_every=1000"]), folder)
    with pytest.raises(run.Stopped, match="20"):
        run.carry_on(folder, stop=lambda: True)
    assert (folder / "checkpoint.safetensors").exists()
    run.carry_on(folder)
    assert (folder / "record.csv").read_bytes() == (finished / "record.csv").read_bytes()


def test_a_torn_record_and_lost_rows_are_mended(finished, tmp_path):
    folder = tmp_path / "torn"
    run.begin(load("linear-regression", SMALL), folder)
    with pytest.raises(Cut):
        run.carry_on(folder, stop_after(20))
    with (folder / "record.csv").open("ab") as record:
        record.write(b"cooperating,38,2,0.12")
    run.carry_on(folder)
    assert (folder / "record.csv").read_bytes() == (finished / "record.csv").read_bytes()


def test_a_finished_run_resumes_to_itself(finished, tmp_path):
    folder = tmp_path / "done"
    shutil.copytree(finished, folder)
    run.carry_on(folder)
    assert (folder / "record.csv").read_bytes() == (finished / "record.csv").read_bytes()


def test_the_folder_tells_everything(finished):
    facts = json.loads((finished / "run.json").read_text())
    assert facts["status"] == "finished"
    assert facts["seeds"] == [0, 1, 2]
    assert set(facts["versions"]) >= {"consilience", "jax", "numpy", "python"}
    assert run.opened(finished) == load("linear-regression", SMALL)
    summary = json.loads((finished / "summary.json").read_text())
    for figure in summary["figures"]:
        assert (finished / figure).stat().st_size > 10_000


def test_others_read_the_record_directly(finished):
    file = finished / "record.csv"
    ours = Record.read(file)
    frames = [pd.read_csv(file), pd.DataFrame(pl.read_csv(file).to_dict()), duckdb.sql(f"from '{file}'").df()]
    for frame in frames:
        assert list(frame.columns)[:3] == ["arm", "round", "agent"]
        assert len(frame) == (1 + 4 + 4) * 19
        np.testing.assert_allclose(frame["mse"], ours.columns["mse"], rtol=1e-12)
    assert not frames[0].duplicated(["arm", "round", "agent"]).any()
    assert ours.rounds("alone").tolist() == [*range(2, 37, 2), 37]


def test_a_folder_in_use_is_not_overwritten(finished):
    with pytest.raises(InputError, match="already exists"):
        run.begin(load("linear-regression", SMALL), finished)


def test_bad_descriptions_leave_no_folder(tmp_path):
    with pytest.raises(InputError, match="needs an agent for each of 4 coordinates, got 2 agents"):
        run.begin(load("linear-regression", ["network.kind=ring", "network.agents=2"]), tmp_path / "bad")
    assert not (tmp_path / "bad").exists()


@pytest.mark.parametrize("damage", ["truncate", "garbage", "other shape"])
def test_a_damaged_checkpoint_is_named(finished, tmp_path, damage):
    folder = tmp_path / "damaged"
    shutil.copytree(finished, folder)
    file = folder / "checkpoint.safetensors"
    if damage == "truncate":
        file.write_bytes(file.read_bytes()[:-40])
    elif damage == "garbage":
        file.write_bytes(b"\xff" * 200)
    else:
        text = (folder / "config.toml").read_text().replace("replicates = 3", "replicates = 4")
        (folder / "config.toml").write_text(text)
    with pytest.raises(InputError, match=r"checkpoint: '.*checkpoint\.safetensors'"):
        run.carry_on(folder)


def test_a_changed_description_is_not_mixed_in(finished, tmp_path):
    folder = tmp_path / "changed"
    shutil.copytree(finished, folder)
    text = (folder / "config.toml").read_text()
    (folder / "config.toml").write_text(text.replace("noise = 0.8", "noise = 0.7"))
    with pytest.raises(InputError, match=r"config\.toml in .* was changed since"):
        run.carry_on(folder)
    (folder / "config.toml").write_text(text.replace("rounds = 37", "rounds = 41"))
    assert run.carry_on(folder)["rounds"] == 41, "going further is no change"


def test_a_record_shorter_than_its_checkpoint_is_named(finished, tmp_path):
    folder = tmp_path / "short"
    shutil.copytree(finished, folder)
    (folder / "record.csv").write_bytes((folder / "record.csv").read_bytes()[:100])
    with pytest.raises(InputError, match="has 100 bytes, the checkpoint was made when"):
        run.carry_on(folder)


@pytest.mark.parametrize(
    "position", ["{}", "[]", "null", '{"round": -1, "record_bytes": 0}', '{"round": 1, "record_bytes": -5}']
)
def test_a_senseless_position_is_named(finished, tmp_path, position):
    from safetensors.numpy import load_file, save_file

    folder = tmp_path / "senseless"
    shutil.copytree(finished, folder)
    file = folder / "checkpoint.safetensors"
    save_file(load_file(file), file, metadata={"position": position})
    with pytest.raises(InputError, match="checkpoint:"):
        run.carry_on(folder)


def test_one_process_at_a_time(finished, tmp_path):
    folder = tmp_path / "busy"
    shutil.copytree(finished, folder)
    with run.locked(folder), pytest.raises(InputError, match="carried on by another process"):
        run.carry_on(folder)


def test_networks_from_files_are_written_out(tmp_path):
    (tmp_path / "W.csv").write_text("\n".join([",".join(["0.25"] * 4)] * 4))
    settings = [*SMALL, f"network.file={tmp_path / 'W.csv'}"]
    run.begin(load("linear-regression", settings), tmp_path / "run")
    assert run.opened(tmp_path / "run").network.W == [[0.25] * 4] * 4


def test_two_runs_begun_at_once_get_two_folders(tmp_path):
    assert run.new_folder("x", tmp_path) != run.new_folder("x", tmp_path)


def test_only_complete_rounds_are_read(finished, tmp_path):
    text = (finished / "record.csv").read_text().splitlines(keepends=True)
    whole = Record.read(finished / "record.csv")
    (tmp_path / "r.csv").write_text("".join(text[:-2]))
    cut = Record.read(tmp_path / "r.csv")
    assert cut.rounds("cooperating").tolist() == cut.rounds("central").tolist() == whole.rounds("central").tolist()[:-1]


def test_a_lost_or_damaged_note_does_not_stop_a_run(finished, tmp_path):
    folder = tmp_path / "noteless"
    shutil.copytree(finished, folder)
    (folder / "run.json").write_text("{")
    assert run.carry_on(folder)["rounds"] == 37


def test_what_is_not_a_run_is_named(tmp_path):
    with pytest.raises(InputError, match="is not a run folder"):
        run.carry_on(tmp_path)
    with pytest.raises(InputError, match="cannot read"):
        Record.read(tmp_path / "record.csv")
    (tmp_path / "record.csv").write_text("")
    with pytest.raises(InputError, match="is empty"):
        Record.read(tmp_path / "record.csv")
    (tmp_path / "record.csv").write_text("arm,round,agent,mse\na,1,0\n")
    with pytest.raises(InputError, match="is damaged"):
        Record.read(tmp_path / "record.csv")


def test_a_run_that_turns_nan_fails_by_name():
    with pytest.raises(run.RunFailed, match="alone: mse of agent 1 is nan at round 20"):
        run._refuse_nan("alone", [10, 20], {"mse": np.array([[1.0, 2.0], [3.0, np.nan]])})


def test_the_record_keeps_every_digit(tmp_path):
    values = np.random.default_rng(0).normal(size=(2, 3))
    writer = RecordWriter(tmp_path / "r.csv")
    writer.append("one", [1, 5], {"x": values})
    writer.close()
    np.testing.assert_array_equal(Record.read(tmp_path / "r.csv").select("one", "x"), values)


def test_checkpoints_are_never_half_written(finished):
    assert not list(finished.glob(".*.part"))
    with pytest.raises(InputError, match=r"must hold \['nothing'\]"):
        load_checkpoint(finished / "checkpoint.safetensors", {"nothing": np.zeros(1)})


def test_checkpoints_keep_every_bit_and_leave_nothing_behind(tmp_path):
    tree = {"b": np.arange(6, dtype=np.float32).reshape(2, 3), "a": (np.array(3.5), np.zeros((0, 2), np.int32))}
    leaves = jax.tree.leaves(tree)
    save_checkpoint(tmp_path / "c", tree, iter(leaves), {"round": 4})
    position, arrays = load_checkpoint(tmp_path / "c", tree)
    assert position == {"round": 4}
    for leaf, array in zip(leaves, arrays, strict=True):
        np.testing.assert_array_equal(leaf, array)
    before = (tmp_path / "c").read_bytes()
    with pytest.raises(ValueError, match="must be"):
        save_checkpoint(tmp_path / "c", tree, iter(leaves[::-1]), {"round": 5})
    assert [file.name for file in tmp_path.iterdir()] == ["c"]
    assert (tmp_path / "c").read_bytes() == before


def test_what_a_killed_process_was_writing_is_removed(tmp_path):
    (tmp_path / ".checkpoint.safetensors.77.part").write_bytes(b"half")
    with run.locked(tmp_path):
        assert not list(tmp_path.glob("*.part"))


def test_a_run_whose_data_has_moved_is_told_where(tmp_path, monkeypatch):
    def load_there(name, folder, **_):
        if folder is None or not folder.is_dir():
            raise InputError(f"data_dir: {folder} is not there")
        return load_dataset("digits")

    monkeypatch.setattr(classification, "load_dataset", load_there)
    (tmp_path / "first").mkdir()
    small = ["rounds=2", "record_every=1", "model.hidden=[]", "learner.epochs=1", "samples=1", "learner.batch=2"]
    run.begin(load("star-mnist", [*small, f"data_dir={tmp_path / 'first'}"]), tmp_path / "run")
    (tmp_path / "first").rename(tmp_path / "second")
    with pytest.raises(InputError, match="data_dir"):
        run.carry_on(tmp_path / "run")
    assert run.carry_on(tmp_path / "run", data_dir=tmp_path / "second")["rounds"] == 2


CHANGING = ["rounds=60", "replicates=2", "hypotheses=3", "checkpoint_every=1", "precision=float64"]
CHANGING += ['networks={lossy={kind="star", edges=2, changes={loss=0.3}}}']
THEOREM = ["rounds=60", "replicates=2", 'networks={pair={kind="complete", agents=3}}', "checkpoint_every=1"]


@pytest.mark.parametrize(("name", "settings"), [("changing-rates", CHANGING), ("theorem-1", THEOREM)])
def test_an_interrupted_run_can_be_reported(tmp_path, name, settings):
    folder = tmp_path / "cut"
    run.begin(load(name, settings), folder)
    with pytest.raises(run.Stopped):
        run.carry_on(folder, stop=lambda: True)
    summary = run.report(folder)
    done = int(Record.read(folder / "record.csv").columns["round"].max())
    assert done < 60
    assert summary.get("rounds", done) == done


@pytest.mark.parametrize("damage", ["flip", "remove"])
def test_a_run_with_a_damaged_file_is_refused_before_it_is_played(tmp_path, damage):
    folder = tmp_path / "cut"
    run.begin(load("changing-rates", CHANGING), folder)
    turns = folder / "turns-lossy.csv"
    content = turns.read_bytes()
    turns.write_bytes(content.replace(b"0.5", b"0.4", 1)) if damage == "flip" else turns.unlink()
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    with pytest.raises(InputError, match="turns-lossy.csv"):
        run.carry_on(folder)
    assert {file.name: file.read_bytes() for file in folder.iterdir() if file.name != ".lock"} == before


def test_turns_of_a_run_are_told_and_replayed_as_it_wrote_them(tmp_path):
    run.begin(load("changing-rates", CHANGING), tmp_path / "run")
    turns = tmp_path / "run" / "turns-lossy.csv"
    again = f'networks={{a={{kind="star", edges=2, changes={{replay="{turns}"}}}}}}'
    assert describe_turns(str(turns))["agents"] == 3
    turns.write_bytes(turns.read_bytes().replace(b"2.0", b"2.5"))
    with pytest.raises(InputError, match="was changed since the run wrote it"):
        describe_turns(str(turns))
    with pytest.raises(InputError, match="was changed since the run wrote it"):
        run.begin(load("changing-rates", [*CHANGING[:-1], again]), tmp_path / "again")
