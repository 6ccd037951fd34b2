"""Models: shapes, and the law of their outputs under Gaussian weights."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consilience.errors import InputError
from consilience.models import Conv, Dense, Model, Reshape, Units, cnn, log_likelihood, mlp, stack
from consilience.task.models import Mlp


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (mlp((28, 28), 10), (28, 28)),
        (mlp((6,), 4, ()), (6,)),
        (mlp((6,), 4, (5, 3), "sigmoid"), (6,)),
        (cnn((8, 8), 5), (8, 8)),
    ],
)
def test_logits_for_a_batch(model, shape):
    parameters = model.init(jax.random.key(0))
    logits = model.apply(parameters, jnp.ones((7, *shape)))
    assert logits.shape[0] == 7
    variances = jax.tree.map(lambda x: 0 * x, parameters)
    still = model.apply_gaussian(parameters, variances, jnp.ones((7, *shape)), jax.random.key(1))
    np.testing.assert_allclose(still, logits, atol=1e-6)


def test_units_are_of_the_kind_that_is_asked_for():
    """Two layers by hand; what is written down is the same model."""
    x = np.array([[0.2, -1.5, 0.7]])
    for activation, f in (("relu", lambda z: np.maximum(z, 0)), ("sigmoid", lambda z: 1 / (1 + np.exp(-z)))):
        model = mlp((3,), 2, (4,), activation)
        first, last = (model.init(jax.random.key(0))[place] for place in (1, 3))
        expected = f(x @ first["w"].T + 0.0) @ last["w"].T
        np.testing.assert_allclose(model.apply(model.init(jax.random.key(0)), jnp.asarray(x)), expected, atol=1e-6)
        assert Mlp.model_validate(model.described).build((3,), 2).described == model.described
    with pytest.raises(InputError, match="activation: must be relu or sigmoid, got 'tanh'"):
        mlp((3,), 2, (4,), "tanh")


@pytest.mark.parametrize(
    "layers", [[Dense(3)], [Reshape((2, 2, 1)), Conv(2), Reshape()], [Dense(3), Units("sigmoid")], [Dense(3), Units()]]
)
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


ANY_PAIR = Model(lambda key: {"a": jax.random.normal(key, (3, 4)), "b": jnp.zeros(())}, jnp.add)


@pytest.mark.parametrize(
    "model", [mlp((28, 28), 10), mlp((), 2, ()), cnn((8, 8), 5), cnn((9, 5, 3), 4, (2, 3)), ANY_PAIR]
)
def test_sizes_are_those_of_the_parameters(model):
    assert model.size == sum(leaf.size for leaf in jax.tree.leaves(model.init(jax.random.key(0))))


@pytest.mark.parametrize("units", [10**9, 10**12, 10**30])
def test_sizes_of_what_no_memory_holds(units):
    """Found by arithmetic: nothing is allocated."""
    assert mlp((28, 28), 10, [units]).size == 785 * units + 10 * (units + 1)
    filters = cnn((28, 28), 10, [units], 1)
    assert filters.size == 10 * units + (14 * 14 * units + 1) + 20


@pytest.mark.parametrize(
    ("shape", "channels", "message"),
    [
        ((8, 8), [2] * 4, r"model\.channels: 8 × 8 pixels can be halved 3 times, got 4 layers that do"),
        ((28, 3), [2] * 2, r"28 × 3 pixels can be halved 1 times, got 2"),
        ((1, 1), [2], r"1 × 1 pixels can be halved 0 times, got 1"),
        ((64,), [2], r"model: a cnn needs images .*, got inputs of shape \(64,\)"),
        ((), [2], r"got inputs of shape \(\)"),
        ((2, 2, 2, 2), [2], r"got inputs of shape \(2, 2, 2, 2\)"),
    ],
)
def test_images_that_do_not_suit_a_cnn_are_named(shape, channels, message):
    with pytest.raises(InputError, match=message):
        cnn(shape, 10, channels)


def test_the_most_halvings_leave_one_pixel():
    model = cnn((8, 9), 3, [2, 2, 2], 4)
    assert model.apply(model.init(jax.random.key(0)), jnp.ones((2, 8, 9))).shape == (2, 3)


@pytest.mark.parametrize(("shape", "to"), [((4,), (3, -1)), ((4,), (0, -1)), ((4,), (2, 3))])
def test_reshapes_that_lose_numbers_are_refused(shape, to):
    with pytest.raises(InputError, match="model: inputs of shape"):
        stack([Reshape(to), Reshape(), Dense(1)], shape).init(jax.random.key(0))


def test_log_likelihood_is_the_softmax():
    logits = jnp.array([[1.0, 2.0, 3.0]])
    expected = np.log(np.exp(2.0) / np.exp([1.0, 2.0, 3.0]).sum())
    np.testing.assert_allclose(log_likelihood(logits, jnp.array([1])), [expected], rtol=1e-12)
