"""What is held while a case runs: its streams, its time and its environment."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator


class TooLong(BaseException):
    """A case that does not end."""


@contextlib.contextmanager
def captured() -> Iterator[Callable[[], tuple[str, str]]]:
    """What goes to the two streams, from Python and from libraries below it."""
    sys.stdout.flush()
    sys.stderr.flush()
    files = [open(os.memfd_create(name), "r+b", buffering=0) for name in ("out", "err")]  # noqa: SIM115
    kept, streams = [os.dup(1), os.dup(2)], (sys.stdout, sys.stderr)
    texts = ["", ""]
    os.dup2(files[0].fileno(), 1)
    os.dup2(files[1].fileno(), 2)
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(io.FileIO(number, "w", closefd=False), "utf-8", write_through=True) for number in (1, 2)
    )
    try:
        yield lambda: (texts[0], texts[1])
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        sys.stdout, sys.stderr = streams
        for number, (copy, file) in enumerate(zip(kept, files, strict=True)):
            os.dup2(copy, number + 1)
            os.close(copy)
            file.seek(0)
            texts[number] = file.read().decode("utf-8", "backslashreplace")
            file.close()


@contextlib.contextmanager
def alarm(limit: float) -> Iterator[None]:
    """Nothing in here takes longer than so many seconds of processor time."""

    def ring(*_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 1.0)  # again, should somebody swallow it
        raise TooLong

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextlib.contextmanager
def replaced_environment(values: dict[str, str]) -> Iterator[None]:
    """With these variables, and afterwards with those of before."""
    before, argv = dict(os.environ), sys.argv
    os.environ.update(values)
    try:
        yield
    finally:
        sys.argv = argv
        os.environ.clear()
        os.environ.update(before)
