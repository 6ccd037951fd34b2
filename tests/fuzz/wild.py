"""Odd values, and odd changes of bytes, texts and tables."""

from __future__ import annotations

import copy
import datetime
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Rng = np.random.Generator

INTEGERS = (0, 1, -1, 2, 3, 4, 5, 7, 9, 10, 12, 64, 100, 1000, 10_000, 20_000, 20_001, 100_000, 10**6, 10**9)
INTEGERS += (2**15, 2**30 - 1, 2**30, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**30, 10**400)
FLOATS = (0.0, -0.0, 0.5, 0.1, 0.25, 0.9, 0.3, 1.0, 1.5, -0.5, 2.0, 1e-3, 1e-9, 1e-17, 1e-300, 5e-324, 1e17, 1e300)
FLOATS += (1.7e308, 1 - 1e-16, 1 + 1e-12, 0.99999999, float("nan"), float("inf"), float("-inf"), 3.0, 12.5, 1e6)
WORDS = ("", " ", "a", "0", "1", "-1", "nan", "inf", "true", "null", "None", "star", "ring", "matrix", "labels", "iid")
WORDS += (
    "é",
    "漢字",
    "🦆",
    "a b",
    "a.b",
    "..",
    "/dev/null/x",
    "/dev/null",
    "/proc/x",
    ".",
    "~",
    "x" * 300,
    "x" * 5000,
    "\t",
)
WORDS += ("two\nlines", "\x00", "\x1b[31m", "\x7f", "\u2028", "\r", "[red]", "[/]", "[bold]x[/bold]", "%s", "{0}", "'")
WORDS += ('"', "\\", "-", "--", "-h", "--set", "=", "1e5", "0x10", "1_000", "1.5", "own.csv", "W.csv", "none.toml")
WORDS += ("\ud800", "\u200f", "float32", "1979-05-27", "\v", "\x85", "a\\nb", "١", "cooperating", "alone", "digits")
DATES = (datetime.date(1979, 5, 27), datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC), datetime.time(7, 32))


def pick(rng: Rng, options: Any) -> Any:
    """One of them."""
    options = options if isinstance(options, list | tuple) else list(options)
    return options[int(rng.integers(len(options)))]


def chance(rng: Rng, probability: float) -> bool:
    """Whether something of this probability happens."""
    return bool(rng.random() < probability)


def value(rng: Rng, depth: int = 0) -> Any:
    """Anything a TOML file can say."""
    kind = rng.integers(10 if depth < 3 else 7)
    if kind <= 1:
        return pick(rng, INTEGERS)
    if kind <= 3:
        return pick(rng, FLOATS)
    if kind == 4:
        return pick(rng, WORDS)
    if kind == 5:
        return chance(rng, 0.5)
    if kind == 6:
        return pick(rng, DATES) if chance(rng, 0.3) else float(np.round(rng.normal(), 3))
    if kind == 7:
        return {pick(rng, WORDS): value(rng, depth + 1) for _ in range(rng.integers(3))}
    if kind == 8:
        return [value(rng, depth + 1) for _ in range(rng.integers(4))]
    return [[value(rng, 3) for _ in range(rng.integers(4))] for _ in range(rng.integers(4))]


def nested(rng: Rng) -> str:
    """Brackets, very deep."""
    return pick(rng, ("[", "{a=", "[[", "{'a' = [")) * int(pick(rng, (10, 200, 3000)))


# Bytes: what a disk, a bad copy, an editor or a mischievous hand does to a file.


def flip(rng: Rng, data: bytes, other: bytes) -> bytes:
    """One bit."""
    return _replaced(data, rng, lambda byte: byte ^ (1 << int(rng.integers(8))))


def put(rng: Rng, data: bytes, other: bytes) -> bytes:
    """Another byte, often one that means something."""
    return _replaced(data, rng, lambda _: pick(rng, b"\x00\xff\n\r,\"'[]{}=.-+0123456789 etn#\x80"))


def delete(rng: Rng, data: bytes, other: bytes) -> bytes:
    """A few bytes less."""
    begin = int(rng.integers(len(data) + 1))
    return data[:begin] + data[begin + int(pick(rng, (1, 1, 1, 2, 8, 100))) :]


def insert(rng: Rng, data: bytes, other: bytes) -> bytes:
    """A few bytes more."""
    begin = int(rng.integers(len(data) + 1))
    what = pick(
        rng, (b"\n", b"0", b"-", b",", b" ", b"\x00", b"\xff\xfe", b"nan", b"1e999", b'"', b"\xef\xbb\xbf", b"9" * 30)
    )
    return data[:begin] + what + data[begin:]


def truncate(rng: Rng, data: bytes, other: bytes) -> bytes:
    """Its beginning."""
    return data[: int(rng.integers(len(data) + 1))]


def swap(rng: Rng, data: bytes, other: bytes) -> bytes:
    """Two pieces in each other's place."""
    a, b, c, d = sorted(int(place) for place in rng.integers(len(data) + 1, size=4))
    return data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def append(rng: Rng, data: bytes, other: bytes) -> bytes:
    """Something after its end."""
    return data + pick(rng, (b"\n", b"x", b"\x00" * 8, data[-40:], data, other, b"0,0\n", b"\n[a]\nb=1\n", b"\r\n"))


