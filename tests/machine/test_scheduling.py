"""How long turns on a core are, in processes of their own: a test's workers are to stay as they are."""

import subprocess
import sys

import pytest

from consilience.machine.scheduling import ATTRIBUTES, LONG

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux grants it")

TOLD = """
import ctypes, os, platform, threading
from consilience.machine.scheduling import ATTRIBUTES, CALLS, take_long_turns

def known():
    own = ctypes.create_string_buffer(ATTRIBUTES.size)
    assert ctypes.CDLL(None).syscall(CALLS[platform.machine()][0], 0, own, ATTRIBUTES.size, 0) == 0
    print(*ATTRIBUTES.unpack(own.raw))

{first}
known()
take_long_turns()
known()
thread = threading.Thread(target=known)
thread.start()
thread.join()
"""


def told(first=""):
    """What Linux says of a process before and after, and of a thread that begins then."""
    done = subprocess.run([sys.executable, "-c", TOLD.format(first=first)], capture_output=True, text=True, check=True)
    return [tuple(map(int, line.split())) for line in done.stdout.splitlines()]


def test_turns_are_long_where_linux_grants_it_for_later_threads_too_and_nothing_else_changes():
    before, after, of_a_thread = told("os.nice(5)")
    assert after == of_a_thread
    assert before[3] == after[3] >= 5  # the nice value
    size, policy, flags, nice, priority, runtime, *rest = before
    assert runtime < LONG
    assert after in [
        before,  # a container may refuse it
        (size, 3, flags, nice, priority, runtime, *rest),  # an older Linux knows no length
        (size, 3, flags, nice, priority, LONG, *rest),
    ]
    assert ATTRIBUTES.size == size


def test_who_has_asked_for_a_scheduling_keeps_it():
    before, after, _ = told("os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))")
    assert before == after
