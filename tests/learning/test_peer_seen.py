"""Peers seen from outside: links before the start, and how it goes while they run."""

import http.client
import json
import subprocess
import sys
import threading
import time

import pytest
from children import heard, quickly
from peer_homes import NAMES, ROUNDS, made

from consilience.command import main as cli
from consilience.engines.peers import node
from consilience.engines.peers.status import Status
from consilience.engines.peers.transport.health import HealthPort
from consilience.engines.peers.waiting import Patience
from consilience.errors import InputError
from consilience.learning import together
from consilience.learning.asking import block, check, leave, status
from consilience.learning.peer import Peer


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


def test_who_is_blocked_is_not_heard_any_more(tmp_path, monkeypatch):
    """Its weight returns to the own belief, and what it says is not computed with; others go on as they were."""
    monkeypatch.setattr(node, "Patience", lambda *study: Patience(*study)._replace(round=0.5, stay=0.5))
    made(tmp_path, "pooling")
    news = []

    def blocks(what, **facts):
        news.append((what, facts))
        if what == "round" and facts["round"] == 1:
            block(tmp_path / "north", "west")

    peers = [Peer(tmp_path / "north", blocks), *(Peer(tmp_path / name) for name in NAMES[1:])]
    threads = [threading.Thread(target=peer.run) for peer in peers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert [peer.node.round for peer in peers] == [ROUNDS] * 3
    assert ("blocked", {"names": ["west"]}) in news
    assert peers[0].node.status().blocked == ("west",)
    heard = together.read(tmp_path / "north").heard
    by_round = {
        number: {one.name: one.weight for one in heard if one.round == number} for number in range(1, ROUNDS + 1)
    }
    assert by_round[1] == pytest.approx(dict.fromkeys(NAMES, 1 / 3))
    for number in range(2, ROUNDS + 1):
        assert "west" not in by_round[number]
        assert sum(by_round[number].values()) == pytest.approx(1)
    block(tmp_path / "north", "west", undo=True)
    with pytest.raises(InputError, match="nobody called 'west' is blocked"):
        block(tmp_path / "north", "west", undo=True)
    for name, message in (("north", "is you"), ("nobody", "nobody is called")):
        with pytest.raises(InputError, match=message):
            block(tmp_path / "north", name)
    (tmp_path / "north" / "blocked.json").write_text('{"a": 1}')
    with pytest.raises(InputError, match=r"blocked\.json' is damaged"):
        Peer(tmp_path / "north").run()


@pytest.mark.soak  # a process of its own takes its time to begin
def test_leaving_is_a_courtesy(tmp_path):
    """A real process that waits for its neighbours is asked to go, and says from where it carries on."""
    made(tmp_path, "sites")
    home = tmp_path / "north"
    command = "from consilience.command.main import main; main()"
    words = [sys.executable, "-c", command, "peer", "start", "--home", str(home)]
    with pytest.raises(InputError, match="north does not run"):
        leave(home)
    with heard():
        process = subprocess.Popen(words, env=quickly(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        _until(lambda: status(home)["running"] and status(home)["round"] == 1)
        told = status(home)
        assert (told["exchanging"], {one["state"] for one in told["neighbours"]}) == (False, {"away"})
        assert leave(home) == 0  # it has heard nobody yet: its first round waits for them
        _, complaint = process.communicate(timeout=30)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 1
    carry_on = f"carry on with: consilience peer start --home {home}"
    assert complaint == f"error: stopped after round 0 of {ROUNDS}; {carry_on}\n"


@pytest.mark.soak
def test_peers_of_a_demo_end_with_it(tmp_path):
    """Also where it is killed without a word."""
    words = ["peer", "demo", "--agents", "2", "--rounds", "100000", "--out", str(tmp_path / "demo"), "-q"]
    process = subprocess.Popen([sys.executable, "-m", "consilience.command.main", *words], env=quickly())
    homes = [tmp_path / "demo" / name for name in ("north", "east")]
    try:
        _until(lambda: all((home / "health.json").exists() and status(home)["round"] > 1 for home in homes))
    finally:
        process.kill()
        process.wait()
    _until(lambda: not any(status(home)["running"] for home in homes))
    assert all(status(home)["was"] == "stopped" for home in homes)


def _until(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_somebody_else_at_the_port_is_not_believed(tmp_path):
    """A name can be said by anybody; `leave` would send a signal to whatever process it tells."""
    made(tmp_path, "pooling")
    told = Status("north", "trial", 1, "0", 1, 3, {}, (), pid=0)
    other = HealthPort(lambda: told)
    try:
        (tmp_path / "north" / "health.json").write_text(json.dumps({"port": other.port, "pid": 4_000_000}))
        with pytest.raises(InputError, match="does not run"):
            leave(tmp_path / "north")
    finally:
        other.close()


@pytest.mark.parametrize("left", ["", "{}", '{"port": 1}', '{"port": "x"}', '{"port": 1e99}', "[" * 10**5])
def test_what_a_dead_peer_left_is_not_believed(tmp_path, left):
    made(tmp_path, "pooling")
    (tmp_path / "north" / "health.json").write_text(left)
    assert not status(tmp_path / "north")["running"]
