"""Likelihoods: networks that give logits, and what a learner needs to know of them.

Any pair of functions `init(key) -> parameters` and `apply(parameters, inputs) -> logits` is a model: `Model(init,
apply)`. A stack of layers made here also offers `apply_gaussian`, the network under independent Gaussian weights by the
local reparameterisation (Kingma et al. 2015): a layer's outputs are Gaussian given its inputs, so they are drawn
instead of the weights, once for every example.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PRNGKeyArray

from consilience.errors import InputError, brief
from consilience.models.noise import KEY_WORDS, normal

Parameters = Any
ApplyGaussian = Callable[
    [Parameters, Parameters, Float[Array, "batch *shape"], PRNGKeyArray], Float[Array, "batch labels"]
]


class Model(NamedTuple):
    """A network.

    init(key) -> parameters: any pytree of arrays.
    apply(parameters, inputs) -> logits, for a batch of inputs scaled to [0, 1].
    apply_gaussian(means, variances, inputs, key) -> logits with fresh noise for every example, where there is one.

    >>> line = Model(init=lambda key: {"slope": jnp.zeros(1)}, apply=lambda own, x: x * own["slope"])
    >>> line.size, line.apply({"slope": jnp.array([2.0])}, jnp.array([[3.0]])).tolist()
    (1, [[6.0]])
    """

    init: Callable[[PRNGKeyArray], Parameters]
    apply: Callable[[Parameters, Float[Array, "batch *shape"]], Float[Array, "batch labels"]]
    apply_gaussian: ApplyGaussian | None = None
    described: dict[str, Any] | None = None  # how it is written down, where it can be

    @property
    def size(self) -> int:
        """The number of parameters, found without making any: a model too large for memory has a size too."""
        return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(jax.eval_shape(self.init, jax.random.key(0))))


@runtime_checkable
class Layer(Protocol):
    """A step of a stack: linear ones hold weights and a bias, the others nothing."""

    def output(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of one output for one input of this shape."""
        ...

    def init(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Parameters:
        """Weights and bias, or () for a layer without any."""
        ...

    def apply(self, parameters: Parameters, x: Any) -> Any:
        """The layer's outputs for a batch."""
        ...


class Dense(NamedTuple):
    """x Wᵀ + c, weights stored (out, in): the orientation whose products are fastest on a CPU."""

    units: int

    def output(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """One number for each unit."""
        return (self.units,)

    def init(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Parameters:
        """He initialisation."""
        (inputs,) = shape
        return {"w": _he(key, (self.units, inputs), inputs), "c": jnp.zeros(self.units)}

    def apply(self, parameters: Parameters, x: Float[Array, "batch inputs"]) -> Float[Array, "batch units"]:
        """The product."""
        product: Array = lax.dot_general(x, parameters["w"], (((1,), (1,)), ((), ())))
        return jnp.asarray(product + parameters["c"])


class Conv(NamedTuple):
    """A convolution with square filters; inputs (batch, height, width, channels), output as high and wide."""

    channels: int
    size: int = 3

    def output(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Height and width stay."""
        return (*shape[:2], self.channels)

    def init(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Parameters:
        """He initialisation."""
        kernel = (self.size, self.size, shape[2], self.channels)
        return {"w": _he(key, kernel, self.size**2 * shape[2]), "c": jnp.zeros(self.channels)}

    def apply(self, parameters: Parameters, x: Float[Array, "batch h w inputs"]) -> Float[Array, "batch h w channels"]:
        """The convolution."""
        layout = ("NHWC", "HWIO", "NHWC")
        filtered: Array = lax.conv_general_dilated(x, parameters["w"], (1, 1), "SAME", dimension_numbers=layout)
        return jnp.asarray(filtered + parameters["c"])


FUNCTIONS: dict[str, Callable[[Array], Array]] = {"relu": jax.nn.relu, "sigmoid": jax.nn.sigmoid}


class Units(NamedTuple):
    """A function of every number: max(x, 0), or 1 / (1 + exp(−x))."""

    activation: str = "relu"

    def output(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The same."""
        return shape

    def init(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Parameters:
        """Nothing."""
        return ()

    def apply(self, parameters: Parameters, x: Array) -> Array:
        """Elementwise."""
        return jnp.asarray(FUNCTIONS[self.activation](x))


class Halve(NamedTuple):
    """The largest of every 2 × 2 pixels."""

    def output(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Half the height and width."""
        return (shape[0] // 2, shape[1] // 2, shape[2])

    def init(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Parameters:
        """Nothing."""
        return ()

    def apply(self, parameters: Parameters, x: Float[Array, "batch h w c"]) -> Float[Array, "batch h2 w2 c"]:
        """Max pooling."""
        largest: Array = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return largest


class Reshape(NamedTuple):
    """Another shape for every example; by default flat."""

    shape: tuple[int, ...] = (-1,)

    def output(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """As many numbers as before."""
        numbers, known = math.prod(shape), math.prod(n for n in self.shape if n != -1)
        output = tuple(numbers // max(known, 1) if n == -1 else n for n in self.shape)
        if math.prod(output) != numbers:
            raise InputError(f"model: inputs of shape {shape} cannot get the shape {self.shape}")
        return output

    def init(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Parameters:
        """Nothing."""
        return ()

    def apply(self, parameters: Parameters, x: Array) -> Array:
        """Reshape every example."""
        return x.reshape(x.shape[0], *self.shape)


def stack(layers: Sequence[Layer], shape: tuple[int, ...]) -> Model:
    """The model that applies the layers in turn to inputs of this shape (of one example)."""

    def init(key: PRNGKeyArray) -> Parameters:
        parameters, now = [], shape
        for layer, own in zip(layers, jax.random.split(key, len(layers)), strict=True):
            parameters.append(layer.init(own, now))
            now = layer.output(now)
        return parameters

    def apply(parameters: Parameters, x: Float[Array, "batch *shape"]) -> Float[Array, "batch labels"]:
        for layer, own in zip(layers, parameters, strict=True):
            x = layer.apply(own, x)
        return x

    def apply_gaussian(
        means: Parameters, variances: Parameters, x: Float[Array, "batch *shape"], key: PRNGKeyArray
    ) -> Float[Array, "batch labels"]:
        for number, (layer, mean, variance) in enumerate(zip(layers, means, variances, strict=True)):
            if isinstance(mean, dict):  # linear in its weights: outputs are Gaussian, with variance Σ x² σ²
                centre, spread = layer.apply(mean, x), layer.apply(variance, x * x)
                x = centre + jnp.sqrt(spread) * _noise(jax.random.fold_in(key, number), centre)
            else:
                x = layer.apply(mean, x)
        return x

    return Model(init, apply, apply_gaussian)


def mlp(shape: tuple[int, ...], labels: int, hidden: Sequence[int] = (200, 200), activation: str = "relu") -> Model:
    """A fully connected network, of ReLU units or sigmoid ones; with no hidden layer it is logistic regression.

    >>> mlp((28, 28), 10).size
    199210
    """
    if activation not in FUNCTIONS:
        raise InputError(f"activation: must be {' or '.join(FUNCTIONS)}, got {brief(activation)}")
    layers: list[Layer] = [Reshape()]
    for units in hidden:
        layers += [Dense(units), Units(activation)]
    described = {"kind": "mlp", "hidden": list(hidden), "activation": activation}
    return stack([*layers, Dense(labels)], shape)._replace(described=described)


def cnn(shape: tuple[int, ...], labels: int, channels: Sequence[int] = (8, 16), hidden: int = 64) -> Model:
    """A small convolutional network: 3 × 3 filters, each followed by halving, then one hidden layer.

    >>> cnn((8, 8), 10, channels=(4,), hidden=16).size
    1250
    """
    if len(shape) not in (2, 3):
        raise InputError(f"model: a cnn needs images (height, width and perhaps channels), got inputs of shape {shape}")
    if min(shape[:2]) < 2 ** len(channels):
        pixels, most = f"{shape[0]} × {shape[1]} pixels", min(shape[:2]).bit_length() - 1
        raise InputError(f"model.channels: {pixels} can be halved {most} times, got {len(channels)} layers that do")
    layers: list[Layer] = [Reshape((*shape[:2], shape[2] if len(shape) > 2 else 1))]
    for count in channels:
        layers += [Conv(count), Units(), Halve()]
    made = stack([*layers, Reshape(), Dense(hidden), Units(), Dense(labels)], shape)
    return made._replace(described={"kind": "cnn", "channels": list(channels), "hidden": hidden})


def _noise(key: PRNGKeyArray, like: Array) -> Array:
    """Standard normal numbers, hashed: as many numbers as outputs are drawn at every step."""
    words = jax.random.bits(key, (KEY_WORDS,), jnp.uint32)
    rows = like.reshape(like.shape[0], -1).shape
    return normal(rows, words).reshape(like.shape).astype(like.dtype)


def _he(key: PRNGKeyArray, shape: tuple[int, ...], inputs: int) -> Array:
    return jax.random.normal(key, shape) * jnp.sqrt(2 / inputs)
