"""How long a process keeps a core when others want it, too."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from contextlib import suppress

LEAST, MOST = 0.02, 0.1  # seconds: what is worth it, and what Linux grants
CALLS = {"x86_64": (315, 314), "aarch64": (275, 274)}  # the numbers of sched_getattr and sched_setattr
ATTRIBUTES = struct.Struct("=IIQiIQQQ")  # their size, policy, flags, nice, priority, runtime, deadline, period


def take_turns_of(seconds: float) -> None:
    """Keep a core for about so long at a time: others there push what this process works with out of the cache.

    For one of several processes of a host that all compute for so long at once: nine on two cores, switched every
    millisecond or two, take a tenth longer. Where each computes for a few milliseconds only it would have them wait for
    one another, and nothing is done. Linux obeys from 6.12 on; who has asked for a scheduling of their own keeps it.
    """
    if sys.platform != "linux" or platform.machine() not in CALLS or seconds < LEAST:
        return
    asked, told = CALLS[platform.machine()]
    with suppress(OSError, AttributeError):  # another C library, or a thread that has just ended
        library = ctypes.CDLL(None)
        for thread in map(int, os.listdir("/proc/self/task")):
            known = ctypes.create_string_buffer(ATTRIBUTES.size)
            if library.syscall(asked, thread, known, ATTRIBUTES.size, 0) != 0:
                continue
            size, policy, flags, nice, priority, _, *rest = ATTRIBUTES.unpack(known.raw)
            wished = int(1e9 * min(seconds, MOST))
            if policy == os.SCHED_OTHER:  # where it is refused (a container may) it stays as it was
                library.syscall(
                    told, thread, ATTRIBUTES.pack(size, os.SCHED_BATCH, flags, nice, priority, wished, *rest), 0
                )
