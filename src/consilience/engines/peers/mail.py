"""What is kept of messages: their arrays by owner and name, and what is known of them, for a file that holds both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from consilience.engines.peers.messages import Arrays, Entry


class Kept(NamedTuple):
    """What a checkpoint has of a mailbox: arrays by name, and what is known of them, as plain values."""

    arrays: dict[str, np.ndarray]
    known: dict[str, Any]


NO_MAIL = Kept({}, {"versions": {}})


def kept_of(entries: Mapping[int, Entry], elsewhere: int | None = None, **known: Any) -> Kept:
    """What is known of these entries, and their arrays, but for those of one that are kept elsewhere."""
    arrays = {
        f"{owner} {name}": array
        for owner, entry in sorted(entries.items())
        if owner != elsewhere
        for name, array in entry.arrays.items()
    }
    versions = {str(owner): [*entry.version, entry.signature] for owner, entry in entries.items()}
    return Kept(arrays, {"versions": versions, **known})


def entries_of(kept: Kept, elsewhere: Mapping[int, Arrays] | None = None) -> dict[int, Entry]:
    """The entries again; `elsewhere`: the arrays that are kept there."""
    found: dict[int, dict[str, np.ndarray]] = {owner: dict(arrays) for owner, arrays in (elsewhere or {}).items()}
    for name, array in kept.arrays.items():
        owner, _, what = name.partition(" ")
        found.setdefault(int(owner), {})[what] = array
    return {
        int(owner): Entry(int(owner), (number, incarnation), found[int(owner)], signature)
        for owner, (number, incarnation, signature) in kept.known["versions"].items()
    }
