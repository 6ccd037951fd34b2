"""How the command is stopped: Ctrl-C, SIGTERM and SIGHUP are one and the same, at any moment.

A signal ends the command at once with one line, unless something has been begun that should be left in order: then it
raises KeyboardInterrupt (`unwinding`), or is only noted, the first time (`asking`). Python hears a signal when the
library call that it is in returns, which may be minutes of compiling or playing later, so a thread listens too: what
has not ended in time is ended there.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE = 3.0  # seconds in which what was begun is left in order
SHOW_CURSOR = b"\x1b[?25h"  # a progress bar hides it


def _nothing() -> None:
    """Where nothing is to be done."""


@dataclass
class _Now:
    """What a signal means at this moment."""

    words: str = "stopped"
    at_once: bool = True
    polite: bool = False
    tell: Callable[[], None] = _nothing
    note: Callable[[], None] = _nothing
    heard: int = 0  # by Python
    noticed: int = 0  # by the thread
    ending: int | None = None  # the thread that ends the process
    left: threading.Event = field(default_factory=threading.Event)


_now = _Now()


def asked() -> bool:
    """Whether there was a signal."""
    return bool(_now.heard or _now.noticed)


@contextmanager
def signals_obeyed() -> Iterator[None]:
    """Listen to signals from here on; those that are ignored (nohup) stay ignored."""
    global _now
    _now = _Now()
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        if before[number] != signal.SIG_IGN:
            signal.signal(number, _hear)
    listen_again()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)  # blocked while a process was replaced by this one
    try:
        yield
    finally:
        _now.left.set()
        stop_listening()
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def unwinding(words: str = "stopped", note: Callable[[], None] = _nothing) -> Iterator[None]:
    """A signal raises KeyboardInterrupt in here; where that takes too long, `note` is called and the words are said."""
    with _meaning(words=words, at_once=False, note=note):
        yield


@contextmanager
def asking(tell: Callable[[], None]) -> Iterator[None]:
    """The first signal in here is only noted (`asked`) and told; the next one is like those outside."""
    with _meaning(polite=True, tell=tell):
        yield


@contextmanager
def _meaning(**meant: object) -> Iterator[None]:
    before = {name: getattr(_now, name) for name in meant}
    for name, value in meant.items():
        setattr(_now, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(_now, name, value)


@contextmanager
def blocked() -> Iterator[None]:
    """No signal is heard in here; it comes afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def listen_again() -> None:
    """Start the thread that listens; also after a fork, which threads do not survive."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_listen, args=(reading,), daemon=True).start()


def stop_listening() -> None:
    """End that thread."""
    writing = signal.set_wakeup_fd(-1)
    if writing >= 0:
        os.close(writing)


def _hear(*_: object) -> None:
    if _now.ending == threading.get_ident():
        return
    _now.heard += 1
    if _now.polite and _now.heard == 1:
        return
    if _now.at_once:
        _end()
    raise KeyboardInterrupt


def _listen(reading: int) -> None:
    while signals := os.read(reading, 64):
        for number in signals:
            if number not in SIGNALS:
                continue
            _now.noticed += 1
            if _now.polite and _now.noticed == 1:
                _now.tell()
            elif _now.at_once or not _now.left.wait(PATIENCE):
                _end()
    os.close(reading)


def _end() -> NoReturn:
    while _now.ending is not None:  # both threads may come here; one of them speaks
        time.sleep(PATIENCE)
    _now.ending = threading.get_ident()
    with suppress(Exception):
        _now.note()
    line = f"error: {_now.words}\n".encode(errors="backslashreplace")
    with suppress(OSError, ValueError, AttributeError):  # nobody may be there to read it
        stream = sys.stderr.fileno()
        os.write(stream, SHOW_CURSOR + line if os.isatty(stream) else line)
    os._exit(1)
