"""Case number n of a seed: what kind, and what is handed over."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import tomli_w
import typer

from consilience.command import verbs as cli_verbs
from consilience.described.networks import NETWORKS
from consilience.experiments import EXPERIMENTS

from . import environments, homes, library, own, run_folders, tables
from .environments import surroundings
from .fields import setting, values_of
from .invariants import FOLDER, Case, Content, Link
from .templates import RUN, data_files, template
from .wild import FLOATS, INTEGERS, WORDS, Rng, chance, damaged, nested, pick, restructured

NAMES = tuple(EXPERIMENTS)
LIGHT = ("linear-regression", "theorem-1", "changing-rates", "star-digits", "churn-digits", "async-digits")
PATHS = (
    "new",
    "new/inside",
    "folder",
    "file",
    "file/inside",
    "",
    ".",
    "é",
    "a b",
    "x" * 300,
    "\x00",
    "/proc/x",
    "link",
)
LONG = ("changing-rates", "churn-digits", "async-digits")  # all their turns are written when a run begins


def case(seed: int, number: int) -> Case:
    """The case; the same for the same seed and number, always."""
    rng = np.random.default_rng([seed, number])
    weights = np.array([weight for weight, _ in KINDS.values()])
    kind = list(KINDS)[int(rng.choice(len(KINDS), p=weights / weights.sum()))]
    made = KINDS[kind][1](rng)
    made.kind = kind
    return made


def _settings(rng: Rng) -> Case:
    name = pick(rng, LIGHT if chance(rng, 0.85) else NAMES)
    settings = [setting(rng, name) for _ in range(int(pick(rng, (1, 1, 1, 2, 3, 5))))]
    if chance(rng, 0.3):
        settings.insert(0, f"network{'s.a' if name != 'linear-regression' else ''}.kind={pick(rng, tuple(NETWORKS))}")
    if chance(rng, 0.1) and name.endswith("digits"):
        settings.insert(0, f"partition.kind={pick(rng, own.DEALT)}")
    if name in LONG and chance(rng, 0.99):
        settings.insert(0, "rounds=12")
    words = [word for text in settings for word in ("--set", text)]
    return _described(rng, name, words)


def _described(rng: Rng, source: str, words: list[str], files: dict[str, Content] | None = None) -> Case:
    """A description handed to one of the verbs that take it."""
    files = surroundings(rng) | (files or {})
    verb = pick(rng, ("config", "config", "run", "run", "partition"))
    told = ["--json"] if chance(rng, 0.4) else []
    if verb == "config":
        return Case("", ["config", source, *words, *told], files, also=tables.reads_back if not told else None)
    if verb == "partition":
        return Case("", ["data", "partition", source, *words, *told], files)
    if chance(rng, 0.2):
        told += ["--out", pick(rng, PATHS)]
    return Case("", ["run", source, *words, *told], files, only_begin=True, also=tables.folder_reads_back)


def _description(rng: Rng) -> Case:
    name = pick(rng, LIGHT if chance(rng, 0.85) else NAMES)
    values = values_of(name)
    if name in LONG and chance(rng, 0.99):
        values = {**values, "rounds": 12}
    if chance(rng, 0.65):
        values = restructured(rng, values)
    text = _as_toml(rng, values)
    if chance(rng, 0.5):
        text, _ = damaged(rng, text, template("regression", "finished")[f"{RUN}/config.toml"])
    if chance(rng, 0.02):
        text += f"\na = {nested(rng)}".encode()
    file = pick(rng, ("mine.toml",) * 9 + ("a b.toml", "é.toml", "x.y.toml", ".toml"))
    words = ["--set", setting(rng, name)] if chance(rng, 0.15) else []
    content: Content = text if not chance(rng, 0.01) else pick(rng, (FOLDER, Link("mine.toml"), Link("nowhere")))
    return _described(rng, file, words, {file: content})


def _as_toml(rng: Rng, values: dict[str, Any]) -> bytes:
    try:
        return tomli_w.dumps(values).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError, AttributeError):
        return str(values).encode("utf-8", "replace")


@cache
def _verbs() -> dict[tuple[str, ...], list[Any]]:
    """Every verb and its parameters, as the command itself declares them."""
    found: dict[tuple[str, ...], list[Any]] = {}

    def walk(command: Any, before: tuple[str, ...]) -> None:
        for name, inner in getattr(command, "commands", {}).items():
            walk(inner, (*before, name))
        if not hasattr(command, "commands"):
            found[before] = list(command.params)

    walk(typer.main.get_command(cli_verbs.app), ())
    return found


def _command_line(rng: Rng) -> Case:
    verb = pick(rng, tuple(_verbs()))
    words: list[str] = []
    for parameter in _verbs()[verb]:
        option = bool(parameter.opts and parameter.opts[0].startswith("-"))
        if option and not chance(rng, 0.25):
            continue
        if option:
            words.append(pick(rng, tuple(parameter.opts)))
        if not (option and getattr(parameter, "is_flag", False)):
            words.append(_word_for(rng, verb, parameter.name))
    if chance(rng, 0.3) and words:
        at = int(rng.integers(len(words)))
        what = rng.integers(5)
        if what == 0:
            del words[at]
        elif what == 1:
            words.insert(at, words[int(rng.integers(len(words)))])
        elif what == 2:
            words[at] = pick(rng, WORDS)
        elif what == 3:
            words[at] = words[at][:-1]
        else:
            words = words[::-1]
    words = [*verb, *words]
    if chance(rng, 0.05):
        words = [pick(rng, WORDS) for _ in range(int(rng.integers(3)))]
    files = surroundings(rng) | {"coins.toml": b"likelihoods = [[[0.5, 0.5], [0.9, 0.1]], [[0.5, 0.5], [0.4, 0.6]]]\n"}
    if chance(rng, 0.1):
        files |= template("regression", "finished")
    words = [word.replace("\ud800", "\udce9").replace("\x00", "") for word in words]  # what a shell can pass on
    return Case("", words, files, only_begin=True)


def _word_for(rng: Rng, verb: tuple[str, ...], name: str) -> str:
    if chance(rng, 0.1) and name not in ("out", "to"):
        return pick(rng, WORDS)
    if name in ("out", "to"):
        return pick(rng, PATHS)
    if name in ("folder", "data_dir"):
        return pick(rng, (RUN, RUN, *PATHS))
    if name == "experiment":
        return pick(rng, (*LIGHT, *NAMES, "own.csv", "W.toml", "folder"))
    if name == "settings":
        return setting(rng, pick(rng, LIGHT))
    if name == "network":
        return pick(rng, (*NETWORKS, "W.csv", "W.toml", "folder.csv", "own.csv", "star", "ring", "grid"))
    if name == "model":
        return pick(rng, ("coins.toml", "W.toml", "none", "folder", "own.csv"))
    if name == "name":
        return pick(rng, ("digits", "mnist", "fashion-mnist", "own.csv"))
    if name == "files":
        return pick(rng, ("own.csv", "own.csv", "W.csv", "file", "folder.csv", "nowhere.csv"))
    if name in ("label", "target", "owner"):
        return pick(rng, ("label", "a", "b", ""))
    if name == "figures":
        return pick(rng, ("1", "theorem-1", "2a", "3", "4", "5", "time-varying", "6"))
    if name == "weights":
        return pick(rng, ("uniform", "metropolis", "none"))
    if name == "coordinator":
        return pick(rng, ("localhost:1", "localhost", ":1", "a:0", "a:99999", "[::1]:5", "é:1", "a:١"))
    if chance(rng, 0.5):
        return str(pick(rng, (1, 2, 3, 4, 5, 8, 9, 20, 0.5, 0.1, 0.9)))
    return str(pick(rng, INTEGERS[:-1] + FLOATS))


def _matrix(rng: Rng) -> Case:
    file, content = tables.matrix(rng)
    words = ["theory", file, *(["--json"] if chance(rng, 0.7) else [])]
    if chance(rng, 0.15):
        words += ["--rounds", str(pick(rng, (1, 2, 10, 0, -1, 10**5, 2**31, 2**63)))]
    if chance(rng, 0.1):
        name = pick(rng, ("linear-regression", "theorem-1"))
        key = "network" if name == "linear-regression" else "networks.a"
        words = [name, "--set", f"{key}.kind=matrix", "--set", f"{key}.file={file}"]
        return _described(rng, words[0], words[1:], {file: content})
    return Case("", words, {file: content}, also=tables.centrality_sums_to_1 if "--json" in words else None)


def _turns(rng: Rng) -> Case:
    text = template("changing", "finished")[f"{RUN}/turns-lossy.csv"]
    lines = text.splitlines(keepends=True)
    text = b"".join(lines[: int(rng.integers(1, 60))])
    if chance(rng, 0.92):
        text, _ = damaged(rng, text, data_files()["own.csv"])
    files: dict[str, Content] = {"turns.csv": text, "coins.toml": tables.coins(rng, 3)}
    if chance(rng, 0.3):
        words = ["run", "changing-rates", "--set", "rounds=8", "--set", "hypotheses=3", "--set"]
        words += ['networks={a={kind="star", edges=2, changes={replay="turns.csv"}}}']
        return Case("", words, files, only_begin=True, also=tables.folder_reads_back)
    words = ["theory", "turns.csv", *(["--model", "coins.toml"] if chance(rng, 0.3) else [])]
    return Case("", [*words, *(["--json"] if chance(rng, 0.7) else [])], files)


def _model(rng: Rng) -> Case:
    agents = int(pick(rng, (1, 2, 3)))
    content = tables.coins(rng, agents) if chance(rng, 0.6) else tables.moments(rng, agents)
    if chance(rng, 0.4):
        content, _ = damaged(rng, content, b"likelihoods = []\n")
    words = ["theory", "complete", "--agents", str(agents), "--model", "m.toml"]
    for option, options in (("--epsilon", FLOATS), ("--delta", FLOATS), ("--rounds", (1, 2, 10, 1000, 10**5))):
        words += [option, str(pick(rng, options))] if chance(rng, 0.2) else []
    return Case("", [*words, *(["--json"] if chance(rng, 0.7) else [])], {"m.toml": content})


def _table(rng: Rng) -> Case:
    file, content = tables.dataset(rng)
    words = ["data", "partition", "star-digits", "--set", f"dataset={file}", "--set", "watched=[]"]
    words += ["--set", 'networks={a={kind="star", edges=2}}', "--set", "learner.batch=1"]
    kind = pick(rng, ("iid", "iid", "shards", "dirichlet", "skewed", "feature"))
    words += ["--set", f"partition.kind={kind}", *(["--json"] if chance(rng, 0.5) else [])]
    if chance(rng, 0.15):
        words += ["--set", f"validation={pick(rng, (1, 3, 10, 40, 47, 48))}"]
    return Case("", words, {file: content})


def _partition(rng: Rng) -> Case:
    content = "\n".join(str(int(rng.integers(3))) for _ in range(48)).encode() + b"\n"
    content, _ = damaged(rng, content, b"0\n1\n2\n")
    words = ["data", "partition", "star-digits", "--set", "dataset=own.csv", "--set", "partition.kind=file", "--set"]
    words += ["partition.file=owners.txt", "--set", 'networks={a={kind="star", edges=2}}', "--set", "learner.batch=1"]
    file: Content = content if not chance(rng, 0.02) else pick(rng, (FOLDER, Link("owners.txt")))
    return Case("", words, {"own.csv": data_files()["own.csv"], "owners.txt": file})


def _library(rng: Rng) -> Case:
    call, text = library.use(rng)
    return Case("", [], {}, call=call, note=text)


KINDS: dict[str, tuple[float, Callable[[Rng], Case]]] = {
    "settings": (18, _settings),
    "description": (16, _description),
    "command line": (11, _command_line),
    "matrix": (10, _matrix),
    "turns": (6, _turns),
    "model": (8, _model),
    "table": (8, _table),
    "partition": (2, _partition),
    "own files": (6, own.files),
    "new": (5, own.new),
    "run folder": (16, run_folders.folder),
    "data between": (5, run_folders.data_between),
    "environment": (1, environments.environment),
    "library": (5, _library),
    "home": (5, homes.home),
    "played": (0.3, run_folders.played),
    "process": (0.1, environments.process),
}
