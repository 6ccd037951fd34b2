"""What is put in the place of parts of the program so that thousands of cases can be judged: nothing is weakened by it.

No download is tried and no other host is met; programs that were compiled once are used again for the same description
and the same files; figures are drawn but not written as pictures, except where a case asks for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

import typer

from consilience.command import ends as cli_ends
from consilience.command import paper as cli_paper
from consilience.command import play as cli_play
from consilience.command import verbs as cli_verbs
from consilience.data import datasets, sources
from consilience.errors import InputError
from consilience.experiments import part_of
from consilience.learning import demo
from consilience.paper import reproduce
from consilience.runs import provenance, run
from consilience.runs.estimate import Speed

ROOMS = ("linear-regression", "theorem-1", "changing-rates", "star-digits", "learn")
MODULES = tuple(part_of(name, "arms") for name in ROOMS)
KEPT = 24
MISTAKE = "a mistake in consilience itself"  # how the command begins a line that hides a traceback


@contextmanager
def staged(only_begin: bool, real: bool) -> Iterator[None]:
    """The program as the fuzzer runs it."""
    with ExitStack() as held:
        for way in ("_from_mirrors", "_from_npm", "_from_debian"):
            held.enter_context(mock.patch.object(sources, way, _no_download))
        held.enter_context(mock.patch.object(cli_play, "guarded", _nobody_else))
        held.enter_context(mock.patch.object(datasets, "_digits", _digits))
        held.enter_context(mock.patch.object(cli_ends, "_verdict", _verdict))
        held.enter_context(mock.patch.object(cli_verbs, "app", _command()))
        held.enter_context(mock.patch.object(provenance, "_commit", _commit))
        held.enter_context(mock.patch.object(cli_ends, "_quiet_libraries", nullcontext))  # a warning is a finding
        held.enter_context(mock.patch.object(cli_paper, "play", _not_played))  # the paper's runs take hours
        held.enter_context(mock.patch.object(reproduce, "measure", _not_measured))
        held.enter_context(mock.patch.object(demo, "played", _not_started))
        if not real:
            for name in ROOMS:
                held.enter_context(mock.patch.object(part_of(name, "figures"), "finish", _not_drawn))
        if not (real or only_begin):
            for module in MODULES:
                held.enter_context(mock.patch.object(module, "arms", _arms_of(module)))
            held.enter_context(mock.patch.object(run, "Simulation", _Kept))
        if only_begin:
            held.enter_context(mock.patch.object(cli_verbs, "play", return_value=0))
        yield


def _not_started(*_: Any) -> NoReturn:
    """Peers in processes of their own play as long as they are told to: here that is the end."""
    raise SystemExit(0)


_digits = cache(datasets._digits)
_commit = cache(provenance._commit)
_app = cli_verbs.app


@cache
def _command() -> Any:
    """The command, whose signatures are read once."""
    return typer.main.get_command(_app)


_real_arms = {module: module.arms for module in MODULES}
_arms: dict[str, Any] = {}
_simulations: dict[int, tuple[Any, dict[tuple[int, ...], Any]]] = {}
_real_verdict = cli_ends._verdict


def _arms_of(module: Any) -> Callable[[Any], Any]:
    """The arms of a description, made once for the same description and the same files beside it."""

    def arms(config: Any) -> Any:
        names = [
            str(part) for part in (getattr(config, "dataset", ""), getattr(getattr(config, "partition", 0), "file", ""))
        ]
        shares = getattr(config, "shares", None)
        names += [str(file) for file in getattr(shares, "files", {}).values()] + [str(getattr(shares, "file", ""))]
        names += [str(config.beside / "data.npz")] if getattr(config, "beside", None) is not None else []
        contents = [
            hashlib.sha256(Path(name).read_bytes()).hexdigest() if Path(name).is_file() else "" for name in names
        ]
        key = config.model_dump_json() + "".join(contents)
        if key not in _arms or "replay" in key:
            made = _real_arms[module](config)
            _arms[key] = made
            if len(_arms) > KEPT:
                for arm in _arms.pop(next(iter(_arms))).values():
                    _simulations.pop(id(arm), None)
            return made
        _arms[key] = _arms.pop(key)  # the one used last is forgotten last
        return _arms[key]

    return arms


class _Kept(run.Simulation):
    """A simulation that is made once for an arm and its seeds."""

    def __new__(cls, arm: Any, seeds: Sequence[int]) -> Any:
        kept = _simulations.setdefault(id(arm), (arm, {}))[1]
        return kept.setdefault(tuple(seeds), super().__new__(cls))

    def __init__(self, arm: Any, seeds: Sequence[int]) -> None:
        if not hasattr(self, "_play"):
            super().__init__(arm, seeds)


def _not_played(*_: object, **__: object) -> int:
    raise SystemExit(0)


def _not_measured(config: Any) -> Speed:
    _arms_of(part_of(config.experiment, "arms"))(config)  # what cannot be had is refused here
    return Speed(1.0, 1.0)


def _verdict(error: BaseException) -> tuple[str, int]:
    """What the command says of an error; a mistake of its own is raised, so that its place can be seen."""
    message, code = _real_verdict(error)
    if message.startswith(MISTAKE):
        raise error
    return message, code


def _not_drawn(figure: Any, caption: str, file: Path) -> Path:
    file.write_bytes(b"a figure")
    return file


def _no_download(*_: object) -> Path:
    raise InputError("there is no network here")


def _nobody_else(*_: object) -> Any:
    raise SystemExit(0)
