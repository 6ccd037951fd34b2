"""Standard normal numbers from a keyed hash of their position: cheap enough to draw every weight anew at every step.

The hash is a 32-bit mixer of (row, column) under three key words. Its four bytes are summed, which is nearly normal
already (Irwin and Hall), and bent to a normal by an odd polynomial fitted to the exact quantiles. The exact moments of
the result are 0, 1, 0, 3.00, 0, 14.99; it never exceeds 5.2. Good for gradients; not for cryptography or far tails.
Key words must come from a real generator (`jax.random.bits`), never from a counter.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, UInt32

KEY_WORDS = 3
_SUM_LEVELS = 4 * 255 + 1  # the sum of four bytes
_CENTRE = 510.0
# Multipliers, shifts and masks. They travel as one array, because XLA counts every scalar constant as an operand of a
# fused loop and merges no loops beyond twenty.
INTEGERS = np.array(
    [0x9E3779B1, 0x85EBCA77, 0x7FEB352D, 0x846CA68B, 16, 15, 8, 0x00FF00FF, 0xFFFF],
    np.uint32,
)


def _byte_sum_distribution() -> Float[np.ndarray, "levels"]:
    """The exact probabilities of the sum of four independent uniform bytes."""
    mass = np.ones(1)
    for _ in range(4):
        mass = np.convolve(mass, np.full(256, 1 / 256))
    return mass


def _fitted_polynomial(degree: int = 9) -> Float[np.ndarray, "terms"]:
    """Coefficients of t, t³, … that take a centred byte sum t to a standard normal, of variance exactly 1."""
    mass = _byte_sum_distribution()
    quantile = np.array([NormalDist().inv_cdf(p) for p in np.cumsum(mass) - mass / 2])
    t = (np.arange(_SUM_LEVELS) - _CENTRE) / _CENTRE
    powers = np.stack([t**k for k in range(1, degree + 1, 2)], axis=1)
    weight = np.sqrt(mass)
    fitted = np.linalg.lstsq(powers * weight[:, None], quantile * weight, rcond=None)[0]
    fitted /= math.sqrt(float(((powers @ fitted) ** 2 * mass).sum()))
    return np.asarray([c / _CENTRE**k for c, k in zip(fitted, range(1, degree + 1, 2), strict=True)])


FLOATS = np.array([*_fitted_polynomial(), _CENTRE], np.float32)


def normal(
    shape: tuple[int, ...],
    key: UInt32[Array, "words"],
    integers: UInt32[Array, "integers"] | UInt32[np.ndarray, "integers"] = INTEGERS,
    floats: Float[Array, "floats"] | Float[np.ndarray, "floats"] = FLOATS,
) -> Float[Array, "rows columns"]:
    """An array of standard normal numbers that depends on the key alone."""
    i, f = integers, floats
    row, column = lax.broadcasted_iota(jnp.uint32, shape, 0), lax.broadcasted_iota(jnp.uint32, shape, 1)
    # The key goes in first: what depends on the position alone, XLA would compute once and read back from memory.
    x = (column ^ key[0]) * i[0] + (row ^ key[1]) * i[1]
    x = (x ^ (x >> i[4])) * i[2] + key[2]
    x = (x ^ (x >> i[5])) * i[3]
    x = x ^ (x >> i[4])
    pairs = (x & i[7]) + ((x >> i[6]) & i[7])
    t = ((pairs & i[8]) + (pairs >> i[4])).astype(jnp.int32).astype(jnp.float32) - f[5]
    q = t * t
    return ((((f[4] * q + f[3]) * q + f[2]) * q + f[1]) * q + f[0]) * t
