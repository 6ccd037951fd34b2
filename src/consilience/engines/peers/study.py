"""A study: what is learnt and how, agreed by everybody before anything is; a TOML text, and its hash names it.

It holds the task as plain values, a `learn` description without anybody's data: who builds it checks it.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PositiveFloat, PrivateAttr, field_validator

from consilience.described.commented import commented_toml
from consilience.described.fields import Described
from consilience.described.settings import validate
from consilience.engines.peers.names import peer_name
from consilience.engines.peers.signed import LARGEST, canonical
from consilience.errors import InputError, printable

MOST_ROUNDS = 2**31 - 2  # rounds are counted in 32 bits
MIB = 1 << 20


class Policy(Described):
    """When a peer pools, and how long it waits for whom."""

    kind: Literal["sync", "async"] = Field(
        "sync", description="sync: pool when all neighbours were heard, or patience ends; async: pool what is there"
    )
    rounds: int = Field(60, ge=1, le=MOST_ROUNDS, description="how many there are")
    patience: PositiveFloat = Field(60.0, le=86400, description="sync: seconds to wait for a neighbour in a round")
    silent_after: int = Field(
        2, ge=1, le=MOST_ROUNDS, description="rounds missed after which a silent neighbour is not waited for any more"
    )
    staleness: int = Field(
        10, ge=0, le=MOST_ROUNDS, description="async: own rounds since a belief came, beyond which it is not pooled"
    )


class Limits(Described):
    """What a message may be, whoever sent it."""

    most_bytes: int = Field(64 * MIB, ge=1, le=2**31 - 1, description="of a message")
    least_precision: PositiveFloat = Field(1e-8, description="that a belief about a weight may have")
    most_precision: PositiveFloat = Field(1e12, description="that a belief about a weight may have")

    @field_validator("most_precision")
    @classmethod
    def _above_least(cls, most: float, info: Any) -> float:
        least = info.data.get("least_precision", 0.0)
        if most <= least:
            raise ValueError(f"should be above least_precision ({least:g})")
        return most


def _name(name: str) -> str:
    try:
        return peer_name(name)
    except InputError as wrong:
        raise ValueError(str(wrong).removeprefix("name: ").partition(", got")[0]) from None


class Study(Described):
    """What everybody has agreed to; made by `Study.of` or `Study.read`, which know its text."""

    name: Annotated[str, AfterValidator(_name)]
    wire: Literal["exact", "float16"] = Field(
        "exact", description="how beliefs travel; float16: half the bytes, means and log sds rounded"
    )
    labels: list[str] | None = Field(None, description="where shares are arrays (.npz): what is predicted, in order")
    input_shape: list[Annotated[int, Field(ge=1)]] | None = Field(
        None, description="where shares are arrays (.npz): the shape of one input"
    )
    policy: Policy = Field(Policy(), description="when a peer pools, and how long it waits for whom")
    limits: Limits = Field(Limits(), description="what a message may be, whoever sent it")
    task: dict[str, Any] = Field(..., description="what is learnt, without anybody's data")
    _text: str = PrivateAttr("")

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Study:
        """The study with these values, written down.

        >>> Study.of({"name": "tumours", "task": {"model": {"kind": "mlp"}}}).policy.rounds
        60
        """
        study = validate(cls, values)
        try:
            return cls.read(commented_toml(study), "study")
        except (TypeError, ValueError) as wrong:
            if isinstance(wrong, InputError):
                raise
            raise InputError("task: must hold text, numbers, lists and tables only") from None

    @classmethod
    def read(cls, text: str, what: str) -> Study:
        """The study that a text describes."""
        if len(text) > LARGEST:
            raise InputError(f"{what}: must have at most {LARGEST:,} bytes, has more")
        try:
            values = tomllib.loads(text)
            text.encode()
        except (ValueError, RecursionError) as error:
            raise InputError(f"{what}: is not TOML: {printable(str(error))}") from None
        try:
            study = validate(cls, values)
        except InputError as wrong:
            raise InputError(f"{what}: {wrong}") from None
        study._text = text
        return study

    @property
    def text(self) -> str:
        """The study as everybody has it, byte for byte."""
        return self._text or commented_toml(self)

    @property
    def hash(self) -> str:
        """The SHA-256 of its text, in hexadecimal digits: what the study is called in everything that is signed."""
        return name_of(self.text)


SECTIONS = ("wire", "labels", "input_shape", "policy", "limits")
TASK = (
    "seed",
    "precision",
    "record_every",
    "held_out",
    "samples",
    "model",
    "likelihood",
    "learner",
    "consensus",
    "columns",
)
DIGITS = 4  # of a section's hash: enough to say where two studies differ, which their whole hashes have said


def sections(study: Study) -> str:
    """A few digits for each section of a study, in order: what two peers compare whose studies are not the same.

    >>> one, other = (Study.of({"name": "a", "policy": {"rounds": n}, "task": {"seed": n}}) for n in (1, 2))
    >>> differing(sections(one), sections(other))
    'policy, task.seed'
    """
    values = study.model_dump(mode="json", exclude_none=True)
    parts = [values.get(name) for name in SECTIONS] + [values["task"].get(name) for name in TASK]
    return "".join(hashlib.sha256(canonical({"": part}).encode()).hexdigest()[:DIGITS] for part in parts)


def differing(one: str, other: str) -> str:
    """In which sections two studies differ, by their digits; where these say nothing, in the name."""
    names = [*SECTIONS, *(f"task.{name}" for name in TASK)]
    places = [slice(DIGITS * number, DIGITS * (number + 1)) for number in range(len(names))]
    return (
        ", ".join(name for name, place in zip(names, places, strict=True) if one[place] != other[place]) or "its name"
    )


def name_of(text: str) -> str:
    """The name of the study with this text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
