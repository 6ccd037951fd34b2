"""What a trial of peers is made of: everybody's own share of a description, and a study that says the same."""

import json

import numpy as np
import pytest

from consilience.engines.peers.bundle import Bundle
from consilience.errors import InputError
from consilience.learning.demo import Standing, Watched, begun
from consilience.learning.peer import Peer
from consilience.learning.trial import of_digits, of_task

COLUMNS = """
[columns]
x = {kind = "number"}
out = {kind = "label", levels = ["no", "yes"]}
"""
TABLE = 'experiment = "learn"\nrounds = 7\n[shares]\nkind = "table"\nfile = "all.csv"\n'
OWNERS = ["north ward", "south", "west"]


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Rows of three owners, of whom the first has a name that no peer may have."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{k / 4},{'yes' if k % 3 else 'no'},{OWNERS[k % 3]}" for k in range(24)]
    (tmp_path / "all.csv").write_text("\n".join(["x,out,ward", *rows]) + "\n")
    return tmp_path


def described(folder, text):
    (folder / "mine.toml").write_text(text)
    return folder / "mine.toml"


def lines(file):
    return file.read_text().replace('"', "").splitlines()


def test_owners_get_their_rows_without_the_column_that_says_so(table):
    network = '[network]\nkind = "star"\nedges = 2\ntrust = 0.25\n'
    text = TABLE + 'owner = "ward"\n' + network + "[learner]\nepochs = 2\n" + COLUMNS
    (table / "out").mkdir()
    trial = of_task(table / "out", described(table, text), None, None, None)
    assert list(trial.files) == ["peer-0", "south", "west"]
    assert lines(trial.files["south"]) == ["x,out", *(f"{k / 4},yes" for k in range(1, 24, 3))]
    assert trial.study["policy"]["rounds"] == 7
    assert trial.study["task"]["learner"]["epochs"] == 2
    names = begun(table / "out", trial)
    bundle = Bundle.read(table / "out" / "study.bundle")
    np.testing.assert_allclose(
        bundle.roster.weights().W.toarray(), [[1 / 3] * 3, [0.25, 0.75, 0], [0.25, 0, 0.75]], atol=1e-12
    )
    assert Peer(table / "out" / names[1]).config.files  # the share is known by its checksum


def test_a_table_is_dealt_out_to_as_many_as_are_asked_for(table):
    text = TABLE.replace('"table"', '"table"') + '[shares.partition]\nkind = "iid"\n' + COLUMNS
    text += 'ward = {kind = "ignore"}\n'
    trial = of_task(table, described(table, text), 5, 9, "sites")
    assert list(trial.files) == ["north", "east", "south", "west", "hill"]
    together = sorted(line for file in trial.files.values() for line in lines(file)[1:])
    assert together == sorted(lines(table / "all.csv")[1:])
    assert (trial.study["policy"]["rounds"], trial.study["task"]["consensus"]["kind"]) == (9, "sites")
    assert trial.links == ["ring"]


def test_what_cannot_be_tried_is_said(table):
    owned = described(table, TABLE + 'owner = "ward"\n' + COLUMNS)
    with pytest.raises(InputError, match="--agents: the description has the shares of 3, got 4"):
        of_task(table, owned, 4, None, None)
    with pytest.raises(InputError, match=r"--rule: peers have paper, .*, got 'fedavg'"):
        of_task(table, owned, None, None, "fedavg")
    with pytest.raises(InputError, match="--task: must describe 'learn'"):
        of_task(table, described(table, 'experiment = "star-digits"\n'), None, None, None)


def test_digits_are_split_by_label(tmp_path):
    trial = of_digits(tmp_path, 3, None, None)
    labels = [np.load(file)["y"] for file in trial.files.values()]
    assert sum(map(len, labels)) >= 1000
    assert all(np.mean(np.isin(y, ["0", "1", "2", "3"])) > 0.9 for y in labels[:1])
    assert trial.study["labels"] == list("0123456789")
    corrected = of_digits(tmp_path, 3, None, "sites-corrected")
    assert corrected.links == ["complete"]
    assert corrected.study["task"]["consensus"]["passes"] == 1


def test_a_log_is_followed_as_it_grows(tmp_path):
    log = tmp_path / "log.jsonl"
    rounds = [
        json.dumps({"what": "round", "round": n, "heard": ["east"], "missed": ["west"], "scores": {"a": n}, "sent": n})
        for n in (1, 2)
    ]
    log.write_text("")
    watched = Watched(log, Standing("north"))
    assert watched.standing() == Standing("north")
    log.write_text(f"a library says something\n{rounds[0]}\n{rounds[1][:10]}")
    assert watched.standing() == Standing("north", 1, {"a": 1}, ("east",), 1, 1)
    log.write_text(f'a library says something\n{rounds[0]}\n{rounds[1]}\n["what"]\n{{"what": "greeted"}}\n')
    assert watched.standing() == Standing("north", 2, {"a": 2}, ("east",), 2, 2)
