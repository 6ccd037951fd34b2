"""Tests and doctests run in float64, on all cores, and share what they compile."""

from pathlib import Path

from consilience.runtime import keep_compiled_programs, use_all_cores

use_all_cores()
keep_compiled_programs(Path(__file__).parent / ".pytest_cache" / "programs")

import jax  # noqa: E402

jax.config.update("jax_enable_x64", True)
