"""Small JSON files that carry their own checksum, so that a damaged one is never taken for what was written."""

from __future__ import annotations

import json
from typing import Any

from consilience.files.whole import sha256_of

SEAL = "sha256"  # the checksum of everything else in it


def sealed(known: dict[str, Any]) -> dict[str, Any]:
    """The same values with their checksum.

    >>> unsealed(json.dumps(sealed({"rounds": 3})))
    {'rounds': 3}
    """
    return {**known, SEAL: _checksum(known)}


def unsealed(text: str | bytes) -> dict[str, Any] | None:
    """What was sealed; nothing where it is damaged.

    >>> unsealed(json.dumps(sealed({"rounds": 3})).replace("3", "4", 1)) is None
    True
    """
    try:
        known = json.loads(text)
        if isinstance(known, dict) and known.pop(SEAL, None) == _checksum(known):
            return known
    except (ValueError, RecursionError):
        pass
    return None


def _checksum(known: dict[str, Any]) -> str:
    return sha256_of(json.dumps(known, sort_keys=True).encode())
