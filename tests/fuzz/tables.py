"""Files of numbers, well-formed and odd, and what must hold of what is made of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import tomli_w

from consilience.described.settings import to_toml
from consilience.experiments import load

from .invariants import Case, Content, Ending, Link, judge
from .templates import data_files
from .wild import FLOATS, INTEGERS, WORDS, Rng, chance, damaged, pick, restructured


def stochastic(rng: Rng, size: int) -> np.ndarray:
    """A matrix whose rows sum to 1: dense, sparse, slow, periodic, split or nearly so."""
    W = rng.random((size, size)) * (rng.random((size, size)) < pick(rng, (1.0, 0.5, 0.3)))
    W = W ** pick(rng, (1, 1, 10, 100)) + np.eye(size) * pick(rng, (0.0, 0.0, 1.0, 1e-9, 1e-300, 1e3))
    if chance(rng, 0.1):
        W = np.roll(np.eye(size), 1, axis=1) + pick(rng, (0, 1e-12, 1e-16)) * np.ones((size, size))
    sums = W.sum(1, keepdims=True)
    return np.divide(W, sums, out=np.full_like(W, 1 / max(size, 1)), where=sums > 0)


def matrix(rng: Rng) -> tuple[str, Content]:
    """A file with a matrix."""
    size = int(pick(rng, (1, 2, 2, 3, 3, 4, 5, 8, 30, 0)))
    W = stochastic(rng, size)
    if chance(rng, 0.3) and size:
        W[rng.integers(size), rng.integers(size)] = pick(rng, FLOATS)
    style = pick(rng, ("r", "r", "r", ".3g", ".17g", "e", "f", "g"))
    rows = [[repr(cell) if style == "r" else format(cell, style) for cell in row] for row in W.tolist()]
    names = [pick(rng, WORDS) for _ in range(size)] if chance(rng, 0.15) else []
    if chance(rng, 0.6):
        file = "W.csv"
        lines = [",".join(names)] * bool(names) + [",".join(row) for row in rows]
        text = "\n".join(lines).encode("utf-8", "replace") + b"\n"
    else:
        file = "W.toml"
        text = f"W = [{', '.join('[' + ', '.join(row) + ']' for row in rows)}]\n".encode()
        if names:
            text += _dumped({"names": names})
        if chance(rng, 0.2):
            text = _dumped(restructured(rng, {"W": W.tolist(), "names": names}))
    if chance(rng, 0.5):
        text, _ = damaged(rng, text, data_files()["own.csv"])
    return file, text if not chance(rng, 0.01) else pick(rng, (None, Link(file), Link("nowhere")))


def coins(rng: Rng, agents: int) -> bytes:
    """A model of finitely many hypotheses, most often a sound one."""
    hypotheses, outcomes = int(pick(rng, (1, 2, 2, 3))), int(pick(rng, (1, 2, 2, 3)))
    tables = rng.dirichlet(np.ones(outcomes), size=(agents, hypotheses))
    if chance(rng, 0.1):
        tables[:] = tables[:1, :1]  # nobody can tell anything
    if chance(rng, 0.15):
        tables[rng.integers(agents), rng.integers(hypotheses), rng.integers(outcomes)] = pick(rng, FLOATS)
    values: dict[str, Any] = {"truth": int(rng.integers(hypotheses)), "likelihoods": tables.tolist()}
    return _dumped(restructured(rng, values) if chance(rng, 0.4) else values)


def moments(rng: Rng, agents: int) -> bytes:
    """A linear-Gaussian model, most often a sound one."""
    d = int(pick(rng, (1, 2, 3)))
    A = rng.normal(size=(agents, d, d)) * pick(rng, (1, 1, 1e-200, 1e150, 0))
    values: dict[str, Any] = {"second_moments": (A @ A.transpose(0, 2, 1)).tolist()}
    if chance(rng, 0.5):
        values["noise"] = pick(rng, FLOATS) if chance(rng, 0.5) else 0.8
    if chance(rng, 0.4):
        values["offset"] = [pick(rng, FLOATS) for _ in range(d)] if chance(rng, 0.5) else [1.0] * d
    return _dumped(restructured(rng, values) if chance(rng, 0.4) else values)


def dataset(rng: Rng) -> tuple[str, Content]:
    """A table with labels, in one of the formats."""
    kind = pick(rng, ("csv", "csv", "npz", "parquet"))
    file = f"own.{kind}"
    content = data_files()[file]
    if chance(rng, 0.6):
        content = {"csv": _csv, "npz": _npz, "parquet": _parquet}[kind](rng)
    if chance(rng, 0.4):
        content, _ = damaged(rng, content, data_files()[pick(rng, tuple(data_files()))])
    return file, content if not chance(rng, 0.01) else pick(rng, (None, Link(file), Link("nowhere")))


def _csv(rng: Rng) -> bytes:
    rows, columns = int(pick(rng, (0, 1, 4, 5, 30, 60))), int(pick(rng, (0, 1, 2, 3)))
    header = [pick(rng, ("a", "b", "test", "label", "", "é", *WORDS)) for _ in range(columns)] + ["label"] * (
        not chance(rng, 0.1)
    )
    if chance(rng, 0.2):
        header.append("test")
    odd = pick(rng, (0.0, 0.0, 0.02, 0.3))

    def cell(name: str) -> str:
        if chance(rng, odd):
            return str(pick(rng, INTEGERS + FLOATS + WORDS))
        return pick(rng, ("x", "y", "z")) if name == "label" else str(int(rng.integers(2)))

    lines = [[cell(name) for name in header] for _ in range(rows)]
    return "\n".join(",".join(line) for line in [header, *lines]).encode("utf-8", "replace") + b"\n"


def _array(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    base = rng.integers(0, 3, size=shape)
    kinds = (
        "f8",
        "f8",
        "f4",
        "f2",
        "u1",
        "i8",
        "u8",
        "i1",
        "?",
        "c16",
        "U3",
        "S3",
        "M8[s]",
        "m8[s]",
        "V4",
    )
    made = base.astype(np.int64).astype(pick(rng, kinds)) if not chance(rng, 0.05) else base.astype(object)
    if made.dtype.kind == "f" and made.size and chance(rng, 0.2):
        with np.errstate(over="ignore"):
            made.flat[int(rng.integers(made.size))] = pick(rng, FLOATS)
    if made.ndim > 1 and chance(rng, 0.2):
        made = np.asfortranarray(made)
    return made.astype(made.dtype.newbyteorder(pick(rng, ("=", ">", "<"))))


def _npz(rng: Rng) -> bytes:
    many, few = int(pick(rng, (0, 1, 3, 30))), int(pick(rng, (0, 1, 10)))
    inner = pick(rng, ((), (1,), (2,), (0,), (4, 4), (4, 4, 1), (4, 4, 3), (2, 2, 2, 2)))
    arrays = {"x": _array(rng, (many, *inner)), "x_test": _array(rng, (few, *inner))}
    arrays |= {"y": rng.integers(0, 3, size=many), "y_test": rng.integers(0, 3, size=few)}
    if chance(rng, 0.5):
        key = pick(rng, tuple(arrays))
        other = pick(rng, ((), (many,), (few,), (many, 1), (many, 2), (7,)))
        arrays[key] = _array(rng, other)
    if chance(rng, 0.1):
        del arrays[pick(rng, tuple(arrays))]
    stream = BytesIO()
    pick(rng, (np.savez, np.savez_compressed))(stream, **arrays)
    return stream.getvalue()


def _parquet(rng: Rng) -> bytes:
    rows = int(pick(rng, (0, 1, 5, 30)))
    makers = (
        lambda: pa.array(rng.normal(size=rows)),
        lambda: pa.array(rng.integers(0, 3, size=rows)),
        lambda: pa.array(["x", "y", "z"] * rows)[:rows],
        lambda: pa.array([None, 1.0, 2.0] * rows, pa.float64())[:rows],
        lambda: pa.array([True, False] * rows)[:rows],
        lambda: pa.array([[1.0, 2.0], [3.0]] * rows, pa.list_(pa.float64()))[:rows],
        lambda: pa.array([None] * rows),
        lambda: pa.array([b"a", b"\xff"] * rows, pa.binary())[:rows],
        lambda: pa.array([{"a": 1}] * rows, pa.struct([("a", pa.int64())])),
        lambda: pa.array(np.arange(rows), pa.timestamp("s")),
        lambda: pa.array(["x", "y"] * rows).dictionary_encode()[:rows],
        lambda: pa.array(np.arange(rows) % 2, pa.uint8()),
        lambda: pa.array([pick(rng, FLOATS) for _ in range(rows)], pa.float64()),
        lambda: pa.array([float("nan"), None] * rows, pa.float32())[:rows],
    )
    columns = {name: (pick(rng, makers[:2]) if chance(rng, 0.6) else pick(rng, makers))() for name in ("a", "b")}
    if not chance(rng, 0.1):
        columns["label"] = (pick(rng, makers[1:3]) if chance(rng, 0.6) else pick(rng, makers))()
    if chance(rng, 0.2):
        columns["test"] = pick(rng, makers)()
    stream = BytesIO()
    pyarrow.parquet.write_table(pa.table(columns), stream)
    return stream.getvalue()


def _dumped(values: dict[str, Any]) -> bytes:
    try:
        return tomli_w.dumps(values).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError):
        return str(values).encode("utf-8", "replace")


# What else must hold.


def reads_back(ending: Ending) -> Iterator[str]:
    """A printed description is a description, and the same one."""
    if ending.code != 0 or "Usage" in ending.out:
        return
    again: list[Ending] = []

    def note(second: Ending) -> Iterator[str]:
        again.append(second)
        yield from ()

    # Files that the description names are still meant to be there: only the description is new.
    printed = Case("config", ["config", "printed.toml"], {"printed.toml": ending.out.encode()}, also=note)
    for found in judge(printed, ending.folder):
        yield f"a printed description: {found.what}"
    if again and again[0].code != 0:
        yield f"a printed description is refused: {again[0].err}"
    elif again and again[0].out != ending.out:
        yield "a printed description is another one"


def folder_reads_back(ending: Ending) -> Iterator[str]:
    """What a run begins with can be read again and is the same."""
    if ending.code != 0:
        return
    configs = [name for name in ending.after if name not in ending.before and name.endswith("config.toml")]
    for name in configs:
        file = ending.folder / name
        try:
            if to_toml(load(str(file))) != file.read_text(encoding="utf-8"):
                yield "the description in a run's folder is another one when it is read"
        except ValueError as error:
            yield f"the description in a run's folder is refused: {error}"


def run_is_whole(ending: Ending) -> Iterator[str]:
    """A run that says it is finished has everything, and no number that is none."""
    if ending.code == 2 and set(ending.after) != set(ending.before):
        yield "a refused run leaves something behind"
    if ending.code != 0:
        return
    for name in ("config.toml", "run.json", "record.csv", "summary.json", "checkpoint.safetensors"):
        if f"run/{name}" not in ending.after:
            yield f"a finished run has no {name}"
    text = (ending.folder / "run" / "summary.json").read_text(encoding="utf-8")
    if "NaN" in text or "Infinity" in text:
        yield "a finished run's summary has a number that JSON does not know"
    record = (ending.folder / "run" / "record.csv").read_text(encoding="utf-8")
    if "nan" in record or "inf" in record:
        yield "a finished run's record has a number that is none"


def centrality_sums_to_1(ending: Ending) -> Iterator[str]:
    """The centrality of an accepted matrix is a distribution."""
    if ending.code != 0:
        return
    v = np.array(json.loads(ending.out)["v"])
    if not (np.isfinite(v).all() and (v > 0).all() and abs(v.sum() - 1) < 1e-9):
        yield "the centrality of an accepted matrix is no distribution"
