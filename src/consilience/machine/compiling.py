"""How programs are compiled: with full width vectors, and by one process of a host where several need the same.

The others wait for it. Processes that start together (a demonstration, the tests) would else all find that nobody has
stored it yet.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from consilience.files.whole import sha256_of
from consilience.machine.runtime import cache_folder

PATIENCE = 60.0  # seconds to wait for somebody else's program: who compiles it may be stopped, or on a slow machine
GLANCE = 0.05  # seconds between two looks


def compiler_options() -> dict[str, Any]:
    """Full width vectors: XLA prefers half of what AVX-512 has, and takes twice as long for the variational update."""
    import jax

    return {"xla_cpu_prefer_vector_width": 512} if jax.default_backend() == "cpu" else {}


def compiled(lowered: Any) -> Any:
    """What `lowered.compile()` gives, from JAX's store of programs where another process is just putting it there.

    >>> import jax
    >>> float(compiled(jax.jit(lambda x: x + 1).lower(1.0))(1.0))
    2.0
    """
    import jax

    settings: Any = jax.config  # its flags are attributes that a type checker cannot see
    if settings.jax_compilation_cache_dir is None:  # nobody could find it
        return lowered.compile()
    with one_at_a_time(cache_folder() / "compiling" / sha256_of(lowered.as_text().encode())):
        return lowered.compile()


@contextmanager
def one_at_a_time(file: Path, patience: float = PATIENCE) -> Iterator[None]:
    """Hold a file while nobody else holds it; after so many seconds, or where there cannot be one, without it."""
    held = _held(file, patience)
    try:
        yield
    finally:
        if held is not None:
            with suppress(OSError):
                file.unlink()  # whoever waits for it has it open
            os.close(held)


def _held(file: Path, patience: float) -> int | None:
    until = time.monotonic() + patience
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        opened = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        while time.monotonic() < until:
            with suppress(BlockingIOError):
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return opened
            time.sleep(GLANCE)
        os.close(opened)
    return None
