"""A peer's folder: one file is put on disk in a round, and whatever fails, nothing of what happened is lost."""

import os
import shutil
import threading

import numpy as np
import pytest

from consilience.engines.arm import Progress
from consilience.engines.peers import keeping
from consilience.engines.peers.keeping import HEARD, PASSED_ON, SYNCED_EVERY, Keeper
from consilience.engines.peers.life import Position
from consilience.engines.peers.mail import NO_MAIL, Kept
from consilience.engines.peers.mailboxes import Filled, Tabled
from consilience.engines.peers.messages import Entry
from consilience.errors import InputError
from consilience.runs import folder as files

STATE = {"mean": np.zeros(3, np.float32)}
NAMES = {0: "north", 1: "east"}


def keeper(folder):
    folder.mkdir(exist_ok=True)
    return Keeper(folder, "together", "study")


def play(kept, rounds, incarnation=1, mail=NO_MAIL):
    """As a life does: a round is saved when it is published, and told when it was pooled."""
    for number in rounds:
        kept.save(STATE, STATE, Position(number, True), Kept({}, {}), incarnation, lambda: mail)
        kept.played(number, Filled({}, {0: 0.5, 1: 0.5}, {}, {1}), NAMES, {"accuracy": number / 100})


def content(folder):
    return {name: (folder / name).read_bytes() for name in (files.RECORD, HEARD)}


def loaded(folder):
    again = keeper(folder)
    return again, again.load(Progress(STATE, STATE))


@pytest.fixture
def synced(monkeypatch):
    """How often this test put anything on disk; threads that others have left are not counted."""
    calls, fsync, me = [], os.fsync, threading.get_ident()

    def counting(file):
        if threading.get_ident() == me:
            calls.append(file)
        fsync(file)

    monkeypatch.setattr(os, "fsync", counting)
    return calls


def test_a_round_puts_one_file_on_disk(tmp_path, synced):
    kept = keeper(tmp_path / "run")
    kept.open()
    synced.clear()
    play(kept, range(1, SYNCED_EVERY))
    assert len(synced) == SYNCED_EVERY - 1
    play(kept, [SYNCED_EVERY])
    assert len(synced) == SYNCED_EVERY + 3  # both tables, and run.json
    kept.close()


@pytest.mark.parametrize("rounds", [1, 5, SYNCED_EVERY, SYNCED_EVERY + 7])
@pytest.mark.parametrize("lost", ["nothing", "all that was not synced", "a part of it"])
def test_what_the_power_takes_comes_back(tmp_path, rounds, lost):
    kept = keeper(tmp_path / "run")
    kept.open()
    play(kept, range(1, rounds + 1))
    kept.save(STATE, STATE, Position(rounds + 1, True), Kept({}, {}), 1, lambda: NO_MAIL)
    folder = shutil.copytree(tmp_path / "run", tmp_path / "after")
    before, tails = content(folder), {files.RECORD: kept._record.rows.tail(), HEARD: kept._heard.tail()}
    for name, tail in tails.items():
        on_disk, all_of_it = tail.synced.bytes, len(before[name])
        left = {"nothing": all_of_it, "all that was not synced": on_disk, "a part of it": (on_disk + all_of_it) // 2}
        os.truncate(folder / name, left[lost])
    kept.close()
    again, standing = loaded(folder)
    assert standing.position == Position(rounds + 1, True)
    again.open()
    assert content(folder) == before
    play(again, [rounds + 2], incarnation=2)
    again.close()
    third, _ = loaded(folder)
    third.open()
    third.close()


def test_a_file_that_is_damaged_before_its_end_is_refused(tmp_path):
    folder = tmp_path / "run"
    kept = keeper(folder)
    kept.open()
    play(kept, range(1, SYNCED_EVERY + 4))
    kept.save(STATE, STATE, Position(SYNCED_EVERY + 4, True), Kept({}, {}), 1, lambda: NO_MAIL)
    kept.close()
    damaged = (folder / HEARD).read_bytes().replace(b"east", b"nope", 1)
    (folder / HEARD).write_bytes(damaged)
    again, _ = loaded(folder)
    with pytest.raises(InputError, match=r"heard\.csv' is damaged"):
        again.open()
    assert (folder / HEARD).read_bytes() == damaged


def test_the_last_checkpoint_is_never_away(tmp_path, monkeypatch):
    """Not even between two of its versions: where it is gone, somebody has taken it."""
    kept = keeper(tmp_path / "run")
    kept.open()
    play(kept, [1])
    there, replace = [], type(tmp_path).replace

    def replacing(self, target):
        if self.parent == tmp_path / "run":
            there.append((tmp_path / "run" / files.CHECKPOINT).exists())
        return replace(self, target)

    monkeypatch.setattr(type(tmp_path), "replace", replacing)
    play(kept, [2])
    kept.close()
    assert len(there) == 2
    assert all(there)
    assert keeping.read_header(tmp_path / "run" / "checkpoint-before.safetensors").position["round"] == 1


def test_what_others_say_again_is_kept_now_and_then(tmp_path):
    folder = tmp_path / "run"
    mailbox = Tabled(0, {owner: Entry(owner, (3, 1), {"x": np.full(2, float(owner))}, "signed") for owner in range(3)})
    kept = keeper(folder)
    kept.open()
    play(kept, range(1, SYNCED_EVERY), mail=mailbox.passed_on())
    assert not (folder / PASSED_ON).exists()
    play(kept, [SYNCED_EVERY], mail=mailbox.passed_on())
    kept.close()
    _, standing = loaded(folder)
    again = Tabled(0)
    again.restore(mailbox.kept(), mailbox.table[0].arrays)
    again.recall(standing.passed_on)
    assert again.held() == mailbox.held()
    assert [again.table[owner].arrays["x"].tolist() for owner in range(3)] == [[0, 0], [1, 1], [2, 2]]
    assert mailbox.kept().arrays == {}  # the checkpoint has what was published
    content = bytearray((folder / PASSED_ON).read_bytes())
    content[-3] ^= 1
    (folder / PASSED_ON).write_bytes(content)
    with pytest.raises(InputError, match=r"passed-on\.safetensors' is damaged.*neighbours say again"):
        loaded(folder)


def test_who_has_played_and_lost_its_checkpoints_does_not_begin_anew_without_a_word(tmp_path):
    folder = tmp_path / "run"
    kept = keeper(folder)
    kept.open()
    kept.close()
    loaded(folder)  # nothing was played
    kept = keeper(folder)
    kept.open()
    play(kept, [1, 2])
    kept.close()
    before = (folder / HEARD).read_bytes()
    for file in folder.glob("checkpoint*"):
        file.unlink()
    with pytest.raises(InputError, match=r"checkpoint\.safetensors' is gone, and rounds were played"):
        loaded(folder)
    assert (folder / HEARD).read_bytes() == before


def test_what_does_not_fit_into_a_message_comes_later_and_nobody_is_left_out():
    mailbox = Tabled(0, most=3)
    for number in range(1, 7):
        for owner in range(6):  # everybody has something new in every round
            mailbox.table[owner] = Entry(owner, (number, 1), {}, "")
        held = dict(mailbox._known.get(9, {}))
        said = mailbox.say(9)
        assert len(said) == 3
        assert said[0].owner == 0
        mailbox.knows(9, held | {entry.owner: entry.version for entry in said})
    assert min(version for owner, version in mailbox._known[9].items()) >= (4, 1)
    assert set(mailbox._known[9]) == set(range(6))
