"""How long turns on a core are, in processes of their own: a test's workers are to stay as they are."""

import subprocess
import sys

import pytest

from consilience.machine.scheduling import ATTRIBUTES

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux grants it")

TOLD = """
import ctypes, os, platform, threading
from consilience.machine.scheduling import ATTRIBUTES, CALLS, take_turns_of

def told():
    own = ctypes.create_string_buffer(ATTRIBUTES.size)
    assert ctypes.CDLL(None).syscall(CALLS[platform.machine()][0], 0, own, ATTRIBUTES.size, 0) == 0
    print(*ATTRIBUTES.unpack(own.raw))

{first}
told()
over = threading.Event()
thread = threading.Thread(target=lambda: (over.wait(), told()))
thread.start()
take_turns_of({seconds})
told()
over.set()
thread.join()
"""


def told(seconds, first=""):
    """What Linux says of a process before and after, and of a thread that had begun before."""
    program = TOLD.format(first=first, seconds=seconds)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return [tuple(map(int, line.split())) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(("seconds", "granted"), [(0.05, 50_000_000), (3.0, 100_000_000)])
def test_turns_are_long_where_linux_grants_it_in_all_threads_and_nothing_else_changes(seconds, granted):
    before, after, of_the_thread = told(seconds, "os.nice(5)")
    size, _, flags, nice, priority, runtime, *rest = before
    assert size == ATTRIBUTES.size
    assert nice >= 5
    assert after == of_the_thread
    assert after in [
        before,  # a container may refuse it
        (size, 3, flags, nice, priority, runtime, *rest),  # an older Linux knows no length
        (size, 3, flags, nice, priority, granted, *rest),
    ]


@pytest.mark.parametrize(
    ("seconds", "first"), [(0.005, ""), (0.05, "os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))")]
)
def test_who_computes_shortly_or_has_asked_for_a_scheduling_stays_as_it_was(seconds, first):
    before, after, of_the_thread = told(seconds, first)
    assert before == after == of_the_thread
