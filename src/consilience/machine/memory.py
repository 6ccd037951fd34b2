"""How much memory there is, so that what cannot fit is refused in one line before it is begun; and giving it back."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from consilience.errors import InputError

GIGA = 1e9
LARGE = 1 << 20  # bytes of an array that are given back at once
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # what glibc calls them
PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")


def available(proc: Path = PROC, cgroups: Path = CGROUPS) -> int:
    """Bytes that a process can still have: what the machine has left, or less where its group of processes is limited.

    >>> available() > 0
    True
    """
    return max(min([_of_machine(proc), *_of_groups(proc, cgroups)]), 0)


def require(needed: float | int, what: str) -> None:
    """Refuse what needs more memory than there is.

    >>> require(1e30, "network: a ring")
    Traceback (most recent call last):
    consilience.errors.InputError: network: a ring: needs about 1e+21 GB, there are ...
    """
    there = available()
    if needed > there:
        raise InputError(f"{what}: needs about {_gigabytes(needed)} GB, there are {_gigabytes(there)}")


def forget_tracing() -> None:
    """Empty JAX's caches: what led to programs that are compiled and kept elsewhere is no longer needed.

    For a process of our own alone: in a program of somebody else's, its functions would be compiled again.
    """
    import gc

    import jax

    jax.clear_caches()
    gc.collect()
    give_back()


def keep_little() -> None:
    """Let the C library give arrays back as soon as they are freed, and not keep them for the next ones.

    For a process that lives long beside others: what compiling leaves behind is 30 MB. A quarter of `LARGE` would have
    XLA get new pages for every matrix product, which takes a third longer.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library
            library = ctypes.CDLL(None)
            library.mallopt(M_MMAP_THRESHOLD, LARGE)
            library.mallopt(M_TRIM_THRESHOLD, LARGE)


def give_back() -> None:
    """Give what is no longer used back to the system: compiling has used hundreds of megabytes, which glibc keeps."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)


def _of_machine(proc: Path) -> int:
    with suppress(OSError, ValueError, IndexError):
        for line in (proc / "meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")  # not Linux: all there is


def _of_groups(proc: Path, cgroups: Path) -> Iterator[int]:
    """What every control group around this process has left (version 2, then 1); cached files count as free."""
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers not in ("", "memory"):
            continue
        root, names = (
            (cgroups / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"))
            if controllers
            else (cgroups, ("memory.max", "memory.current", "inactive_file"))
        )
        group = root / path.strip("/")
        # In a container the group's own folder may be mounted as the root: then the path above it is not there.
        for folder in (group, *group.parents):
            yield from _left(folder, *names)
            if folder == root:
                break


def _left(folder: Path, limit: str, used: str, cached: str) -> Iterator[int]:
    with suppress(OSError, ValueError):  # "max", or no such group
        most = int((folder / limit).read_text())
        now = int((folder / used).read_text())
        counts = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        yield most - now + int(counts.get(cached, 0))


def _gigabytes(amount: float | int) -> str:
    number = amount / GIGA
    return f"{number:,.0f}" if 10 <= number < 1e6 else f"{number:.2g}"
