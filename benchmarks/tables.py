"""What it costs to read a large table: time, and memory over the size of what is kept.

    python benchmarks/tables.py [--rows 10000000] [--columns 10] [--format parquet] [--folder DIR] [--json]

Normal numbers in a file, each column centred and scaled as it is read, in a process of its own; the file was just
written, so it comes from the system's memory, not from the disk. Memory is that of the process at its peak, without
what it had before it read (the interpreter and its libraries).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from consilience.data.tables import read_rows
from consilience.task.columns import AnyColumn, Number, Target

PIECE = 1_000_000


def write(file: Path, rows: int, columns: int) -> None:
    """A file of normal numbers: columns x0, x1, … and a target."""
    rng = np.random.default_rng(0)
    names = [*(f"x{n}" for n in range(columns)), "y"]
    schema = pa.schema([(name, pa.float64()) for name in names])
    parquet = file.suffix == ".parquet"
    make = pyarrow.parquet.ParquetWriter if parquet else pyarrow.csv.CSVWriter
    with make(file, schema) as writer:
        for begin in range(0, rows, PIECE):
            size = min(PIECE, rows - begin)
            writer.write_table(pa.table([rng.standard_normal(size) for _ in names], schema=schema))


def read(file: Path, columns: int) -> dict[str, Any]:
    """Seconds and memory of reading it here."""
    described: dict[str, AnyColumn] = {f"x{n}": Number(centre=0.5, scale=2.0) for n in range(columns)}
    before = _memory("VmRSS")
    began = time.perf_counter()
    rows = read_rows(file, described | {"y": Target()})
    seconds = time.perf_counter() - began
    peak = _memory("VmHWM")
    assert rows.targets is not None
    kept = rows.inputs.nbytes + rows.targets.nbytes
    return {
        "rows": len(rows.inputs),
        "columns": columns,
        "seconds": round(seconds, 2),
        "rows_a_second": round(len(rows.inputs) / seconds),
        "kept_mb": round(kept / 1e6),
        "peak_mb": round(peak / 1e6),
        "before_mb": round(before / 1e6),
        "memory_over_kept": round((peak - before) / kept, 2),
    }


def _memory(field: str) -> int:
    """Bytes of this process, now (VmRSS) or at its peak (VmHWM): Linux says it; getrusage would add its parent's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def main() -> None:
    """Measure and print."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--rows", type=int, default=10_000_000)
    words.add_argument("--columns", type=int, default=10)
    words.add_argument("--format", choices=["parquet", "csv"], default="parquet")
    words.add_argument("--folder", type=Path, help="where to write the file")
    words.add_argument("--json", action="store_true")
    words.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    given = words.parse_args()
    if given.read is not None:
        print(json.dumps(read(given.read, given.columns)))
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        file = Path(folder) / f"table.{given.format}"
        write(file, given.rows, given.columns)
        command = [sys.executable, __file__, "--read", str(file), "--columns", str(given.columns)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        told = {"format": given.format, "file_mb": round(file.stat().st_size / 1e6), **json.loads(done.stdout)}
    print(json.dumps(told, indent=2) if given.json else "\n".join(f"{name:20}{value}" for name, value in told.items()))


if __name__ == "__main__":
    main()
