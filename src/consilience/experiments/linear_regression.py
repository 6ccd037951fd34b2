"""Bayesian linear regression over a graph (Sec. 4.1, Fig. 1): every agent sees one coordinate, all learn all of it."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jaxtyping import Array, Float, Int, PRNGKeyArray
from pydantic import Field

from consilience import memory
from consilience.beliefs import Gaussian
from consilience.config import RunConfig
from consilience.engines.arm import Arm, Data, Metrics, Progress, agent_key, round_key
from consilience.errors import InputError
from consilience.learners import Observations, conjugate
from consilience.network import Network, check, from_matrix
from consilience.network_config import Matrix, NetworkConfig
from consilience.record import Record
from consilience.theory import gaussian_information, hardest_direction, mean_log_ratio, stationary

TEST_ROUND = 2**31 - 1  # the test set is drawn with the key of a round that is never played
PAPER_W = [[0.5, 0.5, 0, 0], [0.3, 0.1, 0.3, 0.3], [0, 0.5, 0.5, 0], [0, 0.5, 0, 0.5]]


Scale = Annotated[float, Field(ge=1e-100, le=1e100)]  # its square is a number


class Config(RunConfig):
    """The paper's setting: four agents, an intercept and four coordinates (the prior is read as 0.5 I₅)."""

    experiment: Literal["linear-regression"] = "linear-regression"
    rounds: int = Field(300, ge=1)
    replicates: int = Field(50, ge=1)
    network: NetworkConfig = Matrix(W=PAPER_W)
    theta: list[Annotated[float, Field(ge=-1e100, le=1e100)]] = Field(
        [-0.3, 0.5, 0.5, 0.1, 0.2], min_length=2, description="θ*: intercept, then coordinates"
    )
    half_widths: list[Scale] = Field([1.0, 1.5, 1.25, 0.75], description="coordinate k is uniform on ± this")
    noise: Scale = Field(0.8, description="standard deviation α of the labels' noise")
    prior_variance: Scale = 0.5
    batch: int = Field(10, ge=1, lt=2**31, description="samples an agent draws each round")
    test_samples: int = Field(2000, ge=1, lt=2**31, description="size of the global test set, all coordinates at once")


def network_of(config: Config) -> Network:
    """The network, checked, with a coordinate for every agent."""
    network = config.network.fixed()
    check(network)
    if len(config.theta) != len(config.half_widths) + 1:
        raise InputError(
            f"theta: must have one entry more than half_widths ({len(config.half_widths)}), got {len(config.theta)}"
        )
    if network.agents < len(config.half_widths):
        raise InputError(
            f"network: needs an agent for each of {len(config.half_widths)} coordinates, got {network.agents} agents"
        )
    return network


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


def second_moments(config: Config, agents: int) -> Float[np.ndarray, "agents d d"]:
    """E_j[φφᵀ]: 1 for the intercept, a²/3 for a coordinate that is uniform on ±a, no correlation."""
    d = len(config.theta)
    moments = np.zeros((agents, d, d))
    k = np.arange(agents) % (d - 1)
    moments[:, 0, 0] = 1.0
    moments[np.arange(agents), 1 + k, 1 + k] = np.square(config.half_widths)[k] / 3
    return moments


def hardest_alternative(config: Config, network: Network) -> Float[np.ndarray, "d"]:
    """The θ at distance 1 from θ* that the network as a whole tells from it most slowly."""
    moments = second_moments(config, network.agents)
    return np.asarray(config.theta + hardest_direction(stationary(network), moments))


def predict(config: Config, n: int) -> dict[str, dict[str, float]]:
    """The theory for each arm's slowest agent: the exact mean of (1/n) log b(θ*)/b(θ) at round n, and its limit."""
    network = network_of(config)
    offset = hardest_alternative(config, network) - np.asarray(config.theta)
    moments = second_moments(config, network.agents)
    information = gaussian_information(moments, config.noise, offset, config.batch)
    prior = _prior_log_ratio(config, offset)

    def exact(network: Network, values: Float[np.ndarray, "agents"]) -> float:
        return float((prior + mean_log_ratio(network, values, [n])).min() / n)

    one, alone = from_matrix([[1.0]]), Network(sp.eye_array(network.agents))
    return {
        "central": {"K": float(information.sum()), "exact": exact(one, information.sum(keepdims=True))},
        "alone": {"K": float(information.min()), "exact": exact(alone, information)},
        "cooperating": {"K": float(stationary(network) @ information), "exact": exact(network, information)},
    }


def summarise(config: Config, record: Record) -> dict[str, Any]:
    """Each arm at its last recorded round, against the theory and the central agent."""
    last = {arm: int(record.rounds(arm)[-1]) for arm in record.arms()}
    predicted = predict(config, last["cooperating"])
    rows: dict[str, Any] = {}
    for arm in record.arms():
        mse, log_ratio = record.select(arm, "mse")[-1], record.select(arm, "log_ratio")[-1]
        rows[arm] = {
            "mse": float(mse.mean()),
            "mse_of_worst_agent": float(mse.max()),
            "distance": float(record.select(arm, "distance")[-1].mean()),
            "rate_predicted": predicted[arm]["exact"],
            "rate_measured": float(log_ratio.min() / last[arm]),
            "rate_limit": predicted[arm]["K"],
        }
    for arm in rows:
        rows[arm]["mse_over_central"] = rows[arm]["mse"] / rows["central"]["mse"]
    test = test_set(config)
    residuals = np.asarray(test.labels - test.features @ jnp.array(config.theta))
    return {
        "rounds": last["cooperating"],
        "replicates": config.replicates,
        "mse_of_the_truth": float(np.mean(residuals**2)),
        "arms": rows,
    }


def _labels(
    key: PRNGKeyArray, features: Float[Array, "m d"], theta: Float[Array, "d"], noise: float
) -> Float[Array, "m"]:
    return features @ theta + noise * jax.random.normal(key, features.shape[:1])


def _prior_log_ratio(config: Config, offset: Float[np.ndarray, "d"]) -> float:
    """log N(θ*; 0, s²I) − log N(θ*+offset; 0, s²I)."""
    theta = np.asarray(config.theta)
    return float((np.sum((theta + offset) ** 2) - np.sum(theta**2)) / (2 * config.prior_variance))
