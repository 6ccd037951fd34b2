"""What the columns of a table mean: described, not guessed, and the same for every agent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, Field, field_validator
from pydantic_core import PydanticCustomError

from consilience.data.header import check_header
from consilience.data.labels import told_apart, unfit
from consilience.described.fields import Described
from consilience.errors import InputError, brief

REFUSE, CENTRE = "refuse", "centre"
FEWEST_LEVELS = 2


class Feature(NamedTuple):
    """A column of the design matrix: (value − centre) / scale of a number, or whether a category is at a level."""

    column: str
    level: str | None
    centre: float
    scale: float
    unit: str
    reference: str | None

    @property
    def name(self) -> str:
        """What a person calls it, e.g. `age` or `sex = female`."""
        return self.column if self.level is None else f"{self.column} = {self.level}"


def _levels(levels: list[str]) -> list[str]:
    """Levels that can be told apart, each a line of text."""
    for level in levels:
        if rule := unfit(level):
            raise ValueError(f"a level {rule}, one is {brief(level)}")
    if twice := [level for level in levels if levels.count(level) > 1]:
        raise ValueError(f"a level should be named once, {brief(twice[0])} is there twice")
    told_apart(levels)
    return levels


Levels = Annotated[list[str], Field(min_length=FEWEST_LEVELS), AfterValidator(_levels)]


class InRange(Described):
    """A number in some unit, of which some values are allowed."""

    unit: str = Field("", description="of the values in the file, e.g. mm")
    low: float | None = Field(None, description="the smallest value that is allowed")
    high: float | None = Field(None, description="the largest value that is allowed")
    centre: float = Field(0.0, description="values are used as (value − centre) / scale, the same for everybody")
    scale: float = Field(1.0, gt=0)

    @field_validator("high")
    @classmethod
    def _above_low(cls, high: float | None, info: Any) -> float | None:
        low = info.data.get("low")
        if high is not None and low is not None and high < low:
            raise ValueError(f"should be at least low ({low:g})")
        return high


class Number(InRange):
    """An input that is a number: one feature."""

    kind: Literal["number"] = "number"
    missing: Literal["refuse", "centre"] | float = Field("refuse", description="what a missing value means")

    @field_validator("missing", mode="before")
    @classmethod
    def _known(cls, missing: Any) -> Any:
        number = isinstance(missing, int | float) and not isinstance(missing, bool) and abs(missing) < math.inf
        if not number and missing not in (REFUSE, CENTRE):
            raise ValueError(f"should be '{REFUSE}', '{CENTRE}' or a number")
        return missing

    @field_validator("missing")
    @classmethod
    def _allowed(cls, missing: str | float, info: Any) -> str | float:
        if not isinstance(missing, str) and (
            rule := out_of_range(missing, info.data.get("low"), info.data.get("high"))
        ):
            raise ValueError(f"should be {rule}")
        return missing

    def features(self, name: str) -> list[Feature]:
        """(value − centre) / scale."""
        return [Feature(name, None, self.centre, self.scale, self.unit, None)]


class Category(Described):
    """An input that is one of some levels: a feature, 0 or 1, for each level but the reference."""

    kind: Literal["category"] = "category"
    levels: Levels
    reference: str | None = Field(None, description="the level that the others are compared with [default: the first]")
    missing: str = Field(REFUSE, description="the level that a missing value means; refused by default")

    @field_validator("reference", "missing")
    @classmethod
    def _is_level(cls, level: str | None, info: Any) -> str | None:
        levels = info.data.get("levels")
        default = None if info.field_name == "reference" else REFUSE
        if levels is not None and level != default and level not in levels:
            also = "" if default is None else f"'{default}' or "
            raise ValueError(f"should be {also}one of the levels {listed(levels)}")
        return level

    @property
    def compared_with(self) -> str:
        """The reference."""
        return self.levels[0] if self.reference is None else self.reference

    def features(self, name: str) -> list[Feature]:
        """Whether it is at each level but the reference."""
        reference = self.compared_with
        return [Feature(name, level, 0.0, 1.0, "", reference) for level in self.levels if level != reference]


class Label(Described):
    """What is predicted: a class."""

    kind: Literal["label"] = "label"
    levels: Levels

    def features(self, name: str) -> list[Feature]:
        """None: it is predicted."""
        return []


class Target(InRange):
    """What is predicted: a number, kept in its units, or a count of something."""

    kind: Literal["target"] = "target"
    counts: bool = Field(False, description="whole numbers from 0 on; they are used as they are")

    @field_validator("counts")
    @classmethod
    def _as_they_are(cls, counts: bool, info: Any) -> bool:
        if counts and (info.data.get("centre", 0.0), info.data.get("scale", 1.0)) != (0.0, 1.0):
            raise ValueError("should be false where there is a centre or a scale")
        return counts

    def features(self, name: str) -> list[Feature]:
        """None: it is predicted."""
        return []


class Ignore(Described):
    """A column that may be there and is not used."""

    kind: Literal["ignore"] = "ignore"

    def features(self, name: str) -> list[Feature]:
        """None: it is not used."""
        return []


AnyColumn = Number | Category | Label | Target | Ignore
Column = Annotated[AnyColumn, Field(discriminator="kind")]


def _one_answer(columns: dict[str, AnyColumn]) -> dict[str, AnyColumn]:
    """Columns of which one is predicted and some are inputs."""
    try:
        check_header(columns)
        answers = [name for name, column in columns.items() if isinstance(column, Label | Target)]
        if len(answers) != 1:
            found = f"they are {', '.join(map(brief, answers[:6]))}" if answers else "there is none"
            raise InputError(f"should have exactly one column of kind label or target, {found}")
        if not features(columns):
            raise InputError("should have a column of kind number or category, there is none")
    except InputError as wrong:
        raise PydanticCustomError("whole", "{error}", {"error": str(wrong)}) from None
    return columns


Columns = Annotated[dict[str, Column], AfterValidator(_one_answer)]


def features(columns: Mapping[str, AnyColumn]) -> list[Feature]:
    """What each column of the design matrix is, in order.

    >>> inputs = {"age": Number(centre=50, scale=10), "sex": Category(levels=["male", "female"])}
    >>> [feature.name for feature in features(inputs | {"ill": Label(levels=["no", "yes"])})]
    ['age', 'sex = female']
    """
    return [feature for name, column in columns.items() for feature in column.features(name)]


def predicted(columns: Mapping[str, AnyColumn]) -> tuple[str, Label | Target]:
    """The column that is predicted, and its name."""
    return next((name, column) for name, column in columns.items() if isinstance(column, Label | Target))


def out_of_range(value: float, low: float | None, high: float | None) -> str | None:
    """The rule that a value breaks, if any.

    >>> out_of_range(130.0, 0.0, 120.0)
    'at most 120'
    """
    if low is not None and value < low:
        return f"at least {low:g}"
    return f"at most {high:g}" if high is not None and value > high else None


def listed(levels: list[str], most: int = 12) -> str:
    """Levels for a message.

    >>> listed(["low", "high"]), listed([str(n) for n in range(100)], most=3)
    ("'low', 'high'", "'0', '1', '2', … (100 in all)")
    """
    shown = ", ".join(map(brief, levels[:most]))
    return shown if len(levels) <= most else f"{shown}, … ({len(levels)} in all)"
