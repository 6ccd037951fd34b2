"""Somebody joins and somebody is removed while peers learn: what is left is what those who are left know, once each."""

import threading
import time

import numpy as np
import pytest
from peer_homes import NAMES, made, simulated

import consilience as cs
from consilience.engines.peers import identity
from consilience.engines.peers.bundle import Bundle
from consilience.engines.peers.steward import Stewardship
from consilience.engines.peers.transport.ports import free_port
from consilience.errors import InputError
from consilience.experiments.learn import arms
from consilience.learning.home import join, take
from consilience.learning.peer import Peer
from consilience.streams import stream

ROUNDS = 60
PACE = 0.05  # seconds a round, so that there is time for something to happen


class Living:
    """A peer in a thread of its own, and what it has told."""

    def __init__(self, home):
        self.told = []
        self.peer = Peer(home, self._tell)
        self.thread = threading.Thread(target=self.peer.run)
        self.thread.start()

    def _tell(self, what, **facts):
        self.told.append((what, facts))
        if what == "round":
            time.sleep(PACE)

    def rounds(self):
        return [facts["round"] for what, facts in list(self.told) if what == "round"]


def until(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("rule", ["laplace", "linear"])  # sites, tracking
def test_who_joins_is_counted_and_who_is_removed_is_not(tmp_path, monkeypatch, rule):
    # Which rows are held back depends on a member's number, which is another one in a simulation of those who are left.
    monkeypatch.setattr(arms, "stream", lambda words, seed, agent: stream(words, seed, 0))
    _, files, task = made(tmp_path, rule, ROUNDS, patience=20.0)
    hill = identity.create(tmp_path / "hill", "hill", f"127.0.0.1:{free_port()}")
    files["hill"] = tmp_path / "hill.csv"
    files["hill"].write_text(files["south"].read_text().replace("0.5", "0.7"))
    living = {name: Living(tmp_path / name) for name in NAMES}
    until(lambda: all(len(one.rounds()) > 5 for one in living.values()))
    newer = Stewardship.open(tmp_path / "steward").add([hill.card]).remove("west").sign()
    newer.write(tmp_path / "newer.bundle")
    join(tmp_path / "hill", tmp_path / "newer.bundle", files["hill"])
    living["hill"] = Living(tmp_path / "hill")
    with pytest.raises(InputError, match="west was removed in epoch 2"):
        take(tmp_path / "west", tmp_path / "newer.bundle")
    assert take(tmp_path / "south", tmp_path / "newer.bundle").roster == newer.roster  # one is enough, while it runs
    for one in living.values():
        one.thread.join(90)
        assert not one.thread.is_alive()
    assert ("removed", {"epoch": newer.roster.epoch}) in living["west"].told
    assert living["west"].rounds()[-1] < ROUNDS
    assert not [facts for one in living.values() for _, facts in one.told if "not signed by" in str(facts)]
    names = ("north", "south", "hill")
    expected = simulated(tmp_path / "all", newer, {name: files[name] for name in names}, task, ROUNDS)
    for number, name in enumerate(names):
        assert living[name].rounds()[-1] == ROUNDS
        assert Bundle.read(tmp_path / name / "study.bundle").roster.epoch == newer.roster.epoch
        own = cs.load(tmp_path / name / "run").flat_belief(0)
        for ours, theirs in zip(own, expected.flat_belief(number), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6 * np.abs(theirs).max())
