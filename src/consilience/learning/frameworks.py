"""Models of other frameworks, taken as they are."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from consilience.errors import InputError
from consilience.models import Model


def as_model(given: Any, shape: tuple[int, ...]) -> Model:
    """A model of ours, a pair (init, apply), a Flax module or an Equinox module, for inputs of this shape."""
    if isinstance(given, Model):
        return given
    if isinstance(given, tuple) and len(given) == 2 and all(map(callable, given)):
        return Model(*given)
    if isinstance(given, type):
        raise InputError(f"model: must be a module, not its class; give {given.__name__}(…)")
    libraries = {base.__module__.partition(".")[0] for base in type(given).__mro__}
    if "flax" in libraries:
        return _of_flax(given, shape)
    if "equinox" in libraries:
        return _of_equinox(given)
    raise InputError(
        f"model: must be a Model, a pair (init, apply), a Flax or an Equinox module, got {type(given).__name__}"
    )


def _of_flax(module: Any, shape: tuple[int, ...]) -> Model:
    """A Flax (linen) module has functions of its own."""

    def init(key: PRNGKeyArray) -> Any:
        return module.init(key, jnp.zeros((1, *shape)))

    def apply(parameters: Any, x: Array) -> Array:
        outputs: Array = module.apply(parameters, x)
        return outputs

    return Model(init, apply)


def _of_equinox(module: Any) -> Model:
    """An Equinox module is given with its arrays: these are where everybody begins; it takes one example at a time."""
    import equinox as eqx

    arrays, static = eqx.partition(module, eqx.is_inexact_array)
    leaves, structure = jax.tree.flatten(arrays)

    def init(key: PRNGKeyArray) -> Any:
        return [jnp.asarray(leaf, jnp.result_type(float)) for leaf in leaves]

    def apply(parameters: Any, x: Array) -> Array:
        own = eqx.combine(jax.tree.unflatten(structure, parameters), static)
        outputs: Array = jax.vmap(own)(x)
        return outputs

    return Model(init, apply)
