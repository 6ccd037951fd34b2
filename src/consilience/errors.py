"""The one exception for bad input: a single line that names the field and the value."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Input that cannot be used; its message is one line, fit to show to a user."""


def suggestion(word: str, known: Iterable[str]) -> str:
    """The nearest known word as the end of an error message, or the list of all of them.

    >>> suggestion("rign", ["ring", "star"])
    "did you mean 'ring'?"
    >>> suggestion("xyz", ["ring", "star"])
    'known: ring, star'
    """
    names = sorted(known)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.7)
    return f"did you mean '{near[0]}'?" if near else f"known: {', '.join(names)}"


def quoted(value: object, most: int = 60) -> str:
    """A value as an error message quotes it: on one line, and short.

    >>> quoted("a" * 100, most=5), quoted(1.5)
    ("'aaaa…", '1.5')
    """
    try:
        text = repr(value)
    except ValueError:  # Python does not write out numbers of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= most else f"{text[:most]}…"
