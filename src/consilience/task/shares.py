"""Descriptions of where shares of data are: a file an agent, one table, or arrays that lie beside the description."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import AfterValidator, Field

from consilience.data import Dataset, Partition
from consilience.data.arrays import check_alike, check_pair, numbered_or_numbers, read_arrays
from consilience.described.fields import Described, naming
from consilience.errors import InputError, brief
from consilience.files.whole import sha256_of_file
from consilience.task.columns import AnyColumn, Label, predicted
from consilience.task.partitions import PartitionConfig

ARRAYS = "data.npz"  # beside the description


def agent_name(name: str) -> str:
    """A name that can be shown, and that a file may have."""
    if not re.fullmatch(r"[^\s/\\\x00-\x1f](?:[^/\\\x00-\x1f]{0,58}[^\s/\\\x00-\x1f])?", name):
        raise ValueError("an agent's name should be 1 to 60 letters, with no slash and no space at its ends")
    return name


AgentName = Annotated[str, AfterValidator(agent_name)]
Columns = Mapping[str, AnyColumn]


class Held(NamedTuple):
    """What all shares hold together: who holds which row, where that does not depend on a seed.

    names: the agents', where they have any. label_names: of labels, which are numbered; targets that are numbers have
    none. test: inputs and targets that are nobody's.
    """

    inputs: np.ndarray
    targets: np.ndarray
    owner: np.ndarray | None
    names: tuple[str, ...]
    label_names: tuple[str, ...]
    test: tuple[np.ndarray, np.ndarray] | None = None


class Files(Described):
    """One file an agent."""

    kind: Literal["files"] = "files"
    files: dict[AgentName, Path] = naming("file", description="each agent's name and file, .csv, .parquet or .npz")
    without_data: list[AgentName] = Field([], description="agents that hold nothing: they only pool")

    def read(self, columns: Columns | None, beside: Path | None, of_numbers: bool = False) -> Held:
        """All files, one after another."""
        if not self.files:
            raise InputError("shares.files: must name a file for at least one agent, got none")
        if twice := set(self.files) & set(self.without_data):
            raise InputError(f"shares.without_data: {brief(min(twice))} has a file")
        names = (*self.files, *self.without_data)
        if columns is None:
            x, y, label_names = _from_archives(self.files, of_numbers)
        else:
            from consilience.data.tables import read_rows  # with pyarrow, which takes 30 MB that only tables need

            rows = [read_rows(file, columns, field=f"shares.files.{name}") for name, file in self.files.items()]
            x, y = [each.inputs for each in rows], [_targets(each) for each in rows]
            label_names = _levels(columns)
        owner = np.repeat(np.arange(len(self.files)), [len(each) for each in y])
        return Held(np.concatenate(x), np.concatenate(y), owner, names, label_names)


class OneTable(Described):
    """One table: a column of it names the owner of each row, or rows are dealt out."""

    kind: Literal["table"] = "table"
    file: Path = naming("file")
    owner: str | None = Field(None, description="the column that names the owner of a row")
    partition: PartitionConfig | None = Field(None, description="how rows are dealt out, without an owner")

    def read(self, columns: Columns | None, beside: Path | None, of_numbers: bool = False) -> Held:
        """The table."""
        if columns is None:
            raise InputError("columns: are required for a table; `consilience new` proposes them")
        if (self.owner is None) == (self.partition is None):
            raise InputError("shares: a table takes either owner (a column) or partition")
        from consilience.data.tables import read_rows

        rows = read_rows(self.file, columns, owner=self.owner, field="shares.file")
        return Held(rows.inputs, _targets(rows), rows.owners, rows.owner_names, _levels(columns))


class Arrays(Described):
    """Arrays of all agents in data.npz beside the description, as `learn` writes them."""

    kind: Literal["arrays"] = "arrays"
    sha256: str

    def found(self, beside: Path | None) -> Path:
        """The file, which must be the one that was written."""
        if beside is None or not (file := beside / ARRAYS).is_file():
            raise InputError(f"shares: '{(beside or Path()) / ARRAYS}' is not there, the arrays of the description")
        if (found := sha256_of_file(file).hexdigest()) != self.sha256:
            raise InputError(f"shares: '{file}' was changed: its sha256 is {found[:12]}…, not {self.sha256[:12]}…")
        return file

    def read(self, columns: Columns | None, beside: Path | None, of_numbers: bool = False) -> Held:
        """The arrays."""
        file = self.found(beside)
        kept = read_arrays("shares", file, ("x", "y", "sizes", "names", "labels"))
        _check_kept(file, kept)
        names = tuple(str(name) for name in kept["names"])
        owner = np.repeat(np.arange(len(names)), kept["sizes"])
        test = (kept["x_test"], kept["y_test"]) if "x_test" in kept else None
        return Held(kept["x"], kept["y"], owner, names, tuple(str(name) for name in kept["labels"]), test)


SharesConfig = Annotated[Files | OneTable | Arrays, Field(discriminator="kind")]


def divided(shares: Any, held: Held, agents: int, seed: int) -> Partition:
    """Who holds which row in the repetition with this seed."""
    if held.owner is not None:
        return Partition(held.owner.astype(np.int64), agents)
    empty = np.zeros(0)
    whole = Dataset("the table", held.inputs, held.targets, empty, empty, held.label_names)
    if not held.label_names and shares.partition.kind not in ("iid", "feature", "file"):
        raise InputError(f"shares.partition: '{shares.partition.kind}' is for labels; iid, feature and file are not")
    partition: Partition = shares.partition.divide(whole, agents, seed)
    return partition


def _targets(rows: Any) -> np.ndarray:
    assert rows.targets is not None
    return np.asarray(rows.targets)


def _levels(columns: Columns) -> tuple[str, ...]:
    _, answer = predicted(columns)
    return tuple(answer.levels) if isinstance(answer, Label) else ()


def _check_kept(file: Path, kept: dict[str, np.ndarray]) -> None:
    """Refuse arrays that `learn` never writes: somebody made them by hand, with the checksum."""
    sizes, tested = kept["sizes"], "x_test" in kept
    targets = [kept["y"], *([kept["y_test"]] if "y_test" in kept else [])]
    if tested != ("y_test" in kept):
        raise InputError(f"shares: '{file}' must have both x_test and y_test, or none of them")
    if tested:
        kept["x_test"], kept["y_test"] = check_pair(kept["x_test"], kept["y_test"], f"shares: '{file}': the test set")
        if kept["x_test"].shape[1:] != kept["x"].shape[1:]:
            raise InputError(f"shares: '{file}': x_test must be like x, got the shape {kept['x_test'].shape}")
    if sizes.dtype.kind not in "iu" or sizes.ndim != 1 or (sizes < 0).any() or int(sizes.sum()) != len(kept["y"]):
        raise InputError(f"shares: '{file}': sizes must be whole numbers that sum to the {len(kept['y'])} rows")
    if kept["names"].shape != sizes.shape or any(kept[name].dtype.kind != "U" for name in ("names", "labels")):
        raise InputError(f"shares: '{file}': names and labels must be text, with a name for each agent")
    kinds = len(kept["labels"])
    for y in targets:
        if y.dtype.kind not in ("iu" if kinds else "f") or (kinds and y.size and not 0 <= y.min() <= y.max() < kinds):
            raise InputError(
                f"shares: '{file}': y must hold " + (f"label numbers below {kinds}" if kinds else "floats")
            )
        if not kinds and not np.isfinite(y).all():
            raise InputError(f"shares: '{file}': y must be finite")


def _from_archives(
    files: Mapping[str, Path], of_numbers: bool
) -> tuple[list[np.ndarray], list[np.ndarray], tuple[str, ...]]:
    """x and y of every file, labels numbered together."""
    if tables := [name for name, file in files.items() if file.suffix != ".npz"]:
        raise InputError(f"columns: are required for tables ('{files[tables[0]]}'); `consilience new` proposes them")
    found = {name: read_arrays(f"shares.files.{name}", file, ("x", "y")) for name, file in files.items()}
    y, label_names = numbered_or_numbers({name: each["y"] for name, each in found.items()}, "shares.files", of_numbers)
    x = {name: arrays["x"] for name, arrays in found.items()}
    check_alike(x, "shares.files")
    return list(x.values()), list(y.values()), label_names
