"""The data of a round, as a learner is given it: minibatches out of a table of examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from consilience.learners.packing import Blocks, Packing
from consilience.models import LogDensity, Model


class Minibatches(NamedTuple):
    """The data of a round: a table of examples, which of its rows each step takes, and n in KL/n.

    The table may be everybody's: a learner reads only the chosen rows. Of all steps, those from `first` on and before
    `last` are to be made; learning from both parts of a round, one after the other, is learning from the whole. Where a
    round has fewer steps than there are rows of `chosen`, `of_round` says how many. Where steps have fewer examples
    than there are places in a row, `counts` says how many, and `scale` is the number of an epoch's steps over that of
    its examples, so that the mean over an epoch's steps of `scale` × the sum over a step is the mean over all examples.

    >>> rows = jnp.arange(12).reshape(3, 4)  # three steps of four examples
    >>> batch = Minibatches(jnp.ones((12, 2)), jnp.zeros(12, int), rows, samples=12.0)
    >>> batch.last, batch.between(1, 2).first
    (3, 1)
    """

    inputs: Array
    targets: Array
    chosen: Int[Array, "steps batch"]
    samples: Float[Array, ""] | float
    span: tuple[Any, Any] | None = None
    of_round: Any = None
    counts: Int[Array, "steps"] | None = None
    scale: Any = None

    @property
    def first(self) -> Any:
        """The first step to make."""
        return 0 if self.span is None else self.span[0]

    @property
    def last(self) -> Any:
        """The step before which to stop."""
        return self.steps if self.span is None else self.span[1]

    @property
    def steps(self) -> Any:
        """How many steps the whole round has."""
        return self.chosen.shape[0] if self.of_round is None else self.of_round

    @property
    def ends(self) -> Any:
        """Whether the last step of the round is among those to make."""
        return (self.last == self.steps) & (self.first < self.last)

    def between(self, first: Any, last: Any) -> Minibatches:
        """The same round, to be made in part."""
        return self._replace(span=(first, last))

    def step(self, number: Any) -> tuple[Array, Array]:
        """Inputs and targets of one step; images are kept as bytes and scaled to [0, 1] when they are used."""
        rows = self.chosen[number]
        inputs = self.inputs[rows]
        if inputs.dtype == jnp.uint8:
            inputs = inputs * jnp.asarray(1 / 255, jnp.result_type(float))
        return inputs, self.targets[rows]

    def mean(self, values: Float[Array, "batch"], number: Any) -> Float[Array, ""]:
        """The mean over all examples as a step sees it, from one value for each place of its row.

        >>> rows = jnp.array([[0, 1], [2, 2]])  # three examples in two steps: the last place is a filler
        >>> batch = Minibatches(jnp.ones((3, 2)), jnp.zeros(3), rows, 3.0, counts=jnp.array([2, 1]), scale=2 / 3)
        >>> steps = [batch.mean(values, step) for step, values in enumerate(jnp.array([[3.0, 6.0], [9.0, 7.0]]))]
        >>> float(sum(steps) / 2)
        6.0
        """
        if self.counts is None:
            return jnp.mean(values)
        real = jnp.arange(values.shape[0]) < self.counts[number]
        return jnp.asarray(jnp.where(real, values, 0).sum() * self.scale)


def loss_of_step(
    model: Model, packing: Packing, likelihood: LogDensity, batch: Minibatches
) -> Callable[[Blocks, Any], Float[Array, ""]]:
    """The mean negative log likelihood of a step's examples, as a function of weights and the step's number."""

    def loss(weights: Blocks, number: Any) -> Float[Array, ""]:
        inputs, targets = batch.step(number)
        return -batch.mean(likelihood(model.apply(packing.unpack(weights), inputs), targets), number)

    return loss
