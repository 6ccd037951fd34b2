"""Models: shapes, and the law of their outputs under Gaussian weights."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consilience.models import Conv, Dense, Reshape, cnn, log_likelihood, mlp, stack


@pytest.mark.parametrize(
    ("model", "shape"), [(mlp((28, 28), 10), (28, 28)), (mlp((6,), 4, ()), (6,)), (cnn((8, 8), 5), (8, 8))]
)
def test_logits_for_a_batch(model, shape):
    parameters = model.init(jax.random.key(0))
    logits = model.apply(parameters, jnp.ones((7, *shape)))
    assert logits.shape[0] == 7
    variances = jax.tree.map(lambda x: 0 * x, parameters)
    still = model.apply_gaussian(parameters, variances, jnp.ones((7, *shape)), jax.random.key(1))
    np.testing.assert_allclose(still, logits, atol=1e-6)


@pytest.mark.parametrize("layers", [[Dense(3)], [Reshape((2, 2, 1)), Conv(2), Reshape()]])
def test_drawn_outputs_have_the_law_of_drawn_weights(layers):
    """One linear layer: mean and variance of each output by the local reparameterisation and by drawing the weights."""
    model = stack(layers, (4,))
    means = model.init(jax.random.key(0))
    variances = jax.tree.map(lambda x: 0.1 + 0.2 * jnp.abs(x), means)
    x = jnp.array([[0.3, -1.0, 2.0, 0.5]])
    keys = jax.random.split(jax.random.key(1), 40_000)
    local = jax.vmap(lambda k: model.apply_gaussian(means, variances, x, k)[0])(keys)
    leaves, structure = jax.tree.flatten(means)

    def by_weights(key):
        draws = [
            m + jnp.sqrt(v) * jax.random.normal(jax.random.fold_in(key, i), m.shape)
            for i, (m, v) in enumerate(zip(leaves, jax.tree.leaves(variances), strict=True))
        ]
        return model.apply(jax.tree.unflatten(structure, draws), x)[0]

    weights = jax.vmap(by_weights)(keys)
    np.testing.assert_allclose(local.mean(0), weights.mean(0), atol=0.06)
    np.testing.assert_allclose(local.var(0), weights.var(0), rtol=0.06)


def test_log_likelihood_is_the_softmax():
    logits = jnp.array([[1.0, 2.0, 3.0]])
    expected = np.log(np.exp(2.0) / np.exp([1.0, 2.0, 3.0]).sum())
    np.testing.assert_allclose(log_likelihood(logits, jnp.array([1])), [expected], rtol=1e-12)
