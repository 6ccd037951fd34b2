"""Run a case in this process and judge it: what must hold whatever a user hands over."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from consilience.command import main as cli

from .captured import TooLong, alarm, captured, replaced_environment
from .stage import MISTAKE, staged

SECONDS = 20  # of processor time, that a case may take
GROWTH = 2 << 20  # kB, that a case may add to the largest memory this process ever had
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
BAR = re.compile(r"\d+/[\d?]+ .*\d:\d\d:\d\d|^\s*$")
OVER = re.compile(r"\b(\d+)/\1 rounds")
FOLDER = None  # in the place of a file's content: a folder of that name
GONE = "gone"  # no such file


class Link(NamedTuple):
    """In the place of a file's content: a symbolic link."""

    to: str


Content = bytes | Link | None


@dataclass
class Case:
    """What a user hands over: words on the command line, files in the current folder, variables of the environment."""

    kind: str
    words: list[str]
    files: dict[str, Content] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    only_begin: bool = False  # a run is not played
    real: bool = False  # figures are really drawn
    call: Callable[[], Any] | None = None  # in the place of a command: a use of the library
    also: Callable[[Ending], Iterator[str]] | None = None  # what else must hold
    note: str = ""
    process: str | None = None  # in a process of its own, and what is odd about its streams

    def text(self) -> str:
        """All of it, to read."""
        lines = [f"{self.kind}: consilience " + " ".join(_shell(word) for word in self.words)]
        lines += [f"  {name}={text!r}" for name, text in self.environment.items()]
        lines += [f"  ({note})" for note in (self.note, self.process and f"stream: {self.process}") if note]
        for name, content in self.files.items():
            if (
                f"{name}:" in self.note
                or f"{name} " in self.note
                or any(name in word for word in self.words)
                or len(self.files) <= 2
            ):
                lines.append(f"  file {name}: {_shown(content)}")
        return "\n".join(lines)


@dataclass
class Ending:
    """How a case ended."""

    code: object
    out: str
    err: str
    before: dict[str, str]
    after: dict[str, str]
    folder: Path
    raised: BaseException | None = None


@dataclass
class Finding:
    """A broken invariant; `what` is the same for the same mistake."""

    what: str
    details: str


def judge(case: Case, folder: Path, limit: float = SECONDS) -> list[Finding]:
    """Run a case in a folder of its own and tell what does not hold."""
    _fill(folder, case.files)
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ending, warned, seconds = _run(case, folder, limit)
    findings = list(_broken(case, ending))
    findings += [Finding(f"warning: {_normal(text)}", text) for text in warned]
    if seconds > limit:
        where = _frames(ending.raised) if isinstance(ending.raised, TooLong) else case.words[:2]
        findings.append(Finding(f"too long: {where}", f"{seconds:.1f} s"))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - largest
    if grown > GROWTH:
        findings.append(Finding(f"memory: {case.words[:2]}", f"{grown >> 10} MB"))
    if case.also and ending.raised is None:
        findings += [Finding(_normal(text), ending.err.strip()) for text in case.also(ending)]
    return findings


def _broken(case: Case, ending: Ending) -> Iterator[Finding]:
    code, out, err, raised = ending.code, ending.out, ANSI.sub("", ending.err), ending.raised
    if isinstance(raised, TooLong):
        return
    if raised is not None:
        told = "".join(traceback.format_exception(raised))
        yield Finding(f"traceback: {type(raised).__name__} {_frames(raised)} {_normal(str(raised))[:60]}", told)
        return
    if case.call:
        return
    verb = " ".join(case.words[:1])
    if code not in (0, 1, 2):
        yield Finding(f"code {code!r}: {verb}", err)
    if "Traceback" in err or "Traceback" in out:
        yield Finding(f"traceback printed: {verb} {_normal(err[-80:])}", err)
    if MISTAKE in err:
        yield Finding(f"a mistake: {verb} {_normal(err)[:120]}", err)
    helped = code == 2 and not err and "Usage" in out  # no command was given: the help
    *progress, last = err.removesuffix("\n").split("\n")
    if code != 0 and progress and last.startswith("error: ") and all(BAR.search(line) for line in progress):
        if not OVER.search(progress[-1]):  # a run that is over keeps its bar, also where its summary cannot be printed
            yield Finding(f"a progress bar before the error: {verb}", err)
        err = last + "\n"
    if code != 0 and not helped:
        if not err.startswith("error: "):
            yield Finding(f"stderr does not begin with 'error: ': {verb} {_normal(err)[:40]}", err)
        if len(err.splitlines()) != 1 or not err.endswith("\n"):
            yield Finding("not one line", repr(err))
        if not err.removesuffix("\n").isprintable():
            yield Finding("not printable", repr(err))
        if len(err) > 2000:
            yield Finding("a very long line", f"{len(err)} characters: {err[:300]}")
        if len(err.strip()) < 12 or err.rstrip().endswith((":", "()")):
            yield Finding(f"says nothing: {verb} {_normal(err)[:60]}", err)
        if out:
            yield Finding(f"stdout is not empty: {verb} {_normal(err)[:60]}", f"{err}\n{out[:500]}")
    if code == 0 and ("error" in err.lower() or "warning" in err.lower()):
        yield Finding(f"complains but code 0: {verb} {_normal(err)[:60]}", err)
    heard = case.process not in ("full", "closed")
    if code == 0 and "--json" in case.words and not case.only_begin and heard and "Usage" not in out:
        try:
            json.loads(out, parse_constant=_refuse)
        except ValueError as error:
            yield Finding(f"--json does not parse: {verb} {_normal(str(error))}", out[:500])
    if code != 0 and verb == "run" and case.only_begin and ending.after.keys() != ending.before.keys():
        left = sorted(set(ending.after) - set(ending.before))
        yield Finding("a refused run leaves something behind", f"{left}: {err}")
    changed = [name for name in ending.before if ending.before[name] != ending.after.get(name, GONE)]
    if changed and (code != 0 or verb in ("config", "theory", "data", "run")):
        names = sorted({_normal(Path(name).name) for name in changed})
        yield Finding(f"{verb} was refused but changed {names}", f"{changed} {err}")


