"""What a result came from: versions, the commit of the code, the machine, the command."""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

PACKAGES = ("consilience", "jax", "jaxlib", "numpy", "scipy")


def versions() -> dict[str, str]:
    """Of the packages that make the numbers, and of Python."""
    return {**{name: version(name) for name in PACKAGES}, "python": platform.python_version()}


def provenance(command: str | None = None) -> dict[str, Any]:
    """Everything that is noted when a run begins; the command is the one that was typed, unless told."""
    facts: dict[str, Any] = {
        "command": command or _command(),
        "versions": {**versions(), "platform": platform.platform()},
        "machine": {"processor": _processor(), "cores": len(os.sched_getaffinity(0))},
    }
    return facts if (commit := _commit()) is None else {**facts, "commit": commit}


def _command() -> str:
    """What was typed; a run begun from Python has no command line of ours."""
    program, *words = sys.argv
    return shlex.join(["consilience", *words]) if Path(program).name == "consilience" else "consilience.run.begin"


def _processor() -> str:
    """The kind of processor, as the system names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _commit() -> str | None:
    """The commit of the code where it is known: of a checkout, with a + where files differ from it, or as installed."""
    try:
        folder, file = Path(__file__).parent, Path(__file__).name
        _git(folder, "ls-files", "--error-unmatch", file)  # the code is part of the checkout around it, if any
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no", ".")
        return _git(folder, "rev-parse", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.SubprocessError):
        pass
    try:
        text = distribution("consilience").read_text("direct_url.json")
        commit = json.loads(text or "{}").get("vcs_info", {}).get("commit_id")
    except (PackageNotFoundError, ValueError, AttributeError):
        return None
    return commit if isinstance(commit, str) else None


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True, stdin=subprocess.DEVNULL)
    return done.stdout.strip()
