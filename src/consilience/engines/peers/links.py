"""Who hears whom, and how much: laid by a rule's name, named pair by pair, or read from a file with trusts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from consilience.errors import InputError, brief
from consilience.files.reading import finite, numbered_rows, reading
from consilience.network.weights import metropolis

Number: TypeAlias = Annotated[int, Field(ge=0, lt=2**31)]  # a member's place in the study
SUM = 1 + 1e-9  # of trusts, at most: decimal fractions need not add up to 1
HEADER = ("hearer", "heard", "trust")


class Link(NamedTuple):
    """`hearer` hears `heard`, and how much where that is said: `trust` is its weight."""

    hearer: Number
    heard: Number
    trust: float | None = None


def _ring(numbers: Sequence[int]) -> list[tuple[int, int]]:
    return [*pairwise(numbers), *([(numbers[-1], numbers[0])] if len(numbers) > 2 else [])]


def _complete(numbers: Sequence[int]) -> list[tuple[int, int]]:
    return [(one, other) for one in numbers for other in numbers if one < other]


def _star(numbers: Sequence[int]) -> list[tuple[int, int]]:
    return [(numbers[0], other) for other in numbers[1:]]


RULES: dict[str, Callable[[Sequence[int]], list[tuple[int, int]]]] = {
    "ring": _ring,
    "complete": _complete,
    "star": _star,  # the first member is its centre
}


def laid(rule: str, numbers: Sequence[int]) -> tuple[Link, ...]:
    """The links between members that a rule lays.

    >>> laid("star", [0, 2, 5])
    (Link(hearer=0, heard=2, trust=None), Link(hearer=0, heard=5, trust=None), Link(hearer=2, heard=0, trust=None), \
Link(hearer=5, heard=0, trust=None))
    """
    return mutual(RULES[rule](sorted(numbers)))


def mutual(pairs: Sequence[tuple[int, int]]) -> tuple[Link, ...]:
    """Links on which both hear each other."""
    return tuple(sorted({Link(*each) for one, other in pairs for each in ((one, other), (other, one))}))


def named_pairs(words: Sequence[str], number: Callable[[str], int]) -> tuple[Link, ...]:
    """Links from pairs of names, ONE:OTHER, who hear each other."""
    pairs = []
    for word in words:
        one, colon, other = word.partition(":")
        if not colon:
            raise InputError(
                f"links: are a rule ({', '.join(RULES)}), pairs NAME:NAME, or a CSV file of {', '.join(HEADER)}, "
                f"got {brief(word)}"
            )
        pairs.append((number(one), number(other)))
    return mutual(pairs)


def read_links(file: Path, number: Callable[[str], int]) -> tuple[Link, ...]:
    """Links from a CSV file with the columns hearer, heard and, where everybody says how much, trust."""
    with reading("links", file), file.open(encoding="utf-8-sig", newline="") as lines:
        rows = numbered_rows(lines)
        _, header = next(rows, (0, []))
        names = tuple(cell.strip() for cell in header)
        if names not in (HEADER[:2], HEADER):
            raise InputError(f"its first line must be {','.join(HEADER)} or {','.join(HEADER[:2])}, got {brief(names)}")
        links = []
        for line, row in rows:
            if len(row) != len(names):
                raise InputError(f"line {line} must have {len(names)} values, has {len(row)}")
            one, other = (number(cell.strip()) for cell in row[:2])
            links.append(Link(one, other, *(finite(cell, f"line {line}: trust") for cell in row[2:])))
        return tuple(sorted(links))


def weighted(links: Sequence[Link], numbers: Sequence[int]) -> Any:
    """W of those who are present, a row for each: as trusts say, the rest being one's own, or Metropolis' weights.

    >>> weighted([Link(4, 7, 0.25)], [4, 7]).toarray().tolist()
    [[0.75, 0.25], [0.0, 1.0]]
    """
    place = {number: row for row, number in enumerate(numbers)}
    trusts = [1.0 if link.trust is None else link.trust for link in links]
    rows, columns = [place[link.hearer] for link in links], [place[link.heard] for link in links]
    heard = sp.csr_array((trusts, (rows, columns)), shape=(len(place), len(place)))
    if all(link.trust is None for link in links):
        return metropolis(heard)
    return sp.csr_array(heard + sp.diags_array(np.maximum(1 - heard.sum(axis=1), 0)))


def check_links(links: Sequence[Link], names: Mapping[int, str], what: str) -> None:
    """Refuse links that cannot be between members with these numbers and names."""
    said, sums = {link[:2] for link in links}, defaultdict[int, float](float)
    if len(said) < len(links):
        raise InputError(f"{what}: a link is there twice")
    if len({link.trust is None for link in links}) > 1:
        raise InputError(f"{what}: either every link has a trust or none")
    for hearer, heard, trust in links:
        if hearer == heard or hearer not in names or heard not in names:
            raise InputError(f"{what}: a link must be between two members, got {hearer} and {heard}")
        one, other = brief(names[hearer]), brief(names[heard])
        if trust is None:
            if (heard, hearer) not in said:
                raise InputError(f"{what}: without trusts links go both ways, {other} must hear {one}, too")
            continue
        if not 0 < trust <= 1:
            raise InputError(f"{what}: {one} must trust {other} by more than 0 and at most 1, got {trust:g}")
        sums[hearer] += trust
        if sums[hearer] > SUM:
            raise InputError(f"{what}: the trusts of {one} must sum to at most 1, got {sums[hearer]:g}")
