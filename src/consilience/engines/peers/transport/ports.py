"""Ports on this machine, for peers that are only tried."""

from __future__ import annotations

import errno
import secrets
import socket
from contextlib import ExitStack
from pathlib import Path

FIRST = 10_000
GIVEN_OUT = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_ports(count: int) -> list[int]:
    """Different ports of the loopback address that nobody has now, and that no connection is given meanwhile.

    Linux gives ports from a range of its own to whoever connects: of fifty peers that start one after the other, one
    would find its port taken by another's connection.

    >>> ports = free_ports(3)
    >>> len(set(ports)), all(isinstance(port, int) for port in ports)
    (3, True)
    """
    left = list(range(FIRST, _first_given_out()))
    secrets.SystemRandom().shuffle(left)
    with ExitStack() as held:  # all at once, so that they are different
        found: list[int] = []
        while len(found) < count:
            one = held.enter_context(socket.socket())
            try:
                one.bind(("127.0.0.1", left.pop() if left else 0))
            except OSError as error:
                if error.errno not in (errno.EADDRINUSE, errno.EACCES) or not left:
                    raise
                continue
            found.append(int(one.getsockname()[1]))
        return found


def free_port() -> int:
    """One of them."""
    return free_ports(1)[0]


def _first_given_out() -> int:
    try:
        return int(GIVEN_OUT.read_text().split()[0])
    except (OSError, ValueError, IndexError):  # not Linux: whatever the system gives
        return FIRST
