"""One typed description of a run, from a built-in name or a TOML file, with overrides and one-line errors."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import tomli_w
from pydantic import BaseModel, Field, StringConstraints, ValidationError

from consilience.described import Described
from consilience.errors import InputError, suggestion
from consilience.files import checksum
from consilience.network_config import NETWORKS

ArmName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_=. +-]{1,40}$")]


class RunConfig(Described):
    """What every run has, whatever it learns."""

    experiment: str
    seed: int = Field(0, ge=0, lt=2**30, description="the first seed")
    replicates: int = Field(
        1, ge=1, le=10**6, description="independent repetitions, with seeds seed, seed+1, …; records hold their means"
    )
    rounds: int = Field(..., ge=1)
    record_every: int = Field(1, ge=1, description="rounds between two rows of the record")
    checkpoint_every: int = Field(100, ge=1, description="rounds between two checkpoints, at least")
    record_also: list[Annotated[int, Field(ge=1)]] = Field([], description="rounds to record besides")
    per_seed: bool = Field(False, description="where there are several seeds, a row for each in the place of means")
    precision: Literal["float32", "float64"] = "float64"
    files: dict[str, str] | None = Field(None, description="sha256 of every file it names; noted when a run begins")

    def seeds(self) -> list[int]:
        """The seed of every repetition."""
        return list(range(self.seed, self.seed + self.replicates))

    def recorded_rounds(self) -> list[int]:
        """The rounds at which the record gets a row for each agent; the last round is always one."""
        stops = range(self.record_every, self.rounds + 1, self.record_every)
        return sorted({*stops, *(n for n in self.record_also if n <= self.rounds), self.rounds})


INSTEAD = {"W": "file", "file": "W"}  # either of the two describes a matrix


Model = TypeVar("Model", bound=BaseModel)
ConfigType = TypeVar("ConfigType", bound=RunConfig)
KINDS = {"labels", "iid", "dirichlet", "shards", "feature", "mlp", "cnn"}  # of partitions and models


def validate(model: type[Model], values: Mapping[str, Any]) -> Model:
    """The description with these values, or one line that names the field, the rule and the value."""
    try:
        return model.model_validate(dict(values))
    except ValidationError as invalid:
        error = invalid.errors()[0]
        field = _path(model, error["loc"]) or model.__name__.lower()
        if error["type"] == "extra_forbidden":
            *_, inside, name = ("", *map(str, error["loc"]))
            rule = f"no such field; {suggestion(name, NETWORKS.get(inside, model).model_fields)}"
        elif error["type"] == "union_tag_invalid":
            tag, known = str(error["ctx"]["tag"]), str(error["ctx"]["expected_tags"]).replace("'", "").split(", ")
            rule = f"unknown kind '{tag}'; {suggestion(tag, known)}"
        elif error["type"] == "missing":
            rule = "is required"
        else:
            rule = (
                f"{error['msg'].removeprefix('Input ').removeprefix('Value error, ').lower()}, got {error['input']!r}"
            )
        raise InputError(f"{field}: {rule}") from None


def _path(model: type[BaseModel], location: tuple[int | str, ...]) -> str:
    """Where in a description an error is, without the kinds that pydantic adds between a table and its field."""
    kinds = {str(kind) for kind in NETWORKS} | KINDS
    parts = [str(part) for part in location]
    return ".".join(part for n, part in enumerate(parts) if n == 0 or part not in kinds or part in model.model_fields)


def pinned(config: ConfigType) -> ConfigType:
    """The same description with what its files hold: matrices written out, and the checksum of every other file.

    A description that has checksums already is held to them.
    """
    config = config.pinned()
    found = {field: (file, checksum(field, file)) for field, file in config.named_files()}
    for field, known in (config.files or {}).items():
        file, now = found.get(field, ("", known))
        if now != known:
            raise InputError(f"{field}: '{file}' was changed: its sha256 is {now[:12]}…, the run has {known[:12]}…")
    return config.model_copy(update={"files": {field: now for field, (_, now) in found.items()} or None})


def read_toml(file: Path) -> dict[str, Any]:
    """The values in a TOML file."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"configuration: cannot read '{file}': {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"configuration: '{file}' is not TOML: {error}") from None


def override(values: Mapping[str, Any], settings: Iterable[str]) -> dict[str, Any]:
    """The values with `key=value` settings applied; a dotted key reaches into a table, a value is read as TOML.

    >>> override({"rounds": 5, "network": {"kind": "star"}}, ["rounds=7", "network.trust=0.3"])
    {'rounds': 7, 'network': {'kind': 'star', 'trust': 0.3}}
    """
    result = dict(values)
    for setting in settings:
        key, found, text = setting.partition("=")
        if not (found and key.strip()):
            raise InputError(f"--set: takes key=value, got '{setting}'")
        *tables, last = key.strip().split(".")
        table = result
        for name in tables:
            inner = table.get(name, {})
            if not isinstance(inner, Mapping):
                raise InputError(f"--set: '{name}' in '{key}' is not a table")
            table[name] = dict(inner)
            table = table[name]
        value = _toml_value(text.strip())
        if last == "kind" and table.get("kind") != value:
            table.clear()  # another kind has other fields: the old ones would only be refused
        if last in INSTEAD:
            table.pop(INSTEAD[last], None)
        table[last] = value
    return result


def to_toml(config: BaseModel) -> str:
    """The description as TOML that reads back as the same description."""
    return tomli_w.dumps(config.model_dump(mode="json", exclude_none=True))


def _toml_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
