"""New inputs for a model that was learnt: read from a file and checked as those that it was learnt from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from consilience.data.arrays import ARCHIVE, check_inputs
from consilience.errors import InputError
from consilience.files.reading import reading
from consilience.machine.memory import require
from consilience.task.columns import Ignore
from consilience.task.learnt import Learnt


def read_inputs(learnt: Learnt, file: Path, owner: str | None = None, field: str = "file") -> np.ndarray:
    """A table with the columns that were learnt from (it may have what is predicted, too), or `x` of an archive.

    `owner` names a column that may be there, and is not used: whose a row is.
    """
    if learnt.columns is not None:
        from consilience.data.tables import read_rows

        columns: dict[str, Any] = dict(learnt.columns)
        if owner is not None:
            columns.setdefault(owner, Ignore())
        return read_rows(file, columns, with_target=False, field=field).inputs
    inputs = check_inputs(_archived(file, field), f"{field}: '{file}'")
    if inputs.shape[1:] != learnt.shape:
        shape = " × ".join(map(str, learnt.shape))
        got = " × ".join(map(str, inputs.shape[1:]))
        raise InputError(f"{field}: '{file}': x must be {shape} for each row, as in learning, got {got}")
    return inputs


def _archived(file: Path, field: str) -> np.ndarray:
    with reading(field, file), file.open("rb") as stream:
        if stream.read(len(ARCHIVE)) != ARCHIVE:
            raise InputError("must be an .npz archive with an array x: the run learnt from arrays, not from a table")
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as archive:
            if "x" not in archive:
                raise InputError(f"must have an array x, it has {', '.join(archive.files[:6]) or 'none'}")
            require(2 * sum(member.file_size for member in archive.zip.infolist()), "unpacked")
            return np.asarray(archive["x"])
