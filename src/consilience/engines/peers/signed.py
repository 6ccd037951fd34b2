"""Small texts that somebody has signed, in which no byte can be changed unnoticed: cards, rosters, a steward's notes.

A text is JSON as `canonical` writes it, with its kind, the version of its form and a signature over all the rest. One
that is not byte for byte what `canonical` makes of its values is refused: there is one text for the same values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from consilience.engines.peers.keys import Key, check_signature, id_of, sign
from consilience.errors import InputError, brief
from consilience.files.reading import reading

LARGEST = 1 << 20  # bytes of a text
VERSION = 1  # of the form of all texts
SIGNATURE = "signature"


def canonical(values: Mapping[str, Any]) -> str:
    """The one text of some values.

    >>> canonical({"b": "é", "a": 1.0})
    '{\\n "a": 1.0,\\n "b": "\\\\u00e9"\\n}\\n'
    """
    return json.dumps(values, indent=1, sort_keys=True, allow_nan=False) + "\n"


def content(kind: str, values: Mapping[str, Any]) -> bytes:
    """What is signed: the text without its signature. The kind is in it, so that no text passes for one of another."""
    return text_of(kind, values).encode()


def signed(kind: str, values: Mapping[str, Any], key: Key) -> str:
    """The text of some values, signed."""
    return with_signature(kind, values, sign(key, content(kind, values)))


def with_signature(kind: str, values: Mapping[str, Any], signature: str) -> str:
    """The text of some values with a signature that was made before."""
    return text_of(kind, {**values, SIGNATURE: signature})


def text_of(kind: str, values: Mapping[str, Any]) -> str:
    """The text of some values as they are, of a kind."""
    text = canonical({"kind": kind, "version": VERSION, **values})
    if len(text) > LARGEST:
        raise InputError(f"{kind}: must have at most {LARGEST:,} bytes, has {len(text):,}")
    return text


def opened(kind: str, text: str, certificate: str | None, what: str) -> dict[str, Any]:
    """The values of a text that the key of a certificate has signed; `what` names it where it is refused.

    Without a certificate it is the one in the text, and its `id` must be that of its key: a card signs itself.
    The signature stays among the values.
    """
    values = parsed(kind, text, what)
    rest = {name: value for name, value in values.items() if name != SIGNATURE}
    by = values.get("certificate") if certificate is None else certificate
    if not (isinstance(by, str) and isinstance(values.get(SIGNATURE), str)):
        raise InputError(f"{what}: is not signed")
    if certificate is None and id_of(by, what) != values.get("id"):
        raise InputError(f"{what}: was changed: its ID is not that of its key")
    if not check_signature(by, canonical(rest).encode(), values[SIGNATURE]):
        raise InputError(f"{what}: was changed, or was signed by another key: its signature does not fit")
    return {name: value for name, value in values.items() if name not in ("kind", "version")}


def parsed(kind: str, text: str, what: str) -> dict[str, Any]:
    """The values of a text of a kind, which is byte for byte the canonical one; whoever signed it."""
    if len(text) > LARGEST:
        raise InputError(f"{what}: must have at most {LARGEST:,} bytes, has more")
    try:
        values = json.loads(text, parse_constant=_refused)
        same = isinstance(values, dict) and canonical(values) == text
    except (ValueError, RecursionError):  # no JSON, whole numbers of thousands of digits, lists in lists in lists
        same = False
    if not same:
        raise InputError(f"{what}: was changed, or is no {kind}")
    if values.get("kind") != kind:
        raise InputError(f"{what}: is no {kind}, but {brief(values.get('kind'))}")
    if values.get("version") != VERSION:
        raise InputError(f"{what}: is of form {brief(values.get('version'))}, this consilience knows form {VERSION}")
    return dict(values)


def kind_of(text: str) -> str | None:
    """What a text says that it is, where it says so."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return None
    kind = values.get("kind") if isinstance(values, dict) else None
    return kind if isinstance(kind, str) else None


def read_text(file: Path, field: str) -> str:
    """The text in a file, unless it is too long to be one."""
    with reading(field, file), file.open("rb") as stream:
        found = stream.read(LARGEST + 1)
        if len(found) > LARGEST:
            raise InputError(f"it must have at most {LARGEST:,} bytes, has more")
        return found.decode()


def _refused(constant: str) -> NoReturn:
    raise ValueError(constant)
