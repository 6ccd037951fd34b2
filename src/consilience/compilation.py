"""Compiled programs are kept between runs, so that the second run of an experiment starts at once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import jax


def cache_folder() -> Path:
    """Where this user's cached files live: CONSILIENCE_CACHE, or the usual place for caches."""
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "consilience"
    return Path(os.environ.get("CONSILIENCE_CACHE") or usual)


def keep_compiled_programs(folder: Path | None = None) -> None:
    """Let JAX store what it compiles, unless the user has already told it where."""
    settings: Any = jax.config  # its flags are attributes that a type checker cannot see
    if settings.jax_compilation_cache_dir is None:
        jax.config.update("jax_compilation_cache_dir", str(folder or cache_folder() / "programs"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
