"""Runs with damaged folders or damaged data, and runs really played."""

from __future__ import annotations

from pathlib import Path

from . import tables
from .invariants import FOLDER, GONE, Case, Content, Link
from .templates import DATA, RUN, RUNS, STATES, data_files, refused_or_same, template
from .wild import FLOATS, Rng, chance, damaged, pick


def folder(rng: Rng) -> Case:
    """A run's folder, damaged; then carried on or reported."""
    name = pick(rng, ("regression", "regression", "changing", "changing", "learn", *DATA))
    state = pick(rng, STATES)
    words = pick(rng, (("resume", RUN), ("resume", RUN), ("report", RUN), ("report", RUN, "--to", "kept")))
    words += pick(rng, (("--json",), ("--quiet",)))
    files: dict[str, Content] = dict(template(name, state))
    hurt: dict[str, Content | str] = {}
    notes = []
    for _ in range(int(pick(rng, (1, 1, 1, 2)))):
        inside = [file for file in files if file.startswith(f"{RUN}/") and "figures" not in file]
        lasting = [file for file in inside if not file.endswith("summary.json")]
        file = pick(rng, lasting if chance(rng, 0.9) else inside) if inside else f"{RUN}/config.toml"
        if chance(rng, 0.02):
            file = pick(
                rng, (f"{RUN}/.lock", f"{RUN}/figures", f"{RUN}/.checkpoint.safetensors.7.part", f"{RUN}/summary.json")
            )
        how = rng.random()
        if how < 0.06 or not isinstance(files.get(file), bytes):
            for below in [other for other in files if other.startswith(f"{file}/")]:
                del files[below]
            files[file] = pick(rng, (FOLDER, Link("nowhere"), Link(Path(file).name), b"x"))
            notes.append(f"{file} replaced by {files[file]}")
        elif how < 0.12:
            del files[file]
            hurt[file] = GONE
            notes.append(f"{file} removed")
            continue
        else:
            other = template(pick(rng, ("regression", "changing", "learn", *DATA)), pick(rng, STATES)).get(file, b"")
            files[file], change = damaged(rng, files[file], other)
            notes.append(f"{file}: {change}")
        hurt[file] = files[file]
    return Case(
        "",
        list(words),
        files,
        real=words[0] == "report" and chance(rng, 0.1),  # the last draw: the damage is the same either way
        also=refused_or_same(name, state, words, hurt),
        note="; ".join([f"{name} {state}", *notes]),
    )


def data_between(rng: Rng) -> Case:
    """The data of a run, damaged between checkpoint and resume."""
    name, state = pick(rng, DATA), pick(rng, STATES)
    words = pick(rng, (("resume", RUN, "--json"), ("resume", RUN, "--quiet"), ("report", RUN, "--json")))
    files: dict[str, Content] = dict(template(name, state))
    own = files[name]
    assert isinstance(own, bytes)
    files[name], change = damaged(rng, own, data_files()["own.csv"])
    if chance(rng, 0.05):
        files[name] = pick(rng, (FOLDER, Link("nowhere")))
    return Case(
        "", list(words), files, also=refused_or_same(name, state, words, {name: files[name]}), note=f"{name}: {change}"
    )


def played(rng: Rng) -> Case:
    """A small run, really played, with settings that do not make it large."""
    name, settings = RUNS[pick(rng, ("regression", "changing"))]
    if name == "linear-regression":
        free = {
            "noise": FLOATS,
            "prior_variance": FLOATS,
            "seed": (0, 1, 2**30 - 1),
            "theta": None,
            "half_widths": None,
        }
        free |= {"precision": ("float32", "float64"), "batch": (1, 2), "rounds": (1, 2, 11), "network.laziness": FLOATS}
    else:
        free = {"straight": FLOATS, "bent": FLOATS, "seed": (0, 2**30 - 1), "points": (2, 3, 100), "rounds": (4, 5, 9)}
        free |= {
            "precision": ("float32", "float64"),
            "networks.lossy.trust": FLOATS,
            "networks.lossy.changes.loss": FLOATS,
        }
    words = ["run", name, "--json", "--out", RUN, *(word for text in settings for word in ("--set", text))]
    for _ in range(int(pick(rng, (1, 2, 3)))):
        key = pick(rng, tuple(free))
        chosen = [pick(rng, FLOATS) for _ in range(2 + (key == "theta"))] if free[key] is None else pick(rng, free[key])
        words += ["--set", f"{key}={chosen}"]
    return Case("", words, {}, also=tables.run_is_whole)
