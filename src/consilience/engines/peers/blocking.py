"""Whom a peer has nothing to do with, whatever the roster says: a list in its home, which only its owner changes."""

from __future__ import annotations

import json
from pathlib import Path

from consilience.engines.peers.keys import Id
from consilience.errors import InputError, printable
from consilience.files.strict_json import strict_json
from consilience.files.whole import write_atomically

BLOCKED = "blocked.json"


def blocked_in(home: Path) -> dict[Id, str]:
    """The keys that are blocked, with the names that they had then."""
    file = home / BLOCKED
    try:
        found = json.loads(file.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found.values()):
        raise InputError(f"home: '{printable(str(file))}' is damaged; remove it and block anew whom you blocked")
    return found


def block(home: Path, key: Id, name: str) -> None:
    """Have nothing to do with somebody from now on."""
    write_atomically(home / BLOCKED, strict_json({**blocked_in(home), key: name}).encode())


def unblock(home: Path, name: str) -> None:
    """Take it back."""
    known = blocked_in(home)
    if name not in known.values():
        raise InputError(f"member: nobody called '{printable(name)}' is blocked here")
    left = {key: other for key, other in known.items() if other != name}
    write_atomically(home / BLOCKED, strict_json(left).encode())
