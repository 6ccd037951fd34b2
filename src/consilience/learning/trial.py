"""What peers of a trial learn together: the embedded digits split by label, or a description with everybody's data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from consilience.engines.peers.names import peer_name
from consilience.errors import InputError, brief
from consilience.streams import stream
from consilience.task.rules import ruled

NAMES = ("north", "east", "south", "west", "hill", "lake", "wood", "moor")
PEERS_HAVE = ("paper", "natural", "sites", "sites-corrected", "tracking", "laplace")
DIGITS: dict[str, Any] = {
    "model": {"kind": "mlp", "hidden": [32]},
    "learner": {"kind": "variational", "epochs": 2, "learning_rate": 0.003, "sd_rate": 30.0, "kl_weight": 0.1},
    "record_every": 1,
    "samples": 8,
}
USED = ("shares", "network", "checkpoint_every")  # of a description, beside what a study says
DIGITS_ROUNDS, DIGITS_AGENTS, DIGITS_RULE = 20, 4, "sites"


class Trial(NamedTuple):
    """What a study says (its name, task, rounds), who takes part with what file, and who hears whom (`study links`)."""

    study: Mapping[str, Any]
    files: Mapping[str, Path]
    links: Sequence[str]
    left: Sequence[str] = ()  # of a description what peers have no use for


def of_digits(folder: Path, agents: int | None, rounds: int | None, rule: str | None) -> Trial:
    """Everybody has the examples of a few digits only, and very few of the others; they are on a ring.

    Corrections come late where news does: by that rule all are linked with all.
    """
    from consilience.data import load_dataset

    digits, agents = load_dataset("digits"), agents or DIGITS_AGENTS
    names = _names(agents)
    order = stream("kept back", 0, agents).permutation(len(digits.labels))
    inputs, labels = digits.inputs[order], digits.labels[order]
    spread = np.arange(len(order)) % (20 * agents)
    files = {}
    for number, name in enumerate(names):
        mine = (labels * agents // len(digits.label_names) == number) | (spread == number)
        files[name] = folder / f"{name}.npz"
        np.savez(files[name], x=inputs[mine], y=np.array(digits.label_names, np.str_)[labels[mine]])
    described = {"experiment": "learn", **DIGITS}
    shape = {"labels": [str(name) for name in digits.label_names], "input_shape": list(digits.inputs.shape[1:])}
    study, _ = _study("digits", described, rounds or DIGITS_ROUNDS, rule or DIGITS_RULE, **shape)
    return Trial(study, files, ["complete" if rule == "sites-corrected" else "ring"])


def of_task(folder: Path, task: Path, agents: int | None, rounds: int | None, rule: str | None) -> Trial:
    """The agents of a description, each with a file that holds its share alone."""
    from consilience import experiments
    from consilience.described.settings import read_toml
    from consilience.experiments.learn.description import Config
    from consilience.task.shares import Arrays, Files, OneTable, divided

    config = experiments.load(str(task))
    if not isinstance(config, Config):
        raise InputError(f"--task: must describe 'learn', as `consilience new` does, got {brief(config.experiment)}")
    shares, network = config.shares, config.network.build()
    if isinstance(shares, Files) and shares.without_data:
        raise InputError(f"shares.without_data: a peer has a file, {brief(shares.without_data[0])} has none")
    held = shares.read(config.columns, config.beside, config.likelihood.of_numbers)
    if held.names and agents not in (None, len(held.names)):
        raise InputError(f"--agents: the description has the shares of {len(held.names)}, got {agents}")
    many = len(held.names) or agents or network.agents
    if many < 2:
        raise InputError("--task: must describe at least two agents, got one")
    names = [_fit(name, number) for number, name in enumerate(held.names)] or _names(many)
    if isinstance(shares, Files):
        files = dict(zip(names, shares.files.values(), strict=True))
    else:
        owner = divided(shares, held, many, config.seed).owner
        parts = {name: np.flatnonzero(owner == number) for number, name in enumerate(names)}
        if empty := [name for name, rows in parts.items() if not len(rows)]:
            raise InputError(f"shares: a peer has data, {brief(empty[0])} has none")
        if isinstance(shares, OneTable):
            files = _split_table(folder, shares.file, shares.owner, config.columns or {}, parts)
        else:
            targets = np.array(held.label_names, np.str_)[held.targets] if held.label_names else held.targets
            files = {name: folder / f"{name}.npz" for name in names}
            for name, rows in parts.items():
                np.savez(files[name], x=held.inputs[rows], y=targets[rows])
    seen = {"input_shape": list(held.inputs.shape[1:]), "labels": list(held.label_names) or None}
    as_arrays = isinstance(shares, Arrays) or config.columns is None
    study, left = _study(
        _fit(task.stem, 0), read_toml(task), rounds or config.rounds, rule, **(seen if as_arrays else {})
    )
    links = _links(folder, network, names) if network.agents == many else ["ring"]
    return Trial(study, files, links, [*left, *(["network.changes"] if config.network.changes else [])])


def _study(
    name: str, described: Mapping[str, Any], rounds: int, rule: str | None, **seen: Any
) -> tuple[dict[str, Any], list[str]]:
    """What a study says, and what of a description is not its to say."""
    from consilience.experiments.learn.agreed import agreed

    if rule is not None and rule not in PEERS_HAVE:
        raise InputError(f"--rule: peers have {', '.join(PEERS_HAVE)}, got {brief(rule)}")
    values = dict(described) if rule is None else ruled({"learner": {}, **described}, rule)
    if "passes" in (consensus := values.get("consensus") or {}):
        values["consensus"] = {**consensus, "passes": 1}  # peers pass on once a round
    task, left = agreed(values)
    policy = {"rounds": rounds, "patience": 60.0}
    known = {key: value for key, value in seen.items() if value is not None}
    return {"name": name, "policy": policy, "task": task, **known}, [each for each in left if each not in USED]


def _names(agents: int) -> list[str]:
    return [NAMES[k] if agents <= len(NAMES) else f"peer-{k}" for k in range(agents)]


def _fit(name: str, number: int) -> str:
    """A name that a peer may have: this one, if it may."""
    try:
        return peer_name(name)
    except InputError:
        return f"peer-{number}"


def _links(folder: Path, network: Any, names: Sequence[str]) -> list[str]:
    """Who hears whom, how much, as a file of links."""
    W = network.W.tocoo()
    rows = [
        f"{names[i]},{names[j]},{w!r}"
        for i, j, w in zip(W.row.tolist(), W.col.tolist(), W.data.tolist(), strict=True)
        if i != j and w > 0
    ]
    file = folder / "links.csv"
    file.write_text("\n".join(["hearer,heard,trust", *rows]) + "\n")
    return [str(file)]


def _split_table(
    folder: Path, file: Path, owner: str | None, columns: Mapping[str, Any], parts: Mapping[str, np.ndarray]
) -> dict[str, Path]:
    """Everybody's rows of a table, in a file of the same kind, without the column that says whose they are."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    from consilience.data.formats import opened

    with opened(file) as table:
        names = [name for name in table.names if name != owner or name in columns]
        whole = pa.Table.from_batches(list(table.batches(names))).select(names)
    write: Callable[[Any, Path], None] = (
        pyarrow.parquet.write_table if file.suffix == ".parquet" else pyarrow.csv.write_csv
    )
    made = {}
    for name, rows in parts.items():
        made[name] = folder / f"{name}{file.suffix}"
        write(whole.take(rows), made[name])
    return made
