"""What the theory says of it: the slowest direction, and exact mean rates of every arm."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float

from consilience.experiments.linear_regression.description import Config, network_of
from consilience.network import Network, from_matrix
from consilience.theory import gaussian_information, hardest_direction, mean_log_ratio, stationary


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


def _prior_log_ratio(config: Config, offset: Float[np.ndarray, "d"]) -> float:
    """log N(θ*; 0, s²I) − log N(θ*+offset; 0, s²I)."""
    theta = np.asarray(config.theta)
    return float((np.sum((theta + offset) ** 2) - np.sum(theta**2)) / (2 * config.prior_variance))
