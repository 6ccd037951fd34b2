"""Ports on this machine, for peers that are only tried."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port of the loopback address that nobody has now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
