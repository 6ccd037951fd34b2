"""Columns as a file, CSV or Parquet: whole or not there, and refused before anything is computed for it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from consilience.errors import InputError, brief
from consilience.files.whole import replacing

TABLES = (".csv", ".parquet")


def check_out(file: Path, endings: tuple[str, ...], force: bool = False, field: str = "--out") -> None:
    """Refuse a file that could not be written, or that is there already.

    >>> check_out(Path("belief.txt"), (".safetensors",))
    Traceback (most recent call last):
    consilience.errors.InputError: --out: must end in .safetensors, got 'belief.txt'
    """
    if file.suffix.lower() not in endings:
        raise InputError(f"{field}: must end in {' or '.join(endings)}, got {brief(str(file))}")
    if file.is_dir():
        raise InputError(f"{field}: '{file}' is a folder")
    if (file.exists() or file.is_symlink()) and not force:
        raise InputError(f"{field}: '{file}' is there already; --force writes over it")
    if not file.parent.is_dir():
        raise InputError(f"{field}: '{file.parent}' is no folder, '{file.name}' cannot be written there")
    try:
        with tempfile.TemporaryFile(dir=file.parent):  # rights alone do not tell: a file system may be read-only
            pass
    except OSError as error:
        raise InputError(f"{field}: nothing can be written in '{file.parent}': {error.strerror}") from None


def write_columns(file: Path, columns: Mapping[str, np.ndarray]) -> None:
    """Write columns as a table, by the file's ending."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    table = pa.table({name: pa.array(np.ascontiguousarray(values)) for name, values in columns.items()})
    with replacing(file) as stream:
        if file.suffix.lower() == ".csv":
            pyarrow.csv.write_csv(table, stream)
        else:
            pyarrow.parquet.write_table(table, stream)