def repeat_line(rng: Rng, data: bytes, other: bytes) -> bytes:
    """A line twice, or lines in another order, or a line less."""
    lines = data.splitlines(keepends=True) or [b""]
    n = int(rng.integers(len(lines)))
    what = rng.integers(3)
    if what == 0:
        return b"".join([*lines[: n + 1], *lines[n:]])
    if what == 1:
        return b"".join([*lines[:n], *lines[n + 1 :]])
    m = int(rng.integers(len(lines)))
    lines[n], lines[m] = lines[m], lines[n]
    return b"".join(lines)


def other_number(rng: Rng, data: bytes, other: bytes) -> bytes:
    """A number replaced by another, a wild one or its neighbour."""
    found = list(re.finditer(rb"-?\d+(\.\d+)?(e[-+]?\d+)?", data))
    if not found:
        return data + b"1"
    at = pick(rng, found)
    own = at.group().decode()
    near = [repr(float(own) * (1 + 1e-9)), f"{own}0", f"0{own}", f"+{own}", f"{own}.0", f"-{own}"]
    text = pick(rng, near) if chance(rng, 0.4) else str(pick(rng, INTEGERS[:-1] + FLOATS))
    return data[: at.start()] + text.encode() + data[at.end() :]


def other_word(rng: Rng, data: bytes, other: bytes) -> bytes:
    """A word replaced by another."""
    found = list(re.finditer(rb"[A-Za-z_-]{2,}", data))
    if not found:
        return b"a" + data
    at = pick(rng, found)
    words = [match.group() for match in found] + [word.encode("utf-8", "replace") for word in WORDS]
    return data[: at.start()] + pick(rng, words) + data[at.end() :]


def emptied(rng: Rng, data: bytes, other: bytes) -> bytes:
    """Nothing left, or blanks."""
    return pick(rng, (b"", b"", b"\n", b"\x00" * len(data), b" " * len(data), b"\xef\xbb\xbf"))


def exchanged(rng: Rng, data: bytes, other: bytes) -> bytes:
    """Another file in its place."""
    return other


def line_ends(rng: Rng, data: bytes, other: bytes) -> bytes:
    """As another system writes the same text."""
    text = data.decode("latin1")
    return pick(
        rng,
        (
            data.replace(b"\n", b"\r\n"),
            data.replace(b"\n", b"\r"),
            text.encode("utf-16"),
            b"\xef\xbb\xbf" + data,
            data.rstrip(b"\n"),
            data.replace(b",", b";"),
            data.replace(b",", b", "),
        ),
    )


BYTES: tuple[Callable[[Rng, bytes, bytes], bytes], ...] = (
    flip,
    put,
    delete,
    insert,
    truncate,
    swap,
    append,
    repeat_line,
)
BYTES += (flip, put, other_number, other_number, other_word, emptied, exchanged, line_ends)


def damaged(rng: Rng, data: bytes, other: bytes = b"other") -> tuple[bytes, str]:
    """The bytes after one to three changes, and the names of the changes."""
    names = []
    for _ in range(int(pick(rng, (1, 1, 1, 2, 3)))):
        change = pick(rng, BYTES)
        data = change(rng, data, other)
        names.append(change.__name__)
    return data, "+".join(names)


def _replaced(data: bytes, rng: Rng, f: Callable[[int], int]) -> bytes:
    if not data:
        return b"\x00"
    at = int(rng.integers(len(data)))
    return data[:at] + bytes([f(data[at])]) + data[at + 1 :]


# Tables and lists, as TOML and JSON have them.


def places(tree: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value in a tree of tables and lists."""
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, part in inner:
        yield (*before, key)
        yield from places(part, (*before, key))


def restructured(rng: Rng, tree: dict[str, Any], new: Callable[[Rng], Any] = value) -> dict[str, Any]:
    """The tree after one to three changes of its structure."""
    tree = copy.deepcopy(tree)
    for _ in range(int(pick(rng, (1, 1, 2, 3)))):
        ways = list(places(tree))
        if not ways:
            return {pick(rng, WORDS): new(rng)}
        *way, last = pick(rng, ways)
        table: Any = tree
        for key in way:
            table = table[key]
        what = rng.integers(9)
        if what <= 3:
            table[last] = new(rng)
        elif what == 4:
            del table[last]
        elif what == 5 and isinstance(table, dict):
            table[pick(rng, WORDS)] = table.pop(last)
        elif what == 6 and isinstance(table, dict):
            table[pick(rng, WORDS)] = new(rng)
        elif what == 7:
            table[last] = pick(rng, ([table[last]], {"a": table[last]}, [table[last]] * 2))
        elif isinstance(table, list):
            table.insert(int(last), pick(rng, (table[last], new(rng))))
        else:
            other = pick(rng, ways)
            table[last] = _at(tree, other)
    return copy.deepcopy(tree)


def _at(tree: Any, way: tuple[Any, ...]) -> Any:
    for key in way:
        try:
            tree = tree[key]
        except (KeyError, IndexError, TypeError):
            return 0
    return copy.deepcopy(tree)
