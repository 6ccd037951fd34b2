"""Peers over gRPC with mutual TLS, each with its own file, learn what `simulate` does with all files in one place."""

import sys
import threading

import numpy as np
import pytest
from peer_homes import NAMES, ROUNDS, made, simulated

import consilience as cs
from consilience.command import main as cli
from consilience.engines.peers import identity, node
from consilience.engines.peers.bundle import Bundle
from consilience.engines.peers.steward import Stewardship
from consilience.engines.peers.waiting import Patience
from consilience.errors import InputError
from consilience.learning import together
from consilience.learning.home import join, take
from consilience.learning.peer import Peer
from consilience.network import read_turns
from consilience.runs import folder as files_of_runs
from consilience.runs import run
from consilience.runs.heard import participants


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


def assert_same_beliefs(peers, together):
    for number, peer in enumerate(peers):
        fit = cs.load(peer.home / "run")
        assert fit.agents == (NAMES[number],)
        for theirs, own in zip(together.flat_belief(number), fit.flat_belief(0), strict=True):
            np.testing.assert_allclose(own, theirs, rtol=1e-9, atol=1e-9 * np.abs(theirs).max())


OTHERS = [pytest.param(rule, marks=pytest.mark.soak) for rule in ("laplace", "corrected", "natural", "gossip")]
LONG_ENOUGH = 25  # for a regression to come to rest


@pytest.mark.parametrize("rule", ["pooling", "sites", "tracking", *OTHERS])
def test_peers_are_agents_of_a_simulation(tmp_path, rule):
    """Their beliefs, their scores, and the report of their folders put together."""
    bundle, files, task = made(tmp_path, rule)
    peers = lived(tmp_path)
    run_of_all = simulated(tmp_path / "simulated", bundle, files, task)
    assert_same_beliefs(peers, run_of_all)
    for peer in peers:
        heard = (peer.home / "run" / "heard.csv").read_text().splitlines()
        assert len(heard) == 1 + ROUNDS * 3  # nobody was missed
        assert cs.load(peer.home / "run").predict(np.zeros((2, 3))).probabilities.shape == (2, 2)
    told = together.report(together.gathered([tmp_path / name for name in NAMES]), tmp_path / "together")
    expected = run.report(tmp_path / "simulated")
    assert told["rows"] == expected["rows"]
    assert told["tested_on"] == expected["tested_on"]
    assert told["figures"] == expected["figures"]
    for which in ("average", "average_pooled"):
        assert told["arms"]["together"][which] == pytest.approx(expected["arms"]["together"][which], rel=1e-9)
    for name in NAMES:
        theirs = expected["arms"]["together"]["agents"][name]
        assert told["arms"]["together"]["agents"][name] == pytest.approx(theirs, rel=1e-9)


def test_where_messages_are_lost_the_realised_weights_give_the_same_beliefs(tmp_path, monkeypatch):
    """What was heard is written down; played again in `simulate` it ends with what the peers ended with."""
    rounds, lost = 6, []
    bundle, files, task = made(tmp_path, "pooling", rounds, patience=1.0)
    send = node.Node.send

    def losing(self, neighbour, said):
        if np.random.default_rng([self.membership.me, neighbour, said.round]).random() < 0.3:
            lost.append((self.membership.me, neighbour, said.round))
        else:
            send(self, neighbour, said)

    monkeypatch.setattr(node.Node, "send", losing)
    monkeypatch.setattr(node, "Patience", lambda *study: Patience(*study)._replace(stay=1.0))
    peers = lived(tmp_path)
    homes = [tmp_path / name for name in NAMES]
    together.report(together.gathered(homes), tmp_path / "together")
    turns = read_turns(tmp_path / "together" / "turns-together.csv")
    heard = [(s, r, t) for t, turn in enumerate(turns, 1) for r, s in zip(turn.receivers, turn.senders, strict=True)]
    assert lost
    assert not {*lost} & {*heard}
    changes = {"replay": str(tmp_path / "together" / "turns-together.csv")}
    assert_same_beliefs(peers, simulated(tmp_path / "simulated", bundle, files, task, rounds, changes=changes))
    with pytest.raises(InputError, match="'north' is given twice"):
        together.gathered([*homes, homes[0]])
    with pytest.raises(InputError, match="is not a peer's"):
        together.gathered([*homes, tmp_path / "simulated"])
    files_of_runs.note(homes[1] / "run", study="another")
    with pytest.raises(InputError, match="north and south were not in one study"):
        together.gathered(homes)
    files_of_runs.note(homes[1] / "run", study=bundle.study.hash)
    named = together.gathered(homes[:2])
    assert together.realised(named) is None  # west was heard, and its folder is not here
    assert together.put_together(named).shares["agents"] == list(NAMES[:2])
    heard = homes[0] / "run" / "heard.csv"
    heard.write_bytes(heard.read_bytes().replace(b",west,", b",none,"))
    with pytest.raises(InputError, match=r"heard\.csv' is damaged"):
        together.gathered(homes)
    with pytest.raises(InputError, match=r"heard\.csv' is damaged"):
        Peer(homes[0]).run()


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
    heard = tmp_path / "north" / "run" / "heard.csv"
    before = heard.read_text()
    heard.write_text(before + "1,so")  # a line that a crash has torn
    again = Peer(tmp_path / "north")
    fit = again.run()
    assert heard.read_text().startswith(before)
    assert "1,so\n" not in heard.read_text().removeprefix(before)
    assert again.node.life.incarnation == 2
    assert fit.record.rounds("together").tolist() == [1, 2, 3]
    sites = again.node.life.mailbox.held()
    assert set(sites) == {0, 1, 2}  # what the others said is still there
    left = {file.name: file.read_bytes() for file in (tmp_path / "north" / "run").iterdir() if file.is_file()}
    with pytest.raises(InputError, match="another process"), run.locked(tmp_path / "north" / "run"):
        Peer(tmp_path / "north").run()
    assert left == {file.name: file.read_bytes() for file in (tmp_path / "north" / "run").iterdir() if file.is_file()}


