"""How the command ends: an exit code and, where something is wrong, one line that says what."""

from __future__ import annotations

import errno
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from consilience.command.shared import fail, first_line
from consilience.engines.guard import LOST, end_without_waiting, is_guarded
from consilience.errors import InputError, brief
from consilience.machine import stopping

FAILED, BAD_INPUT = 1, 2
INTERRUPTED = 130  # what typer returns after a KeyboardInterrupt
TRACEBACK = "CONSILIENCE_TRACEBACK"  # set it to see where an error of the program's own comes from
BAD_PATHS = (  # what is wrong with a path that somebody gave; anything else (a full disk) is a failure of the machine
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENAMETOOLONG,
    errno.ELOOP,
)


def obey(command: Callable[..., Any]) -> NoReturn:
    """Run the command and end."""
    with _quiet_libraries():
        try:
            _open_streams()
            _check_words()
            os.environ["MPLBACKEND"] = (
                "agg"  # no window is opened: a wish for one, also a misspelt one, is nobody's matter
            )
            code = command(standalone_mode=False)
            sys.stdout.flush()
            if code == INTERRUPTED:
                raise KeyboardInterrupt
        except SystemExit as end:
            _end(end.code)
        except BaseException as error:
            if os.environ.get(TRACEBACK):
                raise
            _end(_complained(error))
        _end(code if isinstance(code, int) else 0)


@contextmanager
def paths_given() -> Iterator[None]:
    """What is wrong with a path that somebody gave is bad input, on all hosts."""
    try:
        yield
    except OSError as error:
        if error.errno not in BAD_PATHS:
            raise
        raise InputError(_said(error)) from None


def _complained(error: BaseException) -> int:
    """Say what is wrong; gives the exit code."""
    try:
        if isinstance(error, BrokenPipeError):
            return FAILED  # nobody reads any more
        message, code = _verdict(error)
        if message:
            fail(message, code)
    except (SystemExit, OSError):  # what can be said has been said
        pass
    return code


def _verdict(error: BaseException) -> tuple[str, int]:
    """What to say of an error, and the exit code."""
    if isinstance(error, KeyboardInterrupt) or stopping.asked() or type(error).__name__ == "Abort":
        return "stopped", FAILED
    if isinstance(error, InputError):
        return str(error), BAD_INPUT
    if isinstance(error, MemoryError | OverflowError | RecursionError):
        return f"the numbers given are too large: {first_line(error)}", BAD_INPUT
    if isinstance(error, OSError):
        return _said(error), BAD_INPUT if error.errno in BAD_PATHS else FAILED
    if isinstance(error, UnicodeEncodeError):
        letters = error.object[error.start : error.end]
        return f"this terminal cannot show {brief(letters)}; set PYTHONIOENCODING=utf-8", FAILED
    if hasattr(error, "format_message"):  # of the command line; typer's own click and the separate one share only this
        message = error.format_message().strip().replace(": Input should", ": should")
        if type(error).__name__ == "NoArgsIsHelpError":
            sys.stdout.write(f"{message}\n")
            return "", BAD_INPUT
        return f"{message.rstrip('.')} (see --help)", BAD_INPUT
    if _raised_in(error, "jax"):
        if is_guarded():
            return f"{LOST.format(folder='RUN')} ({first_line(error)})", FAILED
        if type(error).__module__.startswith("jax"):  # what the machine could not do, e.g. memory for arrays
            return f"the run does not fit this machine: {first_line(error)}", FAILED
        mine = [name for name in os.environ if name.startswith(("JAX_", "XLA_"))]
        return f"JAX does not start ({', '.join(mine) or 'as it is installed'}): {first_line(error)}", BAD_INPUT
    kind = type(error).__name__
    return f"a mistake in consilience itself: {kind}: {first_line(error)} (set {TRACEBACK}=1 to see where)", FAILED


def to_be_mended(error: OSError, again: str) -> str:
    """A line for what the machine could not do while something was being kept; `again` carries on from there."""
    return f"{_said(error)}; once that is mended, carry on with: {again}"


def _said(error: OSError) -> str:
    return f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"


def _raised_in(error: BaseException, package: str) -> bool:
    """Whether an error comes from inside a library."""
    trace, name = error.__traceback__, ""
    while trace is not None:
        name, trace = trace.tb_frame.f_globals.get("__name__", ""), trace.tb_next
    return f"{name}.".startswith((f"{package}.", f"{package}lib.")) or type(error).__module__.startswith(package)


def _check_words() -> None:
    for word in sys.argv:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise InputError(f"command line: {brief(word)} is not UTF-8 text") from None


def _open_streams() -> None:
    """Have both streams, closed or not, and let a table be printed where letters are lacking."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            setattr(sys, name, open(nowhere, "w", encoding="utf-8", closefd=False))  # noqa: SIM115
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")


@contextmanager
def _quiet_libraries() -> Iterator[None]:
    """What libraries warn of is for who programs with them; here it would be a second line."""
    shown, unraisable = warnings.showwarning, sys.unraisablehook
    warnings.showwarning = lambda *_, **__: None
    sys.unraisablehook = lambda what: None if what.exc_type is KeyboardInterrupt else unraisable(what)
    quiet = logging.NullHandler()
    logging.getLogger().addHandler(quiet)
    try:
        yield
    finally:
        warnings.showwarning, sys.unraisablehook = shown, unraisable
        logging.getLogger().removeHandler(quiet)


def _end(code: object) -> NoReturn:
    """End, also where what was printed cannot be written: Python would complain of it once more at its own end."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError) as error:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = code or _complained(error)
    end_without_waiting(code)
    raise SystemExit(code)
