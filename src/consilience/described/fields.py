"""What every typed description has in common: strictness, and knowing which files it names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

Own = TypeVar("Own", bound="Described")


def naming(what: Literal["file", "folder"], default: Any = ..., description: str | None = None) -> Any:
    """A field that names a file whose content is part of what is described, or a folder in which files are found."""
    return Field(default, description=description, json_schema_extra={"names": what})


class Described(BaseModel):
    """A part of a run's description: unknown fields, NaN and infinity are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, validate_default=True)

    def named_files(self, inside: str = "") -> Iterator[tuple[str, Path]]:
        """Every file that the description names, with its field, e.g. `partition.file`."""
        for name, info in type(self).model_fields.items():
            value = getattr(self, name)
            for place, named in _each(name, value):
                if _names(info, named) == "file":
                    yield f"{inside}{place}", Path(named)
            for place, part in _parts(value):
                yield from part.named_files(f"{inside}{name}.{place}")

    def pinned(self: Own) -> Own:
        """The same description wherever it is read: paths are absolute, and what can be written out is."""

        def pin(info: Any, value: Any) -> Any:
            if isinstance(value, dict) and "names" in (info.json_schema_extra or {}):
                return {key: pin(info, inner) for key, inner in value.items()}
            return str(Path(value).absolute()) if _names(info, value) else _mapped(value, lambda part: part.pinned())

        fields = type(self).model_fields
        return self.model_validate({name: pin(info, getattr(self, name)) for name, info in fields.items()})


def _each(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """What a field holds, with its place: a table of files names each of them."""
    if isinstance(value, dict):
        yield from ((f"{name}.{key}", inner) for key, inner in value.items())
    else:
        yield name, value


def _names(info: Any, value: Any) -> str | None:
    """What a field names, if anything: a dataset may be a file of the user's own, or go by a name."""
    marked = info.json_schema_extra or {}
    if "names" not in marked or not isinstance(value, str | Path):
        return None
    named = isinstance(value, Path) or Path(value).suffix
    return marked["names"] if named else None


def _parts(value: Any) -> Iterator[tuple[str, Described]]:
    """The descriptions inside a value, each with its place, `NAME.` in a table and nothing in a field."""
    if isinstance(value, Described):
        yield "", value
    elif isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from ((f"{key}.{place}", part) for place, part in _parts(inner))


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """The value with every description in it changed."""
    if isinstance(value, Described):
        return change(value)
    if isinstance(value, dict):
        return {key: _mapped(inner, change) for key, inner in value.items()}
    return [_mapped(inner, change) for inner in value] if isinstance(value, list) else value
