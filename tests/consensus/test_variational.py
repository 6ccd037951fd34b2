"""Sites of Newton's means come to variational inference with all data in one place: against quadrature and scipy."""

import jax
import jax.numpy as jnp
import numpy as np
import plain_agents
from scipy.optimize import minimize

from consilience.beliefs import MeanField
from consilience.consensus import sites
from consilience.learners import Minibatches
from consilience.learners.natural import NaturalOptions, natural_learner
from consilience.learners.packing import packing_of
from consilience.models import Model
from consilience.network import Tables, ring

D, ROWS, AGENTS, PRIOR_SD, STEPS, ROUNDS = 3, 40, 3, 0.7, 40, 120
RNG = np.random.default_rng(0)
X = RNG.normal(size=(AGENTS, ROWS, D)) + RNG.normal(size=(AGENTS, 1, D))  # everybody's own corner, columns correlated
X[..., 1] += X[..., 0]
Y = (RNG.random((AGENTS, ROWS)) < 1 / (1 + np.exp(-X @ [1.0, -1.5, 0.5]))) * 2.0 - 1
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
MODEL = Model(lambda key: {"w": jnp.zeros(D)}, lambda own, x: x @ own["w"][:, None])


def log_density(outputs, targets):
    return jax.nn.log_sigmoid(targets * outputs[:, 0])


def negative_elbo(mean, sd):
    """Outputs of a linear model are Gaussian: their expectation is an integral over one number."""
    x, y = jnp.asarray(X.reshape(-1, D)), jnp.asarray(Y.reshape(-1))
    outputs = (x @ mean)[:, None] + jnp.sqrt(x**2 @ sd**2)[:, None] * NODES
    expected = -(jax.nn.log_sigmoid(y[:, None] * outputs) @ (WEIGHTS / WEIGHTS.sum())).sum()
    return expected + 0.5 * jnp.sum((sd**2 + mean**2) / PRIOR_SD**2 - 1 - 2 * jnp.log(sd / PRIOR_SD))


def test_everybody_has_what_one_agent_with_all_data_would_find():
    objective = jax.jit(jax.value_and_grad(lambda z: negative_elbo(z[:D], jnp.exp(z[D:]))))
    found = minimize(objective, np.concatenate([np.zeros(D), np.full(D, -1.0)]), jac=True, method="BFGS")
    best_mean, best_sd = found.x[:D], np.exp(found.x[D:])

    options = NaturalOptions(
        mean="newton", learning_rate=0.1, decay=0.97, curvature_decay=0.99, floor=0.0, prior_sd=PRIOR_SD
    )
    given = MODEL.init(plain_agents.KEY)
    agent = sites(natural_learner(MODEL, packing_of(given), options, log_density), damping=1 / AGENTS)
    chosen = jnp.tile(jnp.arange(ROWS), (STEPS, 1))
    data = [Minibatches(jnp.asarray(x), jnp.asarray(y), chosen, float(ROWS)) for x, y in zip(X, Y, strict=True)]
    # Plain agents all learn with one key: what is drawn in a round is told by a number that comes with its data.
    numbered = agent._replace(learn=lambda key, own, told: agent.learn(jax.random.fold_in(key, told[0]), own, told[1]))
    tables = Tables(ring(AGENTS), ROUNDS)
    states = plain_agents.play(
        plain_agents.compiled(numbered),
        [given] * AGENTS,
        [tables.turn(number) for number in range(1, ROUNDS + 1)],
        lambda number, i: (number * AGENTS + i, data[i]),
    )
    for state in states:
        q: MeanField = state.q
        sd = 1 / np.sqrt(q.precision)
        assert float(negative_elbo(q.mean, sd)) < 1.005 * found.fun
        np.testing.assert_allclose((q.mean - best_mean) / best_sd, 0, atol=0.1)
        np.testing.assert_allclose(sd / best_sd, 1, atol=0.05)
