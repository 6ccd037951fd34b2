"""The one exception for bad input: a single line that names the field and the value."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

SHOWN = 60  # characters of a value in a message


class InputError(ValueError):
    """Input that cannot be used; its message is one line, fit to show to a user.

    >>> import consilience as cs
    >>> cs.from_matrix([[1, 0]])
    Traceback (most recent call last):
    consilience.errors.InputError: W: must be a square matrix, got shape 1 × 2
    """


def suggestion(word: str, known: Iterable[str]) -> str:
    """The nearest known word as the end of an error message, or the list of all of them.

    >>> suggestion("rign", ["ring", "star"])
    "did you mean 'ring'?"
    >>> suggestion("xyz", ["ring", "star"])
    'known: ring, star'
    """
    names = sorted(known)
    near = difflib.get_close_matches(word[:SHOWN], names, n=1, cutoff=0.7)
    return f"did you mean '{near[0]}'?" if near else f"known: {', '.join(names)}"


def brief(value: object) -> str:
    """A value as an error message quotes it: one line, not long, whatever it is.

    >>> brief(-1), brief("a\\nb"), len(brief("x" * 10**6))
    ('-1', "'a\\\\nb'", 61)
    """
    try:
        text = printable(repr(value))
    except (ValueError, RecursionError):  # whole numbers of thousands of digits; lists in lists in lists
        return "something too long to show"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def printable(text: str) -> str:
    """The text in one line, with what would steer a terminal, or cannot be shown, written out.

    >>> printable("red: \\x1b[31m")
    'red: \\\\x1b[31m'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
