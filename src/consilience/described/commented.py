"""A description as TOML in which every field says what it means."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from consilience.described.settings import to_toml

HEADER = re.compile(r"\[\[?.*\]\]?")
KEY = re.compile(r'((?:"(?:[^"\\]|\\.)*"|[^"=\s]+)) = ')


def commented_toml(config: BaseModel) -> str:
    """The description as `to_toml` writes it, with what its fields mean as comments; it reads back as the same.

    Fields that have no value are named in a comment where their table begins.

    >>> from consilience.described.networks import Ring
    >>> print(commented_toml(Ring(agents=3)).splitlines()[-2])
    directed = false  # hear only the agent before
    """
    lines, inside = [f"# {line}" for line in _unset(config)], config
    for line in to_toml(config).splitlines():
        if HEADER.fullmatch(line):
            *above, name = _path(line)
            inside, meaning = _at(config, [*above, name]), _meaning(_at(config, above), name)
            lines += [line + meaning, *(f"# {unset}" for unset in _unset(inside))]
        elif found := KEY.match(line):  # what continues a list begins with a space or a bracket
            lines.append(line + _meaning(inside, _path(f"{found[1]} = 0")[0]))
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def _path(line: str) -> list[str]:
    """The names in a header or before an equals sign."""
    names, table = [], tomllib.loads(line)
    while isinstance(table, dict) and table:
        ((name, table),) = table.items()
        names.append(name)
        table = table[-1] if isinstance(table, list) else table
    return names


def _at(part: Any, path: list[str]) -> Any:
    """What a description has at a place; of a list of tables, the first stands for all."""
    for name in path:
        part = part.get(name) if isinstance(part, dict) else getattr(part, name, None)
        part = part[0] if isinstance(part, list) and part else part
    return part


def _meaning(inside: Any, name: str) -> str:
    """The end of a line: what a field means, where that is said."""
    field = type(inside).model_fields.get(name) if isinstance(inside, BaseModel) else None
    return f"  # {field.description}" if field is not None and field.description else ""


def _unset(inside: Any) -> Iterator[str]:
    """The fields of a part that have no value."""
    for name, field in type(inside).model_fields.items() if isinstance(inside, BaseModel) else ():
        if getattr(inside, name) is None and not field.exclude and name != "files":  # checksums are noted by runs
            yield f"{name} = …" + _meaning(inside, name)
