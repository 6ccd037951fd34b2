"""One typed description of a run, from a built-in name or a TOML file, with overrides and one-line errors."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import tomli_w
from pydantic import AfterValidator, BaseModel, Field, ValidationError, field_validator

from consilience.described import Described
from consilience.errors import InputError, brief
from consilience.explain import explained
from consilience.network import read_network


def _arm_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_=. +-]{1,40}", name):
        raise ValueError("a name should be 1 to 40 letters, digits, spaces or _ = . + -")
    return name


MOST_ROUNDS = 2**31 - 2  # rounds are counted in 32 bits
MOST_REPLICATES = 10**6
MOST_RECORDED = 10**6
ArmName = Annotated[str, AfterValidator(_arm_name)]


class RunConfig(Described):
    """What every run has, whatever it learns."""

    experiment: str
    seed: int = Field(0, ge=0, lt=2**30, description="the first seed")
    replicates: int = Field(
        1, ge=1, description="independent repetitions, with seeds seed, seed+1, …; records hold means"
    )
    rounds: int = Field(..., ge=1)
    record_every: int = Field(1, ge=1, description="rounds between two rows of the record")
    checkpoint_every: int = Field(100, ge=1, description="rounds between two checkpoints, at least")
    precision: Literal["float32", "float64"] = "float64"

    # Not as bounds of the fields, because experiments give these fields other defaults.
    @field_validator("rounds", "replicates")
    @classmethod
    def _not_too_many(cls, value: int, info: Any) -> int:
        most = MOST_ROUNDS if info.field_name == "rounds" else MOST_REPLICATES
        if value > most:
            raise ValueError(f"should be less than or equal to {most}")
        return value

    @field_validator("record_every")
    @classmethod
    def _not_too_often(cls, value: int, info: Any) -> int:
        rounds = info.data.get("rounds", 0)
        if cls.recorded_rounds is RunConfig.recorded_rounds and rounds > value * MOST_RECORDED:
            raise ValueError(f"should leave at most {MOST_RECORDED} of the {rounds} rounds in the record")
        return value

    def recorded_rounds(self) -> list[int]:
        """The rounds at which the record gets a row for each agent; the last round is always one."""
        stops = list(range(self.record_every, self.rounds + 1, self.record_every))
        return stops if stops and stops[-1] == self.rounds else [*stops, self.rounds]


INSTEAD = {"W": "file", "file": "W"}  # either of the two describes a matrix
KEY_PART = re.compile(r'"[^"]*"|[^".=]+')  # in quotes it may have dots and equals signs: networks."a=0.1".trust
SETTING = re.compile(rf"(?P<key>(?:{KEY_PART.pattern})(?:\.(?:{KEY_PART.pattern}))*)=(?P<text>.*)", re.DOTALL)


Model = TypeVar("Model", bound=BaseModel)
ConfigType = TypeVar("ConfigType", bound=RunConfig)


def validate(model: type[Model], values: Mapping[str, Any]) -> Model:
    """The description with these values, or one line that names the field, the rule and the value."""
    try:
        return model.model_validate(dict(values))
    except ValidationError as invalid:
        raise InputError(explained(invalid, model)) from None


def _is_path(key: str, value: Any) -> bool:
    """Whether a field names a file: a dataset may be one of the user's own, or a name."""
    return key in ("file", "data_dir", "replay") or (key == "dataset" and "." in str(value))


def pinned(config: ConfigType) -> ConfigType:
    """The same description without any file that could change or move: matrices written out, paths made absolute."""

    def pin(value: Any) -> Any:
        if isinstance(value, dict):
            if value.get("kind") == "matrix" and value.get("file"):
                value = {**value, "W": read_network(value["file"]).W.toarray().tolist(), "file": None}
            return {
                key: str(Path(inner).absolute()) if inner and _is_path(key, inner) else pin(inner)
                for key, inner in value.items()
                if inner is not None
            }
        return [pin(inner) for inner in value] if isinstance(value, list) else value

    return validate(type(config), pin(config.model_dump(mode="json")))


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
