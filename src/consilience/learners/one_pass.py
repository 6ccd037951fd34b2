"""Several arrays computed in one pass over memory, where XLA's CPU backend would make one pass for each.

The local update reads ten arrays and writes seven; it is bound by memory, so seven passes cost three times one. XLA's
multi-output fusion merges loops that share inputs and do not feed one another. So every output is written from a copy
of the whole expression, the copies kept apart by nested barriers until fusion; the code generator then finds the shared
arithmetic again. Without the flag below, or on another backend, the plain function is used.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import jax
from jax import lax

from consilience.machine.runtime import FUSION_FLAG


def one_pass(f: Callable[..., tuple[Any, ...]], *inputs: Any) -> tuple[Any, ...]:
    """f(*inputs), a tuple of arrays of one shape, each an elementwise function of the inputs."""
    if FUSION_FLAG not in os.environ.get("XLA_FLAGS", "") or jax.default_backend() != "cpu":
        return f(*inputs)
    outputs = []
    for number in range(len(jax.eval_shape(f, *inputs))):
        inputs = lax.optimization_barrier(inputs)  # nested, hence each one different: equal ones would be merged
        outputs.append(f(*inputs)[number])
    return tuple(outputs)
