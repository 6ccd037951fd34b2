"""What a regression run has: the paper's setting as defaults."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from consilience.described.networks import Matrix, NetworkConfig
from consilience.errors import InputError
from consilience.network import Network, check
from consilience.runs.description import RunConfig

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
