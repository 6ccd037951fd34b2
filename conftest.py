"""Tests and doctests run in float64, the precision of the exact experiments, and share what they compile."""

from pathlib import Path

import jax

from consilience.compilation import keep_compiled_programs

jax.config.update("jax_enable_x64", True)
keep_compiled_programs(Path(__file__).parent / ".pytest_cache" / "programs")
