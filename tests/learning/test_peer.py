"""Peers over gRPC with mutual TLS, each with its own file, learn what `simulate` does with all files in one place."""

import threading

import numpy as np
import pytest
from peer_homes import NAMES, ROUNDS, RULES, made

import consilience as cs
from consilience.described.settings import validate
from consilience.engines.peers import identity, node
from consilience.engines.peers.waiting import Patience
from consilience.errors import InputError
from consilience.experiments.learn.description import Config
from consilience.learning.peer import Peer
from consilience.runs import run


def lived(folder):
    """Everybody's life to the last round, each in a thread of its own."""
    peers = [Peer(folder / name) for name in NAMES]
    threads = [threading.Thread(target=peer.run) for peer in peers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert not any(thread.is_alive() for thread in threads)
    return peers


@pytest.mark.parametrize("rule", RULES)
def test_peers_are_agents_of_a_simulation(tmp_path, rule):
    bundle, files, task = made(tmp_path, rule)
    peers = lived(tmp_path)
    W = bundle.roster.weights().W.toarray().tolist()
    shares = {"kind": "files", "files": {name: str(file) for name, file in files.items()}}
    network = {"kind": "matrix", "W": W}
    values = {**task, "experiment": "learn", "rounds": ROUNDS, "shares": shares, "network": network}
    folder = run.begin(validate(Config, values), tmp_path / "simulated")
    run.carry_on(folder)
    simulated = cs.load(folder)
    for number, peer in enumerate(peers):
        fit = cs.load(peer.home / "run")
        assert fit.agents == (NAMES[number],)
        for theirs, own in zip(simulated.flat_belief(number), fit.flat_belief(0), strict=True):
            np.testing.assert_allclose(own, theirs, rtol=1e-9, atol=1e-9 * np.abs(theirs).max())
        held_out = simulated.record.select("together", "pooled_held_out_nll")[:, number]
        np.testing.assert_allclose(fit.record.select("together", "pooled_held_out_nll")[:, 0], held_out, rtol=1e-9)
        heard = (peer.home / "run" / "heard.csv").read_text().splitlines()
        assert len(heard) == 1 + ROUNDS * 3  # nobody was missed
        assert fit.predict(np.zeros((2, 3))).probabilities.shape == (2, 2)


def test_a_peer_that_was_stopped_carries_on(tmp_path, monkeypatch):
    """It says goodbye, and is not waited for; when it is started again it plays what is left, alone if it must."""
    made(tmp_path, "sites")
    peers = [Peer(tmp_path / name) for name in NAMES[1:]]
    stopped = Peer(tmp_path / "north", told=lambda what, **facts: what == "round" and stopped.stop())
    threads = [threading.Thread(target=peer.run) for peer in (stopped, *peers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert [peer.node.round for peer in (stopped, *peers)] == [1, ROUNDS, ROUNDS]
    monkeypatch.setattr(node, "Patience", lambda *study: Patience(*study)._replace(round=0.5, gather=0.5))
    again = Peer(tmp_path / "north")
    fit = again.run()
    assert again.node.life.incarnation == 2
    assert fit.record.rounds("together").tolist() == [1, 2, 3]
    sites = again.node.life.mailbox.held()
    assert set(sites) == {0, 1, 2}  # what the others said is still there
    left = {file.name: file.read_bytes() for file in (tmp_path / "north" / "run").iterdir() if file.is_file()}
    with pytest.raises(InputError, match="another process"), run.locked(tmp_path / "north" / "run"):
        Peer(tmp_path / "north").run()
    assert left == {file.name: file.read_bytes() for file in (tmp_path / "north" / "run").iterdir() if file.is_file()}


def test_what_does_not_fit_the_study_is_refused_before_anything_is_kept(tmp_path):
    _, files, _ = made(tmp_path, "pooling")
    stranger = identity.create(tmp_path / "east", "east", "")
    assert stranger.name == "east"
    with pytest.raises(InputError, match="east is not in its roster"):
        Peer.join(tmp_path / "east", tmp_path / "study.bundle", files["north"])
    files["north"].write_text("x0,x1,x2,out\n1,2,3,perhaps\n")
    with pytest.raises(InputError, match=r"north\.csv.*out"):
        Peer.join(tmp_path / "north", tmp_path / "study.bundle", files["north"])
    with pytest.raises(InputError, match="has joined no study"):
        Peer(tmp_path / "east")
