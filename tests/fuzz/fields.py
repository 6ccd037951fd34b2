"""Every field of every description, found by walking the pydantic models, and values near what it allows."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, NamedTuple, get_args, get_origin

import annotated_types
import tomli_w
from pydantic import BaseModel

from consilience.experiments import example, part_of

from .wild import FLOATS, WORDS, Rng, chance, nested, pick, value

ARMS = ("cooperating", "alone", "star", "grid", "a=0.1", "new arm", "lossy star", "", "x/y", "é", "x" * 41)


class Field(NamedTuple):
    """Where a field is (`*` stands for the name of an arm), and values on both sides of its limits."""

    path: tuple[str, ...]
    near: tuple[Any, ...]


@cache
def fields_of(experiment: str) -> tuple[Field, ...]:
    """All fields of an experiment's description, in all kinds of its parts."""
    return tuple(dict.fromkeys(_walk(part_of(experiment, "description").Config, ())))


@cache
def values_of(experiment: str) -> dict[str, Any]:
    """An experiment's description as values."""
    return example(experiment).model_dump(mode="json", exclude_none=True)


def setting(rng: Rng, experiment: str) -> str:
    """One `key=value`, well-formed or wild."""
    field = pick(rng, fields_of(experiment))
    known = values_of(experiment)
    arms = tuple(known.get("networks", known.get("columns", {}))) * 3 + ARMS
    path = ".".join(pick(rng, arms) if part == "*" else part for part in field.path)
    if chance(rng, 0.04):
        path = pick(
            rng, (f"{path}.x", path.upper(), f".{path}", f"{path}.", "", f" {path} ", pick(rng, WORDS), "a" * 3000)
        )
    if chance(rng, 0.03):
        return pick(rng, (path, f"{path}={nested(rng)}", f"{path}=='", f"={path}", f"{path}=\n1", f"{path}=1\nb=2"))
    return f"{path}={as_toml(pick(rng, field.near) if chance(rng, 0.75) and field.near else value(rng))}"


def as_toml(wild: Any) -> str:
    """A value as a user types it."""
    try:
        if isinstance(wild, str) and wild.isidentifier():
            return wild
        lines = tomli_w.dumps({"a": [wild] if isinstance(wild, dict) else wild})
        return " ".join(lines.removeprefix("a = ").split("\n")).strip() if not isinstance(wild, dict) else _inline(wild)
    except (TypeError, ValueError, UnicodeEncodeError):
        return str(wild)


def _inline(table: dict[str, Any]) -> str:
    return "{" + ", ".join(f"{_quoted(key)} = {as_toml(inner)}" for key, inner in table.items()) + "}"


def _quoted(key: str) -> str:
    return tomli_w.dumps({key: 1}).removesuffix(" = 1\n")


def _walk(annotation: Any, path: tuple[str, ...], limits: tuple[Any, ...] = ()) -> list[Field]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        found = []
        for name, field in annotation.model_fields.items():
            default = () if field.is_required() or field.default is None else (field.default,)
            found += _walk(field.annotation, (*path, name), (*field.metadata, *default))
        return found
    origin, inner = get_origin(annotation), get_args(annotation)
    if hasattr(annotation, "__metadata__"):
        return _walk(inner[0], path, (*annotation.__metadata__, *limits))
    if origin is Literal:
        return [Field(path, (*inner, *inner, inner[0].upper(), f"{inner[0]} "))]
    if origin is dict:
        return _walk(inner[1], (*path, "*"))
    if origin is list:
        items = [near for field in _walk(inner[0], path) for near in field.near if not isinstance(near, dict)]
        lists = tuple(_hashable([item] * count) for item in items[:6] for count in (1, 2, 4))
        return [Field(path, ((), *lists, *_plain(limits)))]
    if origin is not None:  # a union
        found = [field for option in inner if option is not type(None) for field in _walk(option, path, limits)]
        return found
    return [Field(path, _near(annotation, limits))]


def _near(kind: Any, limits: tuple[Any, ...]) -> tuple[Any, ...]:
    """Values around the limits of a field, and its default."""
    step = 1 if kind is int else 1e-6
    values: list[Any] = list(_plain(limits))
    for limit in _limits(limits):
        values += [limit - step, limit, limit + step, limit + 2 * step, limit + 3 * step]
    if kind is int:
        values += [1, 2, 3, 4, 5, 9, 12, 50, 1.0, 2.5, True, -1, "2"]
    elif kind is float:
        values += [0.3, 0.7, 1, 2.0, 10.0, *FLOATS, "0.5"]
    elif kind is bool:
        values += [True, False, 0, 1, "yes", "no", 2]
    else:
        values += ["own.csv", "own.npz", "own.parquet", "W.csv", "W.toml", "owners.txt", "turns.csv", "digits", "mnist"]
        values += ["none.csv", "folder", "folder.csv", "/dev/null", "", ".", "own.csv/x", "0", 0]
    return tuple(values)


def _limits(limits: tuple[Any, ...]) -> list[Any]:
    found = []
    for limit in limits:
        parts = limit if isinstance(limit, annotated_types.GroupedMetadata) else (limit,)
        for part in parts:
            found += [getattr(part, name) for name in ("ge", "gt", "le", "lt") if getattr(part, name, None) is not None]
            found += _limits(tuple(getattr(part, "metadata", ())))
    return found


def _plain(limits: tuple[Any, ...]) -> tuple[Any, ...]:
    """What of these is a default."""
    return tuple(_hashable(part) for part in limits if isinstance(part, bool | int | float | str | list))


def _hashable(part: Any) -> Any:
    return tuple(_hashable(inner) for inner in part) if isinstance(part, list | tuple) else part
