"""Tests and doctests run in float64, on four devices, and share what they compile."""

import os
from pathlib import Path

from consilience.runtime import keep_compiled_programs, use_all_cores

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
use_all_cores()
keep_compiled_programs(Path(__file__).parent / ".pytest_cache" / "programs")

import jax  # noqa: E402

jax.config.update("jax_enable_x64", True)
