"""The arms of the regression: a central agent, agents alone, agents cooperating."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import scipy.sparse as sp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from consilience.beliefs import Gaussian
from consilience.engines.arm import Arm, Data, Metrics, Progress, agent_key, round_key
from consilience.experiments.linear_regression.description import Config, network_of
from consilience.experiments.linear_regression.theory import hardest_alternative
from consilience.learners import Observations, conjugate
from consilience.machine import memory
from consilience.network import Network, from_matrix

TEST_ROUND = 2**31 - 1  # the test set is drawn with the key of a round that is never played


def arms(config: Config) -> dict[str, Arm]:
    """A central agent that is given all data; the agents alone; the agents cooperating."""
    network = network_of(config)
    N, d = network.agents, len(config.theta)
    theta, widths = jnp.array(config.theta), jnp.array(config.half_widths)
    prior = Gaussian.from_moments(jnp.zeros(d), config.prior_variance * jnp.eye(d))
    agent = conjugate(prior, config.noise)
    wrong = jnp.array(hardest_alternative(config, network))

    def draw(data: Data, key: PRNGKeyArray, number: Int[Array, ""]) -> Observations:
        """φ(x) = [1, 0 … x_k … 0] with k the agent's coordinate."""
        of_inputs, of_noise = jax.random.split(agent_key(key, number))
        k = number % (d - 1)
        x = jax.random.uniform(of_inputs, (config.batch,), minval=-widths[k], maxval=widths[k])
        features = jnp.zeros((config.batch, d)).at[:, 0].set(1.0).at[:, 1 + k].set(x)
        return Observations(features, _labels(of_noise, features, theta, config.noise))

    def draw_all(data: Data, key: PRNGKeyArray, number: Int[Array, ""]) -> Observations:
        every: Observations = jax.vmap(partial(draw, data, key))(jnp.arange(N))
        return Observations(every.features.reshape(-1, d), every.labels.reshape(-1))

    test = test_set(config)
    gram, cross = test.features.T @ test.features, test.features.T @ test.labels

    def measure(data: Data, progress: Progress, number: Int[Array, ""], key: PRNGKeyArray) -> Metrics:
        b: Gaussian = progress.public
        mean = b.mean
        squares = jnp.einsum("...a,ab,...b->...", mean, gram, mean) - 2 * mean @ cross + test.labels @ test.labels
        return {
            "mse": squares / config.test_samples,
            "distance": jnp.linalg.norm(mean - theta, axis=-1),
            "log_ratio": b.log_ratio(theta, wrong),
        }

    alone = Network(sp.eye_array(N), "alone")
    return {
        "central": Arm(agent, draw_all, from_matrix([[1.0]]), measure),
        "alone": Arm(agent, draw, alone, measure),
        "cooperating": Arm(agent, draw, network, measure),
    }


def test_set(config: Config) -> Observations:
    """The global test set: every coordinate varies. It is the same for all seeds."""
    memory.require(8.0 * config.test_samples * 4 * len(config.theta), f"test_samples: {config.test_samples:,} examples")
    of_inputs, of_noise = jax.random.split(round_key(0, TEST_ROUND))
    widths = jnp.array(config.half_widths)
    x = jax.random.uniform(of_inputs, (config.test_samples, len(widths)), minval=-widths, maxval=widths)
    features = jnp.concatenate([jnp.ones((config.test_samples, 1)), x], axis=1)
    return Observations(features, _labels(of_noise, features, jnp.array(config.theta), config.noise))


def _labels(
    key: PRNGKeyArray, features: Float[Array, "m d"], theta: Float[Array, "d"], noise: float
) -> Float[Array, "m"]:
    return features @ theta + noise * jax.random.normal(key, features.shape[:1])
