"""What every run's description has, whatever it learns, and the files that it depends on."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field, field_validator

from consilience.described.fields import Described
from consilience.errors import InputError
from consilience.files.whole import checksum


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
        1, ge=1, description="independent repetitions, with seeds seed, seed+1, …; records hold their means"
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

    def carried(self) -> dict[str, bytes]:
        """Files that lie in the run's folder, beside the description, by name."""
        return {}

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
        stops = range(self.record_every, self.rounds + 1, self.record_every)
        return sorted({*stops, *(n for n in self.record_also if n <= self.rounds), self.rounds})


ConfigType = TypeVar("ConfigType", bound=RunConfig)


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
