"""Processes that tests start: what they compile, they share, and quickly; signals reach them."""

import os
import signal
from contextlib import contextmanager
from pathlib import Path

ONE_DEVICE = "--xla_force_host_platform_device_count=1"  # as many as a process of the tests has cores
PROGRAMS = Path(__file__).parents[1] / ".pytest_cache" / "programs"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def environment(**others: str) -> dict[str, str]:
    """This one's, with compiled programs kept where tests keep theirs, and one device: others run beside it."""
    kept = {
        "JAX_COMPILATION_CACHE_DIR": str(PROGRAMS),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "PYTHONDONTWRITEBYTECODE": "",  # what one child has compiled, the next one need not
    }
    return {**os.environ, "XLA_FLAGS": ONE_DEVICE, **kept, **others}


def quickly(**others: str) -> dict[str, str]:
    """The same for programs that play only a little: compiling takes longer than they do."""
    flags = f"{others.pop('XLA_FLAGS', ONE_DEVICE)} --xla_cpu_use_fusion_emitters=false"
    return environment(JAX_DISABLE_MOST_OPTIMIZATIONS="1", XLA_FLAGS=flags, **others)


@contextmanager
def heard():
    """A process started in here hears signals, also where tests are started not to (with nohup, or in a script by &).

    A child inherits what is ignored, but no handler.
    """
    ignored = [number for number in SIGNALS if signal.getsignal(number) == signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
