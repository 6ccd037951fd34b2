"""Descriptions from TOML files and `key=value` settings, checked, with one-line errors."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import tomli_w
from pydantic import BaseModel, ValidationError

from consilience.described.explain import explained
from consilience.errors import InputError, brief

INSTEAD = {"W": "file", "file": "W"}  # either of the two describes a matrix
KEY_PART = re.compile(r'"[^"]*"|[^".=]+')  # in quotes it may have dots and equals signs: networks."a=0.1".trust
SETTING = re.compile(rf"(?P<key>(?:{KEY_PART.pattern})(?:\.(?:{KEY_PART.pattern}))*)=(?P<text>.*)", re.DOTALL)


Model = TypeVar("Model", bound=BaseModel)


def validate(model: type[Model], values: Mapping[str, Any]) -> Model:
    """The description with these values, or one line that names the field, the rule and the value."""
    try:
        return model.model_validate(dict(values))
    except ValidationError as invalid:
        raise InputError(explained(invalid, model)) from None


def defaults_of(model: type[BaseModel], values: Mapping[str, Any]) -> dict[str, Any]:
    """These values and all defaults, as they are written; what is required and not given is left out."""
    missing = {name for name, field in model.model_fields.items() if field.is_required() and name not in values}
    made = model.model_construct(**values) if missing else validate(model, values)
    return made.model_dump(mode="json", exclude_none=True, exclude=missing)


def read_toml(file: Path) -> dict[str, Any]:
    """The values in a TOML file."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"configuration: cannot read '{file}': {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # not TOML, not text, or whole numbers of thousands of digits
        raise InputError(f"configuration: '{file}' is not TOML: {error}") from None


def override(values: Mapping[str, Any], settings: Iterable[str]) -> dict[str, Any]:
    """The values with `key=value` settings applied; a dotted key reaches into a table, a value is read as TOML.

    >>> override({"rounds": 5, "network": {"kind": "star"}}, ["rounds=7", "network.trust=0.3"])
    {'rounds': 7, 'network': {'kind': 'star', 'trust': 0.3}}
    """
    result = dict(values)
    for setting in settings:
        match = SETTING.fullmatch(setting)
        if match is None:
            raise InputError(f"--set: takes key=value, got {brief(setting)}")
        *tables, last = (part.strip().strip('"') for part in KEY_PART.findall(match["key"]))
        table = result
        for name in tables:
            inner = table.get(name, {})
            if not isinstance(inner, Mapping):
                raise InputError(f"--set: '{name}' in '{match['key']}' is not a table")
            table[name] = dict(inner)
            table = table[name]
        value = _toml_value(last, match["text"].strip())
        if tables and last == "kind" and table.get("kind") != value:
            table.clear()  # another kind has other fields: the old ones would only be refused
        if last in INSTEAD:
            table.pop(INSTEAD[last], None)
        table[last] = value
    return result


def to_toml(config: BaseModel) -> str:
    """The description as TOML that reads back as the same description."""
    return tomli_w.dumps(config.model_dump(mode="json", exclude_none=True))


def _toml_value(key: str, text: str) -> Any:
    """What a setting says: TOML where it is, else the text itself."""
    try:
        read = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    except (ValueError, RecursionError):
        raise InputError(f"--set: the value of '{key}' is too long a number or too deep a list") from None
    return read["value"] if len(read) == 1 else text
