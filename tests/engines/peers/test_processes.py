"""Peers in processes of their own: killed, restarted, told to stop; none of them writes what it was not asked to."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from children import environment, heard
from ends import PATIENCE, number_of, numbered, until
from peers_rig import free_address, peer

from consilience.engines.peers.wire import Kind, parsed

PROGRAM = Path(__file__).parents[2] / "echoing_peer.py"


@pytest.fixture
def process():
    """Start a peer in a process of its own; whatever is left is killed."""
    begun = []

    def starting(own, peers, *words):
        with heard():
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
            known = environment(PYTHONWARNINGS="error")
            begun.append(subprocess.Popen([sys.executable, str(PROGRAM), *words], env=known, **pipes))
        begun[-1].stdin.write(
            json.dumps(
                {
                    "private_pem": own.own.private_pem.decode(),
                    "certificate": own.own.certificate,
                    "id": own.id,
                    "members": [one.member for one in peers],
                    "listen": own.member.address,
                }
            )
        )
        begun[-1].stdin.close()
        begun[-1].stdin = None
        assert begun[-1].stdout.readline() == "ready\n", begun[-1].stderr.read()
        return begun[-1]

    yield starting
    for one in begun:
        one.kill()
        one.communicate()


def ended(one):
    out, complaint = one.communicate(timeout=PATIENCE)
    return one.returncode, out, complaint


@pytest.mark.parametrize("calls", [True, False], ids=["it calls", "it is called"])
def test_a_peer_that_is_killed_and_comes_back_is_connected_again(host, process, calls):
    """Killed with no time for anything; then told to stop, which it does with a goodbye, and says nothing on stderr."""
    here, there = peer(0 if calls else 1, "here", free_address()), peer(1 if calls else 0, "there", free_address())
    one = host(here, [here, there])
    first = process(there, [here, there])
    one.end(there).send(numbered(1, 1 << 20))
    until(lambda: [number_of(content) for content in one.end(there).received] == [1])
    first.send_signal(signal.SIGKILL)
    first.wait(PATIENCE)
    until(lambda: not one.end(there).is_open)
    assert one.end(there).log[-1].startswith("closed: the connection was lost")
    second = process(there, [here, there])
    one.end(there).send(numbered(2))
    until(lambda: [number_of(content) for content in one.end(there).received] == [1, 2])
    second.send_signal(signal.SIGTERM)
    assert ended(second) == (0, "", "")
    until(lambda: not one.end(there).is_open)
    assert parsed(one.end(there).received[-1])[0] is Kind.GOODBYE
    assert one.end(there).log[-1] == "closed: the other end closed the connection"


@pytest.mark.parametrize("calls", [True, False], ids=["it calls", "it is called"])
def test_a_program_that_forgets_to_stop_ends_nevertheless(host, process, calls):
    here, there = peer(0 if calls else 1, "here", free_address()), peer(1 if calls else 0, "there", free_address())
    one = host(here, [here, there])
    other = process(there, [here, there], "--forgets")
    until(lambda: one.state(there) == "connected")
    other.send_signal(signal.SIGTERM)
    assert ended(other) == (0, "", "")


def test_what_is_refused_is_not_written_to_stderr(host, process):
    """A stranger calls, and is called by a member: gRPC would complain on both sides."""
    here, there = peer(0, "here", free_address()), peer(1, "there", free_address())
    other = process(there, [there])
    stranger = host(here, [here, there._replace(member=there.member._replace(number=-1))])
    until(lambda: "closed the connection when it saw our certificate" in stranger.state(there))
    other.send_signal(signal.SIGTERM)
    assert ended(other) == (0, "", "")
