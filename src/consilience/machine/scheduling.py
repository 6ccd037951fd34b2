"""How long a process keeps a core when others want it, too."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from contextlib import suppress

LONG = 100_000_000  # nanoseconds, the most that Linux grants
CALLS = {"x86_64": (315, 314), "aarch64": (275, 274)}  # the numbers of sched_getattr and sched_setattr
ATTRIBUTES = struct.Struct("=IIQiIQQQ")  # their size, policy, flags, nice, priority, runtime, deadline, period


def take_long_turns() -> None:
    """Give up a core less often: what others do there pushes what this process works with out of the cache.

    For one of several processes of a host that all compute at length: nine on two cores, switched every millisecond or
    two, take a fifth longer. Linux obeys from 6.12 on; who has asked for a scheduling of their own keeps it.
    """
    if sys.platform != "linux" or platform.machine() not in CALLS or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return
    asked, told = CALLS[platform.machine()]
    with suppress(OSError, AttributeError, struct.error):  # another C library
        library = ctypes.CDLL(None)
        known = ctypes.create_string_buffer(ATTRIBUTES.size)
        if library.syscall(asked, 0, known, ATTRIBUTES.size, 0) == 0:
            size, _, flags, nice, priority, _, *rest = ATTRIBUTES.unpack(known.raw)
            wanted = ATTRIBUTES.pack(size, os.SCHED_BATCH, flags, nice, priority, LONG, *rest)
            library.syscall(told, 0, wanted, 0)  # refused (a container may): then it stays as it was
