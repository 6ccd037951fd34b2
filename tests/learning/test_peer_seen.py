"""Peers seen from outside: links before the start, and how it goes while they run."""

import http.client
import json
import sys
import threading

import pytest
from peer_homes import NAMES, ROUNDS, made

from consilience.command import main as cli
from consilience.learning.peer import Peer, check, status


def get(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_from_outside(tmp_path, monkeypatch, capsys):
    """One life of three peers answers all questions: before, while and after they run."""
    made(tmp_path, "sites")
    alone = check(tmp_path / "north", seconds=1.0)
    assert [one.neighbour for one in alone] == ["south", "west"]
    assert all("waiting for its call" in one.problem or "nobody listens" in one.problem for one in alone)

    seen = []

    def looks(what, round=0, **facts):
        if what == "round" and round == 2:
            port = json.loads((tmp_path / "north" / "health.json").read_text())["port"]
            seen.extend([status(tmp_path / "north"), get(port, "/health"), get(port, "/metrics"), get(port, "/else")])

    others = [Peer(tmp_path / name) for name in NAMES[1:]]
    threads = [threading.Thread(target=peer.run) for peer in others]
    for thread in threads:
        thread.start()
    found = check(tmp_path / "north", seconds=30.0)  # the others wait for it
    assert [(one.neighbour, one.problem) for one in found] == [("south", ""), ("west", "")]
    assert all(abs(one.clock) < 5 and one.epoch == 1 for one in found)

    north = Peer(tmp_path / "north", looks, health_port=0)
    north.run()
    for thread in threads:
        thread.join(120)
    assert [peer.node.round for peer in (north, *others)] == [ROUNDS] * 3

    told, health, metrics, other = seen
    assert (told["running"], told["exchanging"], told["round"], told["rounds"]) == (True, True, 2, ROUNDS)
    assert {one["name"]: one["state"] for one in told["neighbours"]} == dict.fromkeys(NAMES[1:], "contributing")
    assert all(one["bytes_received"] > 0 and one["last_heard"] < 60 for one in told["neighbours"])
    assert health[0] == 200
    assert json.loads(health[1]) == {"exchanging": True, "reachable": 2, "admitted": 2, "contributing": 2}
    assert "consilience_round 2\n" in metrics[1]
    assert 'consilience_neighbour_contributing{neighbour="south"} 1\n' in metrics[1]
    assert other[0] == 404

    assert not (tmp_path / "north" / "health.json").exists()
    after = status(tmp_path / "north")
    assert (after["running"], after["was"], after["round"]) == (False, "finished", ROUNDS)
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", ["consilience", "peer", "status", "--home", str(tmp_path / "north")])
    with pytest.raises(SystemExit, match="1"):
        cli.main()
    assert capsys.readouterr() == ("", f"error: north does not run: finished, {ROUNDS} rounds are played\n")


@pytest.mark.parametrize("left", ["", "{}", '{"port": 1}', '{"port": "x"}', '{"port": 1e99}'])
def test_what_a_dead_peer_left_is_not_believed(tmp_path, left):
    made(tmp_path, "pooling")
    (tmp_path / "north" / "health.json").write_text(left)
    assert not status(tmp_path / "north")["running"]
