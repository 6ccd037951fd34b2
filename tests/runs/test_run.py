"""Runs in their folders: records that others can read, and interruptions that leave no trace."""

import json
import shutil
from pathlib import Path

import duckdb
import jax
import numpy as np
import pandas as pd
import polars as pl
import pytest
from safetensors.numpy import load_file

from consilience.command.theory import describe_turns
from consilience.data import load_dataset
from consilience.errors import InputError
from consilience.experiments import load
from consilience.experiments.images import arms as images
from consilience.machine import memory
from consilience.network import Fixed, Lossy, star, turns_as_csv
from consilience.runs import play, run
from consilience.runs.checkpoint import load_checkpoint, save_checkpoint
from consilience.runs.record import Record, RecordWriter, standard_error

pytestmark = pytest.mark.usefixtures("simulations_kept")

SMALL = ["rounds=37", "replicates=3", "checkpoint_every=10", "record_every=2", "test_samples=50"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "whole"
    run.begin(load("linear-regression", SMALL), folder)
    run.carry_on(folder)
    return folder


def test_a_run_that_no_longer_fits_is_refused_before_it_is_touched(finished, tmp_path, monkeypatch):
    folder = tmp_path / "elsewhere"
    shutil.copytree(finished, folder)
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    monkeypatch.setattr(memory, "available", lambda: 9_000)  # enough for the test data
    with pytest.raises(InputError, match=r"run: .* replicates .*: needs about"):
        run.carry_on(folder)
    assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == before


def test_a_damaged_description_is_named_also_where_nothing_holds_its_checksum(finished, tmp_path):
    folder = tmp_path / "bare"
    shutil.copytree(finished, folder)
    (folder / "run.json").unlink()
    text = (folder / "config.toml").read_text()
    (folder / "config.toml").write_text(text.replace("noise", "noIse"))
    for verb in (run.report, run.carry_on):
        with pytest.raises(InputError, match=r"config.toml': noIse: no such field"):
            verb(folder)


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
        (folder / "run.json").unlink()
        text = (folder / "config.toml").read_text().replace("replicates = 3", "replicates = 4")
        (folder / "config.toml").write_text(text)
    with pytest.raises(InputError, match=r"checkpoint: '.*checkpoint\.safetensors'"):
        run.carry_on(folder)


def test_a_changed_description_is_not_mixed_in(finished, tmp_path):
    folder = tmp_path / "changed"
    shutil.copytree(finished, folder)
    text = (folder / "config.toml").read_text()
    for change in (("noise = 0.8", "noise = 0.7"), ("rounds = 37", "rounds = 41"), ("\n", "\r\n")):
        (folder / "config.toml").write_text(text.replace(*change))
        for verb in (run.carry_on, run.report):
            with pytest.raises(InputError, match=r"config\.toml' was changed since the run wrote it"):
                verb(folder)
    (folder / "config.toml").write_text(text.replace("noise = 0.8", "noise = 0.7"))
    (folder / "run.json").unlink()
    with pytest.raises(InputError, match=r"config\.toml in .* was changed since"):
        run.carry_on(folder)


def test_a_run_can_go_further(finished, tmp_path):
    folder, longer = tmp_path / "further", tmp_path / "longer"
    shutil.copytree(finished, folder)
    run.extend(folder, 41)
    assert run.carry_on(folder)["rounds"] == 41
    assert run.opened(folder).rounds == 41
    run.begin(load("linear-regression", [*SMALL, "rounds=41"]), longer)
    run.carry_on(longer)
    rounds = [Record.read(each / "record.csv").rounds("alone").tolist() for each in (folder, longer)]
    assert rounds == [[*range(2, 37, 2), 37, 38, 40, 41], [*range(2, 41, 2), 41]]
    with pytest.raises(InputError, match="rounds: must be at least 41, which have been played, got 40"):
        run.extend(folder, 40)
    run.begin(load("theorem-1", ["rounds=20", "replicates=2"]), tmp_path / "spaced")
    with pytest.raises(InputError, match="rounds: theorem-1 spaces its records by its last round"):
        run.extend(tmp_path / "spaced", 30)


def test_a_record_shorter_than_its_checkpoint_is_named(finished, tmp_path):
    folder = tmp_path / "short"
    shutil.copytree(finished, folder)
    (folder / "record.csv").write_bytes((folder / "record.csv").read_bytes()[:100])
    with pytest.raises(InputError, match=r"has 100 bytes, the checkpoint or run\.json knows"):
        run.carry_on(folder)


@pytest.mark.parametrize(
    "position", ["{}", "[]", "null", '{"round": -1, "record": [0, ""]}', '{"round": 1, "record": -5}']
)
def test_a_senseless_position_is_named(finished, tmp_path, position):
    """Also one that has all its checksums."""
    from safetensors.numpy import load_file, save_file

    folder = tmp_path / "senseless"
    shutil.copytree(finished, folder)
    file = folder / "checkpoint.safetensors"
    arrays = load_file(file)
    save_file(arrays, file, metadata={"position": position})
    with pytest.raises(InputError, match=r"checkpoint: '.*' cannot be read"):
        run.carry_on(folder)
    if not isinstance(json.loads(position), dict):
        return
    save_checkpoint(file, arrays, [array for _, array in sorted(arrays.items())], json.loads(position))
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


def test_a_lost_note_does_not_stop_a_run_and_a_damaged_one_can_be_removed(finished, tmp_path):
    folder = tmp_path / "noteless"
    shutil.copytree(finished, folder)
    text = (folder / "run.json").read_text()
    for damaged in ("{", text.replace('"status": "finished"', '"status": "stopped"'), text[:-30], "[]", ""):
        (folder / "run.json").write_text(damaged)
        for verb in (run.carry_on, run.report):
            with pytest.raises(InputError, match=r"run: '.*run\.json' is damaged; remove it to go on without"):
                verb(folder)
    (folder / "run.json").unlink()
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
        play._refuse_nan("alone", [10, 20], {"mse": np.array([[[1.0, 2.0]], [[3.0, np.nan]]])})
    with pytest.raises(run.RunFailed, match="alone: mse of agent 1 is nan at round 20"):
        play._refuse_nan("alone", [10, 20], {"mse": np.array([[1.0, 2.0], [3.0, np.nan]])})


@pytest.mark.parametrize("values", [[np.inf, 1.0], [np.inf, np.inf], [1e308, 1e308]])
def test_numbers_beyond_all_bounds_are_named_and_not_warned_of(values):
    columns = play._over_seeds({"mse": np.array(values).reshape(1, 2, 1)}, [True])
    with pytest.raises(run.RunFailed, match="a: mse of agent 0 is inf at round 7"):
        play._refuse_nan("a", [7], columns)


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

    monkeypatch.setattr(images, "load_dataset", load_there)
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
    with pytest.raises(InputError, match=r"turns-lossy\.csv"):
        run.carry_on(folder)
    assert {file.name: file.read_bytes() for file in folder.iterdir() if file.name != ".lock"} == before


@pytest.mark.parametrize("note", ["kept", "removed"])
def test_who_held_what_is_told_as_it_was_written(tmp_path, note):
    folder = run.begin(load("star-digits"), tmp_path / "run")
    shares = folder / "shares.json"
    if note == "removed":
        (folder / "run.json").unlink()
    for content in (shares.read_bytes().replace(b"1", b"2", 1), b"{}", b"[]", b"\xff", b"", None):
        shares.write_bytes(content) if content is not None else shares.unlink()
        with pytest.raises(InputError, match=r"shares\.json"):
            run.report(folder)


@pytest.mark.parametrize("name", ["figures", "summary.json"])
def test_a_place_where_nothing_can_be_written_is_named_before_anything_is_played(finished, tmp_path, name):
    folder = run.begin(load("linear-regression", SMALL), tmp_path / "run")
    (folder / name).symlink_to("nowhere") if name == "figures" else (folder / name).mkdir()
    with pytest.raises(InputError, match=name):
        run.carry_on(folder)
    assert not (folder / "record.csv").exists()
    shutil.copytree(finished, tmp_path / "other")
    with pytest.raises(InputError, match=name):
        run.report(tmp_path / "other", folder)


def test_a_finished_run_is_reported_to_its_end_also_with_an_older_checkpoint(finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    (folder / "checkpoint.safetensors").write_bytes((folder / "checkpoint-before.safetensors").read_bytes())
    assert run.report(folder)["rounds"] == 37


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


def interrupted(folder, settings=(), after=20):
    run.begin(load("linear-regression", [*SMALL, *settings]), folder)
    with pytest.raises(Cut):
        run.carry_on(folder, stop_after(after))
    return folder


def test_any_flipped_byte_of_a_checkpoint_is_found(finished, tmp_path):
    """Every byte of its header, and some of every array: refused, with the place from which one can carry on."""
    folder = interrupted(tmp_path / "cut")
    file = folder / "checkpoint.safetensors"
    good = file.read_bytes()
    length = 8 + int.from_bytes(good[:8], "little")
    shapes = jax.tree.map(np.asarray, load_file(file))
    for place in [*range(0, length, 7), *range(length, len(good), 131), len(good) - 1]:
        file.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        with pytest.raises(InputError, match=r"checkpoint: '.*' (cannot be read|is damaged|must hold)"):
            load_checkpoint(file, shapes)
    with pytest.raises(
        InputError, match=r"does not have its checksum; remove checkpoint\.safetensors to play it again"
    ):
        run.carry_on(folder)
    file.unlink()
    run.carry_on(folder)
    assert (folder / "record.csv").read_bytes() == (finished / "record.csv").read_bytes()


def test_the_checkpoint_before_is_kept(finished, tmp_path):
    folder = interrupted(tmp_path / "cut", after=30)
    names = {"checkpoint.safetensors", "checkpoint-before.safetensors"}
    assert names <= {file.name for file in folder.iterdir()}
    file = folder / "checkpoint.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"; remove checkpoint\.safetensors to carry on from round 20$"):
        run.carry_on(folder)
    file.unlink()
    run.carry_on(folder)
    assert (folder / "record.csv").read_bytes() == (finished / "record.csv").read_bytes()


def test_a_changed_digit_in_the_record_is_found(finished, tmp_path):
    folder, whole = interrupted(tmp_path / "cut", after=30), tmp_path / "whole"
    shutil.copytree(finished, whole)
    for where, verb in ((folder, run.carry_on), (folder, run.report), (whole, run.report), (whole, run.carry_on)):
        file = where / "record.csv"
        good = file.read_bytes()
        before = {path: path.read_bytes() for path in where.iterdir() if path.is_file()}
        place = next(n for n in range(len(good) // 3, len(good)) if chr(good[n]).isdigit())
        file.write_bytes(good[:place] + (b"1" if good[place : place + 1] != b"1" else b"2") + good[place + 1 :])
        with pytest.raises(InputError, match=r"record: '.*record\.csv' is damaged, its first \d+ bytes"):
            verb(where)
        file.write_bytes(good)
        assert {path: path.read_bytes() for path in where.iterdir() if path.is_file()} == before, "nothing was touched"
    late = folder / "record.csv"
    content = late.read_bytes()
    late.write_bytes(content[:-2] + b"7\n")
    with pytest.raises(InputError, match=r"; remove checkpoint\.safetensors to carry on from round 20"):
        run.carry_on(folder)


def test_a_finished_run_is_reported_without_its_checkpoints(finished, tmp_path):
    folder = tmp_path / "light"
    shutil.copytree(finished, folder)
    for file in folder.glob("checkpoint*"):
        file.unlink()
    assert run.report(folder)["arms"] == json.loads((finished / "summary.json").read_text())["arms"]
    (folder / "run.json").unlink()
    with pytest.raises(InputError, match=r"record: nothing says how '.*' should be, no checkpoint and no run\.json"):
        run.report(folder)


OWN = ["dataset=own.csv", "partition.kind=file", "partition.file=owners.txt", "alone=false", "model.hidden=[]"]
TINY = ["rounds=6", "record_every=1", "checkpoint_every=2", "learner.epochs=1", "learner.batch=2", "samples=1"]
REPLAYED = ["networks.cooperating.changes.replay=turns.csv", "watched=[]"]


@pytest.fixture
def own_files(tmp_path, monkeypatch):
    """A table, owners and turns of the user's own, in the present folder."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [f"{'ab'[k % 2]},{k % 5 == 4:d},{x:.4f},{y:.4f}" for k, (x, y) in enumerate(rng.normal(size=(90, 2)))]
    (tmp_path / "own.csv").write_text("\n".join(["label,test,x,y", *rows]) + "\n")
    (tmp_path / "owners.txt").write_text("\n".join(str(k % 9) for k in range(72)) + "\n")
    (tmp_path / "turns.csv").write_text(turns_as_csv(Lossy(Fixed(star(8, 0.5)), 0.2), 6))
    return tmp_path


@pytest.mark.parametrize(
    ("field", "file", "change"),
    [
        ("dataset", "own.csv", (b"\na,", b"\nb,")),
        ("partition.file", "owners.txt", (b"3\n4", b"4\n3")),
        ("networks.cooperating.changes.replay", "turns.csv", (b"6,6.0,8,learns", b"6,6.0,7,learns")),
    ],
)
def test_data_is_part_of_what_a_run_is(own_files, field, file, change):
    """Any file that a run names, changed between a checkpoint and resume, is refused by name."""
    settings, folder = [*OWN, *TINY, *REPLAYED], own_files / "run"
    run.begin(load("star-digits", settings), folder)
    assert field in run.opened(folder).files
    with pytest.raises(Cut):
        run.carry_on(folder, stop_after(4))
    good = (own_files / file).read_bytes()
    assert change[0] in good
    (own_files / file).write_bytes(good.replace(*change, 1))
    with pytest.raises(
        InputError, match=rf"^{field}: '.*{file}' was changed: its sha256 is [0-9a-f]{{12}}…, the run has"
    ):
        run.carry_on(folder)
    (own_files / file).write_bytes(good)
    run.carry_on(folder)


def test_reports_do_not_need_the_data(own_files):
    folder = own_files / "run"
    run.begin(load("star-digits", [*OWN, *TINY, "watched=[]"]), folder)
    summary = run.carry_on(folder)
    (own_files / "own.csv").unlink()
    (own_files / "owners.txt").unlink()
    again = run.report(folder)
    assert {k: v for k, v in again.items() if k != "hours"} == {k: v for k, v in summary.items() if k != "hours"}
    shares = json.loads((folder / "shares.json").read_text())
    assert shares["label_names"] == ["a", "b"]
    assert np.array(shares["counts"]).sum() == 72


def test_every_field_that_names_a_file_is_known():
    """A path in a description is a file that is part of the run, or a folder in which files are found."""
    for model in described_models():
        for name, info in model.model_fields.items():
            if info.annotation in (Path, Path | None) and not info.exclude:  # what is left out is no part of it
                assert (info.json_schema_extra or {}).get("names") in ("file", "folder"), f"{model.__name__}.{name}"


def described_models():
    from consilience.described.fields import Described

    def below(model):
        return {model, *(inner for each in model.__subclasses__() for inner in below(each))}

    return below(Described)


def test_a_label_with_a_comma_or_a_line_end_has_its_column(own_files):
    text = (own_files / "own.csv").read_text().replace("\na,", '\n"a, or A",')
    (own_files / "own.csv").write_text(text)
    folder = own_files / "run"
    run.begin(load("star-digits", [*OWN, *TINY, "watched=['a, or A']"]), folder)
    with pytest.raises(Cut):
        run.carry_on(folder, stop_after(4))
    run.carry_on(folder)
    assert "confidence_a, or A" in Record.read(folder / "record.csv").columns
    assert "confidence_a, or A" in pd.read_csv(folder / "record.csv").columns
    writer = RecordWriter(own_files / "r.csv")
    writer.append("one", [1], {"x\ny": np.ones((1, 2))})
    extent = writer.sync()
    writer.close()
    again = RecordWriter(own_files / "r.csv", extent)
    again.append("one", [2], {"x\ny": np.ones((1, 2))})
    again.close()
    assert Record.read(own_files / "r.csv").select("one", "x\ny").shape == (2, 2)


def test_run_json_says_what_made_the_numbers(finished):
    facts = json.loads((finished / "run.json").read_text())
    assert facts["machine"]["cores"] >= 1
    assert facts["machine"]["processor"]
    assert len(facts.get("commit", "0" * 40).rstrip("+")) == 40


def test_seeds_can_have_rows_of_their_own(finished, tmp_path):
    """Then the error of an average over agents can be computed; means are those of the other form."""
    folder = tmp_path / "each"
    run.begin(load("linear-regression", [*SMALL, "per_seed=true"]), folder)
    run.carry_on(folder)
    each, means = (Record.read(place / "record.csv") for place in (folder, finished))
    assert each.seeds() == [0, 1, 2]
    assert each.each("alone", "mse").shape == (19, 3, 4)
    np.testing.assert_allclose(each.select("alone", "mse"), means.select("alone", "mse"), rtol=1e-12)
    of_agents = each.each("alone", "mse").std(axis=1, ddof=1) / np.sqrt(3)
    np.testing.assert_allclose(of_agents, means.select("alone", "mse_se"), rtol=1e-9)
    averages = pd.read_csv(folder / "record.csv").query("arm == 'alone'").groupby(["round", "seed"])["mse"].mean()
    expected = averages.groupby("round").std() / np.sqrt(3)
    at_end = each.last("alone", "mse").mean(axis=1)
    np.testing.assert_allclose(standard_error(at_end), expected.iloc[-1], rtol=1e-9)
    assert standard_error(means.last("alone", "mse").mean(axis=1)) is None
    last = each.rounds("alone")[-1]
    several = each.last("alone", "mse", rounds=int(last - each.rounds("alone")[-3]) + 1)
    np.testing.assert_allclose(several, each.each("alone", "mse")[-3:].mean(axis=0), rtol=1e-12)
