"""Parameters go into blocks and vectors and come back unchanged."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consilience.learners.packing import packing_of
from consilience.models import cnn, mlp


@pytest.mark.parametrize("model", [mlp((28, 28), 10), mlp((8, 8), 10, (16,)), mlp((5,), 3, ()), cnn((28, 28), 10)])
def test_round_trips(model):
    parameters = model.init(jax.random.key(0))
    packing = packing_of(parameters)
    blocks = packing.pack(parameters)
    assert [block.shape for block in blocks] == packing.block_shapes()
    vector = packing.flatten(blocks)
    assert vector.shape == (packing.size,)
    for back in (packing.unpack(blocks), packing.unpack(packing.split(vector))):
        assert jax.tree.structure(back) == jax.tree.structure(parameters)
        for one, other in zip(jax.tree.leaves(back), jax.tree.leaves(parameters), strict=True):
            np.testing.assert_array_equal(one, other)


def test_the_paper_network_has_three_blocks():
    packing = packing_of(mlp((28, 28), 10).init(jax.random.key(0)))
    assert packing.size == 199_210
    assert packing.block_shapes() == [(200, 784), (200, 200), (1, 2410)]
    assert jnp.zeros(1).dtype == jnp.float64
