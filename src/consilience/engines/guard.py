"""A process that stands by while another one works, and says in one line why it ended.

When a host is lost, JAX's runtime ends the process on every other host at once, from inside, with a stack trace. The
command therefore works in a child process on several hosts; what the runtime writes goes to a log of its own.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from consilience.engines.hosts import HEARTBEAT
from consilience.machine import stopping

NOT_ALL = "hosts: not all came within {timeout} s ({hosts} were expected)"
LOST = (
    f"another host was lost: it ended, or gave no sign of life for {HEARTBEAT} s; carry on from the last checkpoint, "
    "on the same or another number of hosts, with: consilience resume {folder}"
)


LOSS = "lost"


class Guard:
    """Words to the process that stands by: what to say if this one is ended from inside."""

    def __init__(self, pipe: int | None = None) -> None:
        self._pipe = pipe

    def if_lost(self, words: str) -> None:
        """Say these words then, instead of the ones before."""
        self._leave(LOSS, words)

    def is_over(self, words: str = "", code: int = 0) -> None:
        """Nothing can be lost any more: while hosts part, too, the runtime may end this process from inside."""
        self._leave(str(code), words)

    def _leave(self, kind: str, words: str) -> None:
        if self._pipe is not None:
            os.write(self._pipe, f"{kind}\t{words}\n".encode(errors="backslashreplace"))


def end_without_waiting(code: object) -> None:
    """End a guarded process that failed, at once: at a proper end the runtime would wait for the other hosts."""
    if code and _standing_by:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def is_guarded() -> bool:
    """Whether another process stands by for this one."""
    return bool(_standing_by)


_standing_by: list[int] = []  # the process that stands by for this one


def guarded(words: str, say: Callable[[str], None]) -> Guard:
    """Go on in a child process; the one that called stands by and never returns from here. Call it before JAX starts.

    Should the child be ended by a signal, `say` says the last words it left, and where the log of the runtime is.
    """
    noise = tempfile.NamedTemporaryFile(prefix="consilience-", suffix=".log", delete=False)  # noqa: SIM115
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    with stopping.blocked():
        child = os.fork()
        with suppress(OSError):  # both say it, because either may be the first
            os.setpgid(child, child)  # signals from a terminal come once, through the one that stands by
        if child:
            _forward_signals(child)
        else:
            stopping.listen_again()
    if child:
        os.close(writing)
        _stand_by(child, reading, words, Path(noise.name), say)
    os.close(reading)
    _keep_runtime_quiet(noise.fileno())
    _standing_by.append(os.getppid())
    threading.Thread(target=_end_with, args=_standing_by, daemon=True).start()
    return Guard(writing)


def _forward_signals(child: int) -> None:
    stopping.stop_listening()
    for number in stopping.SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, _: os.kill(child, number))


def _stand_by(child: int, reading: int, words: str, noise: Path, say: Callable[[str], None]) -> NoReturn:
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        left = b""
        while piece := os.read(reading, 1 << 16):
            left += piece
        kind, last = ([LOSS, words], *(line.split("\t", 1) for line in left.decode().splitlines()))[-1]
        by = signal.Signals(os.WTERMSIG(status))
        if by != signal.SIGABRT:
            kind, last = "1", f"the run was ended on this host by {by.name}"
        if kind == LOSS:  # from inside
            say(f"{last} (what the runtime wrote: {noise})")
            raise SystemExit(1)
        noise.unlink(missing_ok=True)
        if last:
            say(last)
        raise SystemExit(int(kind))
    noise.unlink(missing_ok=True)
    raise SystemExit(os.waitstatus_to_exitcode(status))


def _keep_runtime_quiet(noise: int) -> None:
    """Python goes on writing where it did; what libraries write to the streams themselves goes to the log."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        kept = os.dup(number)
        os.dup2(noise, number)
        stream = getattr(sys, name)
        again = os.fdopen(kept, "w", buffering=1, encoding=stream.encoding, errors=stream.errors)
        setattr(sys, name, again)


def _end_with(parent: int) -> None:
    """A worker whose guard was killed ends too: nobody would stop it any more."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
