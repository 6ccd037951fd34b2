"""What a peer says where something is wrong: its disk, its neighbours, what a check of its links finds.

Most lines are read where what they are about is tested; that all of docs/peers.md's are said somewhere is tested here.
"""

import errno
import os
import re
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from peer_homes import made

import consilience as cs
from consilience.command.peer import told_line
from consilience.engines.peers import node
from consilience.engines.peers.bundle import Bundle
from consilience.engines.peers.checking import Looking, found
from consilience.engines.peers.desk import PROTOCOL, Greeting
from consilience.engines.peers.waiting import Patience
from consilience.errors import InputError
from consilience.learning.peer import Peer
from consilience.runs.checkpoint import check_arrays, read_header

ROUNDS = 4
TREE = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    """Nobody else is there, and nobody is waited for long."""
    monkeypatch.setattr(node, "Patience", lambda *study: Patience(*study)._replace(round=0.05, gather=0.05))


def beliefs(home):
    return [np.asarray(part) for part in cs.load(home / "run").flat_belief(0)]


def test_a_full_disk_is_said_and_destroys_nothing(tmp_path, monkeypatch):
    """It is noticed when something is to be on disk, in any round; with room again the peer carries on."""
    for name in ("undisturbed", "full"):
        (tmp_path / name).mkdir()
        made(tmp_path / name, "laplace", ROUNDS)
    Peer(tmp_path / "undisturbed" / "north").run()
    home, sync = tmp_path / "full" / "north", os.fsync
    checkpoint = home / "run" / "checkpoint.safetensors"
    left = 0

    def full(stream):
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(stream)

    reached = 0
    for room in (2, 4, 7, 1, 3):
        monkeypatch.setattr(os, "fsync", full)
        left = room
        with pytest.raises(OSError, match="No space left on device") as failed:
            Peer(home).run()
        monkeypatch.setattr(os, "fsync", sync)
        assert str(failed.value.filename).startswith(str(home / "run"))  # it says which file
        assert not list((home / "run").glob(".*.part"))
        if checkpoint.exists():  # the last good one is there, and whole
            header = read_header(checkpoint)
            check_arrays(checkpoint, header)
            assert header.position["round"] >= reached
            reached = header.position["round"]
        else:
            assert not reached
    assert 0 < reached < ROUNDS
    Peer(home).run()
    for one, other in zip(beliefs(tmp_path / "undisturbed" / "north"), beliefs(home), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_damaged_checkpoint_and_one_of_another_study_are_refused_by_name(tmp_path):
    """The good one before it stays; with that in its place the peer carries on."""
    for seed, name in enumerate(("one", "other")):
        (tmp_path / name).mkdir()
        made(tmp_path / name, "laplace", ROUNDS, seed=seed)
        Peer(tmp_path / name / "north").run()
    own, others = (tmp_path / name / "north" / "run" / "checkpoint.safetensors" for name in ("one", "other"))
    good = own.read_bytes()
    own.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    with pytest.raises(InputError, match=r"checkpoint: '.*checkpoint\.safetensors' is damaged"):
        Peer(tmp_path / "one" / "north").run()
    assert own.read_bytes() != good  # nothing was put in its place
    shutil.copy(others, own)
    with pytest.raises(InputError, match="is of another study"):
        Peer(tmp_path / "one" / "north").run()
    shutil.copy(own.with_name("checkpoint-before.safetensors"), own)
    assert Peer(tmp_path / "one" / "north").run().record.rounds("together").tolist() == list(range(1, ROUNDS + 1))


def test_who_is_not_heard_is_named_once_and_not_waited_for(tmp_path):
    made(tmp_path, "laplace", ROUNDS)
    lines = []
    Peer(tmp_path / "north", told=lambda what, **facts: lines.append(told_line(what, facts))).run()
    for name in ("south", "west"):
        (line,) = (line for line in lines if line.startswith(f"{name}: ") and "rounds missed" in line)
        assert re.fullmatch(rf"{name}: \d rounds missed; going on without it until it is heard", line)
    assert sum("missed south, west" in line for line in lines) == ROUNDS


def test_a_check_names_what_differs(tmp_path):
    """A newer roster, another version, another time of day; and where nothing differs nothing is said."""
    made(tmp_path, "laplace")
    bundle = Bundle.read(tmp_path / "study.bundle")
    north = bundle.roster.members[0]

    def line(epoch=1, version="1.0", ahead=0.0):
        desk, now = Looking(bundle, "1.0"), time.time()
        desk.greeted(north, Greeting(PROTOCOL, version, bundle.study.hash, epoch, 1, 0, now + ahead))
        return found(north, desk, 1, "1.0", {}).problem

    assert line() == line(ahead=20) == ""
    assert line(2) == "north: has the roster of epoch 2, ours is 1: ask the steward for the newest bundle"
    assert line(version="1.1") == "north: has version 1.1, ours is 1.0: better have the same"
    assert line(ahead=86400) == "north: has a clock that is 86400 s ahead: set one of the two"
    assert line(ahead=-3600) == "north: has a clock that is 3600 s behind: set one of the two"


def test_every_line_of_the_documentation_is_said():
    """The table of docs/peers.md quotes what the program says, with … for what differs."""
    table = (TREE / "docs" / "peers.md").read_text().split("## When something is wrong")[1].split("\n## ")[0]
    rows = [row.split("|")[1:4] for row in table.splitlines() if re.match(r"\| \d+ \|", row)]
    assert [int(number) for number, *_ in rows] == list(range(1, 15))
    sources = " ".join(file.read_text() for file in (TREE / "src").rglob("*.py"))
    said = re.sub(r'"\s*\n?\s*f?"|\s+', " ", sources)  # also where a line of text goes on in the next line of code
    for _, quoted, _ in rows:
        for words in re.findall(r"`([^`]+)`", quoted):
            for piece in filter(None, (piece.strip() for piece in words.split("…"))):
                assert piece in said
