"""How JAX is set up for this machine: a device for every core, fused loops, large pages, compiled programs kept."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from consilience.errors import InputError, brief
from consilience.files.whole import sha256_of
from consilience.machine import stopping

COUNT_FLAG = "--xla_force_host_platform_device_count"
FUSION_FLAG = "--xla_backend_extra_options=xla_cpu_use_multi_output_fusion=true"  # see learners.one_pass

LARGE_PAGES = ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")


def cache_folder() -> Path:
    """Where this user's cached files live: CONSILIENCE_CACHE, or the usual place for caches."""
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "consilience"
    return Path(os.environ.get("CONSILIENCE_CACHE") or usual)


def use_all_cores() -> None:
    """Make every core a JAX device and let XLA fuse loops with several outputs. Call it before JAX is first used.

    One agent on each core beats all cores on one small matrix product. Flags the user has set are left alone.
    """
    flags = _given_flags()
    if COUNT_FLAG not in flags:
        flags += f" {COUNT_FLAG}={len(os.sched_getaffinity(0))}"
    if "xla_backend_extra_options" not in flags:
        flags += f" {FUSION_FLAG}"
    os.environ["XLA_FLAGS"] = flags.strip()


def use_cores(cores: int) -> None:
    """One JAX device with so many threads, in the place of `use_all_cores`: for a process of one agent among others.

    Where each has all cores, nine processes on two take a third longer: small products are cut into pieces in vain.
    """
    flags = [flag for flag in _given_flags().split() if not flag.startswith(COUNT_FLAG)]
    os.environ["XLA_FLAGS"] = " ".join([*flags, f"{COUNT_FLAG}=1"])
    os.environ["NPROC"] = str(cores)  # how XLA asks how many threads it may have
    use_all_cores()


def check_flags() -> None:
    """Refuse XLA_FLAGS that XLA would abort the process for; another process finds out, once, which those are."""
    flags = _given_flags()
    if all(flag == FUSION_FLAG or re.fullmatch(rf"{COUNT_FLAG}=[1-9]\d{{0,3}}", flag) for flag in flags.split()):
        return
    known = cache_folder() / "flags" / sha256_of(f"{version('jaxlib')} {flags}".encode())
    with suppress(OSError):  # where nothing can be kept, it is tried every time
        if known.exists():
            return
    tried = subprocess.run(
        [sys.executable, "-c", "import jax; jax.devices()"],
        env={**os.environ, "XLA_FLAGS": flags},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if tried.returncode:
        lines = [line for line in tried.stderr.splitlines() if re.search("flag|Error", line)]
        said = re.sub(r"^[A-Z]\d{4} .*?\] ", "", lines[0]) if lines else f"exit code {tried.returncode}"
        raise InputError(f"XLA_FLAGS: XLA does not start with {brief(flags)}: {said.strip().rstrip('.')}")
    with suppress(OSError):
        known.parent.mkdir(parents=True, exist_ok=True)
        known.touch()


def _given_flags() -> str:
    """What the user wants of XLA; it may be written in a file."""
    given = os.environ.get("XLA_FLAGS", "").strip()
    if not given or given.startswith("--"):
        return given
    try:
        return " ".join(Path(given).read_text().split())
    except (OSError, ValueError):
        raise InputError(f"XLA_FLAGS: {brief(given)} is neither flags nor a file of flags that can be read") from None


def use_large_pages(script: str = "consilience") -> None:
    """Have memory in pages of 2 MB instead of 4 kB where Linux offers them: the update streams through 13 MB a step.

    glibc reads the wish only when a program starts, so a process that was started as `script` replaces itself by one
    that has it; any other process (a notebook, a test) is left alone. A setting of the user's is left alone too.
    """
    started_as = Path(sys.orig_argv[1]).name if len(sys.orig_argv) > 1 else ""
    if sys.platform == "linux" and started_as == script and LARGE_PAGES[0] not in os.environ:
        os.environ.update([LARGE_PAGES])
        # A signal waits until the new process listens to it (`stopping.signals_obeyed`).
        signal.pthread_sigmask(signal.SIG_BLOCK, stopping.SIGNALS)
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def keep_compiled_programs(folder: Path | None = None) -> None:
    """Let JAX store what it compiles, unless the user has already told it where."""
    import jax

    settings: Any = jax.config  # its flags are attributes that a type checker cannot see
    if settings.jax_compilation_cache_dir is None:
        jax.config.update("jax_compilation_cache_dir", str(folder or cache_folder() / "programs"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
