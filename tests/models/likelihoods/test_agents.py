"""What is measured of one agent is measured of many side by side, in one program."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consilience.beliefs import MeanField
from consilience.models.likelihoods import Bernoulli, Categorical, Gaussian, Poisson, given

RNG = np.random.default_rng(0)
LIKELIHOODS = [
    Categorical(("a", "b", "c")),
    Bernoulli(("a", "b")),
    Gaussian(0.5),
    Gaussian(),
    Poisson(most=8),
    given(lambda f, y: -((y - f[:, 0]) ** 2), 1),
]


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=lambda likelihood: likelihood.name)
def test_agents_side_by_side(likelihood):
    outputs = likelihood.outputs + (likelihood == Gaussian())
    inputs, y, key = jnp.array(RNG.normal(size=(20, 2))), jnp.array(RNG.integers(0, 2, 20)), jax.random.key(0)
    beliefs = MeanField.from_moments(jnp.array(RNG.normal(size=(3, 2 * outputs))), jnp.full((3, 2 * outputs), 0.1))

    def measured(belief):
        apply = lambda w, x: x @ w.reshape(2, outputs)  # noqa: E731
        return likelihood.scores(likelihood.predictive(apply, belief, inputs, key, 4), y)

    together = jax.jit(jax.vmap(measured))(beliefs)
    for agent in range(3):
        for name, value in measured(jax.tree.map(lambda part, k=agent: part[k], beliefs)).items():
            assert float(together[name][agent]) == pytest.approx(float(value), rel=1e-9, abs=1e-12), name
