"""Ports for peers that are tried: different ones, that no connection is given meanwhile."""

import socket

import pytest

from consilience.engines.peers.transport import ports
from consilience.engines.peers.transport.ports import free_port, free_ports


@pytest.mark.skipif(not ports.GIVEN_OUT.exists(), reason="Linux tells which ports it gives to connections")
def test_fifty_ports_are_different_and_none_is_given_to_connections():
    found = free_ports(50)
    assert len(set(found)) == 50
    first, last = map(int, ports.GIVEN_OUT.read_text().split())
    assert not any(first <= port <= last for port in found)


def test_what_somebody_has_is_not_free(monkeypatch, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", free_port()))
        number = taken.getsockname()[1]
        (tmp_path / "range").write_text(f"{number + 2}\t{number + 9}\n")
        monkeypatch.setattr(ports, "GIVEN_OUT", tmp_path / "range")
        monkeypatch.setattr(ports, "FIRST", number)
        assert free_port() == number + 1


def test_where_nothing_tells_the_range_the_system_chooses(monkeypatch, tmp_path):
    monkeypatch.setattr(ports, "GIVEN_OUT", tmp_path / "range")
    assert len(set(free_ports(3))) == 3
