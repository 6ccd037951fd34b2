"""Tests and doctests run in float64, the precision of the exact experiments."""

import jax

jax.config.update("jax_enable_x64", True)