def test_who_is_stopped_while_it_waits_has_lost_no_round(tmp_path):
    """It is in the middle of the round, also when that happens again, and hears others in it once they are there."""
    made(tmp_path, "pooling")
    for _ in range(2):
        told = []
        north = Peer(tmp_path / "north", told=lambda what, **facts: told.append((what, facts)))  # noqa: B023
        timer = threading.Timer(1.0, north.stop)
        timer.start()
        north.run()
        assert (north.node.round, north.node.played_rounds) == (1, 0)
        assert [what for what, _ in told] == ["listening", "stopped"]
        assert participants(tmp_path / "north" / "run").missing == NAMES  # as yet
    lived(tmp_path)
    assert len((tmp_path / "north" / "run" / "heard.csv").read_text().splitlines()) == 1 + ROUNDS * 3


def test_whose_data_is_missing_is_said(tmp_path, monkeypatch, capsys):
    """One of three never comes, no row is held out: what is left can be used and told, with whose data it is."""
    made(tmp_path, "laplace", rounds=LONG_ENOUGH, held_out=0)
    monkeypatch.setattr(node, "Patience", lambda *study: Patience(*study)._replace(round=2.0, gather=5.0, stay=0.5))
    monkeypatch.setattr(node, "TOLD_AFTER", 0.5)
    told = []
    peers = [Peer(tmp_path / "north", told=lambda what, **facts: told.append((what, facts))), Peer(tmp_path / "south")]
    threads = [threading.Thread(target=peer.run) for peer in peers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert [peer.node.played_rounds for peer in peers] == [LONG_ENOUGH] * 2
    waited = [facts["names"] for what, facts in told if what == "waiting"]
    assert len(waited) == 1
    assert any("west" in name for name in waited[0])
    missing = "west was never heard: nothing of its data is in what was learnt"
    assert participants(tmp_path / "north" / "run").note == missing
    for verb, said in (("coefficients", "a regression on the data of north and south, with"), ("report", "")):
        monkeypatch.setattr(sys, "argv", ["consilience", verb, str(tmp_path / "north" / "run")])
        with pytest.raises(SystemExit, match="0"):
            cli.main()
        out = " ".join(capsys.readouterr().out.split())
        assert missing in out
        assert said in out
    with pytest.raises(InputError, match="is a peer's: consilience peer start carries it on"):
        run.carry_on(tmp_path / "north" / "run")
    summary = together.report(together.gathered([tmp_path / "north", tmp_path / "south"]), tmp_path / "together")
    assert summary["note"] == f"at north: {missing}; at south: {missing}"
    assert summary["figures"] == ["figures/shares.png"]
    heard = tmp_path / "north" / "run" / "heard.csv"
    heard.write_bytes(heard.read_bytes()[:-3])
    capsys.readouterr()
    for words in (["coefficients"], ["report"], ["predict", str(tmp_path / "south.csv")]):
        monkeypatch.setattr(sys, "argv", ["consilience", words[0], str(heard.parent), *words[1:]])
        with pytest.raises(SystemExit, match="2"):
            cli.main()
        out, err = capsys.readouterr()
        assert out == ""  # what is damaged is found before anything is said
        assert "heard.csv' has" in err
    checkpoint = heard.parent / "checkpoint.safetensors"
    checkpoint.write_bytes(checkpoint.read_bytes()[:7])
    before = (heard.parent / "run.json").read_bytes()
    with pytest.raises(InputError, match="cannot be read"):
        join(tmp_path / "north", tmp_path / "study.bundle", tmp_path / "north.csv")
    assert (heard.parent / "run.json").read_bytes() == before  # nor is anything written


def test_what_does_not_fit_the_study_is_refused_before_anything_is_kept(tmp_path):
    _, files, _ = made(tmp_path, "pooling")
    stranger = identity.create(tmp_path / "east", "east", "")
    assert stranger.name == "east"
    with pytest.raises(InputError, match="east is not in its roster"):
        join(tmp_path / "east", tmp_path / "study.bundle", files["north"])
    files["north"].write_text("x0,x1,x2,out\n1,2,3,perhaps\n")
    with pytest.raises(InputError, match=r"north\.csv.*out"):
        join(tmp_path / "north", tmp_path / "study.bundle", files["north"])
    with pytest.raises(InputError, match="has joined no study"):
        Peer(tmp_path / "east")


def test_a_peer_of_a_program_keeps_to_its_data_and_to_the_newest_roster(tmp_path):
    """What was learnt from stays what it is; before anything was, another file may take its place."""
    bundle, files, _ = made(tmp_path, "sites")
    home, study = tmp_path / "north", tmp_path / "study.bundle"
    newer = Stewardship.open(tmp_path / "steward").remove("west").sign()
    newer.write(home / "study.bundle")
    assert Peer.open(home, study, files["south"]).config.shares.files == {"north": files["south"]}
    assert Bundle.read(home / "study.bundle").roster.epoch == bundle.roster.epoch + 1
    peer = Peer.open(home, study, str(files["north"]), told=lambda what, **facts: what == "round" and peer.stop())
    threading.Timer(2.0, peer.stop).start()
    peer.run()
    with pytest.raises(InputError, match=r"south\.csv' is not what was learnt from so far"):
        Peer.open(home, study, files["south"])
    Peer.open(home, study, files["north"])
    files["north"].write_text(files["north"].read_text() + "0,0,0,yes\n")
    with pytest.raises(InputError, match=r"shares\.files\.north: .*was changed"):
        Peer(home).run()
    with pytest.raises(InputError, match="share: is not what was learnt from so far"):
        Peer.open(home, study, (np.zeros((2, 3)), ["no", "yes"]))
    with pytest.raises(InputError, match="share: must be a file or a pair of arrays"):
        Peer.open(home, study, 3)


def test_a_bundle_of_another_steward_does_not_take_the_place_of_the_one_that_was_joined(tmp_path):
    """The same study, the same epoch, somebody else's key: whoever makes that would say who takes part."""
    bundle, files, _ = made(tmp_path, "pooling")
    evil = identity.create(tmp_path / "evil", "evil")
    cards = [identity.load(tmp_path / "north").card, evil.card]
    forged = Stewardship.begin(tmp_path / "forged", bundle.study, "steward").add(cards).link(["ring"])
    before = (tmp_path / "north" / "study.bundle").read_bytes()
    for more in (0, 1):
        (forged.remove("evil") if more else forged).sign().write(tmp_path / "forged.bundle")
        with pytest.raises(InputError, match="signed by somebody else than the steward"):
            join(tmp_path / "north", tmp_path / "forged.bundle", files["north"])
        with pytest.raises(InputError, match="signed by somebody else than the steward"):
            take(tmp_path / "north", tmp_path / "forged.bundle")
    assert (tmp_path / "north" / "study.bundle").read_bytes() == before


def test_who_is_stopped_in_the_middle_of_the_last_round_has_not_finished(tmp_path):
    made(tmp_path, "pooling", rounds=1)
    north = Peer(tmp_path / "north")
    threading.Timer(1.0, north.stop).start()
    north.run()
    assert files_of_runs.facts(tmp_path / "north" / "run")["status"] == "stopped"
