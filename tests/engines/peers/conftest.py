"""Peers that run for a test, and have ended with all their threads when it has."""

import threading

import pytest
from ends import until


@pytest.fixture
def host():
    """Start a peer, with a link to all others of the roster, or to these."""
    from peers_rig import Host  # not for tests that need no gRPC

    hosts, before = [], set(threading.enumerate())

    def running(own, peers, linked=None, **options):
        hosts.append(Host(own, **options).admit(peers, linked))
        hosts[-1].transport.start()
        return hosts[-1]

    yield running
    for one in hosts:
        for end in one.ends.values():
            end.hold.set()
    for one in hosts:
        one.transport.stop()
    until(lambda: {one for one in threading.enumerate() if not one.daemon} <= before, "threads have ended")