def _run(case: Case, folder: Path, limit: float) -> tuple[Ending, list[str], float]:
    before = _hashes(folder)
    ended: dict[str, Any] = {"code": None, "raised": None}
    began = time.process_time()
    with contextlib.ExitStack() as held:
        held.enter_context(replaced_environment(case.environment))
        held.enter_context(contextlib.chdir(folder))
        held.enter_context(staged(case.only_begin, case.real))
        streams = held.enter_context(captured())
        warned = held.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        held.enter_context(alarm(limit))
        try:
            if case.process is not None:
                ended["code"], *told = _alone(case)
            elif case.call:
                case.call()
            else:
                sys.argv = ["consilience", *case.words]
                cli.main()
        except SystemExit as end:
            ended["code"] = 0 if end.code is None else end.code
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            ended["raised"] = error
    out, err = streams() if case.process is None or ended["raised"] else told
    texts = [f"{w.category.__name__}: {w.message} ({Path(w.filename).name}:{w.lineno})" for w in warned]
    spent = time.process_time() - began
    return Ending(ended["code"], out, err, before, _hashes(folder), folder, ended["raised"]), texts, spent


def _alone(case: Case) -> tuple[int, str, str]:
    """In a process of its own; a device that is full, a stream that is closed."""
    command = [
        sys.executable,
        "-W",
        "error",
        "-c",
        "import sys; sys.argv[0] = 'consilience'; from consilience.command.main import main; main()",
    ]
    with contextlib.ExitStack() as held:
        full = held.enter_context(open("/dev/full", "w")) if case.process == "full" else subprocess.PIPE
        shell = ["sh", "-c", 'exec "$0" "$@" >&-'] if case.process == "closed" else []
        shell = ["sh", "-c", 'exec "$0" "$@" <&-'] if case.process == "no stdin" else shell
        done = subprocess.run(
            [*shell, *command, *case.words],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=120,
            check=False,
            env={**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2])},
        )
    encoding = case.environment.get("PYTHONIOENCODING", "utf-8")
    return done.returncode, (done.stdout or b"").decode(encoding, "replace"), done.stderr.decode(encoding, "replace")


def _fill(folder: Path, files: dict[str, Content]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if content is FOLDER:
            file.mkdir(exist_ok=True)
        elif isinstance(content, Link):
            file.symlink_to(content.to)
        else:
            file.write_bytes(content)
            file.chmod(0o600)  # keys that others can read are refused


def _hashes(folder: Path) -> dict[str, str]:
    """Every file below, by its content; locks, and what a killed process was writing, aside."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.name == ".lock" or path.name.endswith(".part"):
            continue
        if path.is_symlink() or not path.is_file():
            found[name] = "link" if path.is_symlink() else "folder"
        else:
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def _frames(error: BaseException | None) -> str:
    """The last places in this package that an error went through."""
    if error is None:
        return ""
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if "consilience" in f.filename and "fuzz" not in f.filename
    ]
    return " < ".join(f"{Path(f.filename).name}:{f.name}" for f in reversed(frames[-2:]))


def _normal(text: str) -> str:
    """Without what differs from case to case."""
    text = re.sub(r"'[^']*'", "'…'", text)
    text = re.sub(r'"[^"]*"', '"…"', text)
    text = re.sub(r"got .*", "got …", text, flags=re.DOTALL)
    return re.sub(r"-?\d[\d.,e+]*", "N", text).strip()


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _shell(word: str) -> str:
    return word if re.fullmatch(r"[\w./=:+-]+", word) else repr(word)


def _shown(content: Content) -> str:
    if content is FOLDER:
        return "(a folder)"
    if isinstance(content, Link):
        return f"(a link to {content.to})"
    return repr(content[:1500]) + (f"… ({len(content)} bytes)" if len(content) > 1500 else "")
