"""What a run of Theorem 1 has."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from consilience.described.networks import Complete, Grid, NetworkConfig, Ring, Star, WattsStrogatz
from consilience.experiments.coins import Coins
from consilience.runs.description import ArmName


class Config(Coins):
    """Coins over several networks, and Theorem 1's promise."""

    experiment: Literal["theorem-1"] = "theorem-1"
    rounds: int = Field(10_000, ge=4)
    replicates: int = Field(1000, ge=1)
    checkpoint_every: int = Field(2000, ge=1)
    networks: dict[ArmName, NetworkConfig] = Field(
        {
            "complete": Complete(agents=9),
            "star": Star(edges=8, trust=0.5),
            "grid": Grid(rows=3, columns=3),
            "directed-ring": Ring(agents=6, directed=True),
            "small-world": WattsStrogatz(agents=12, neighbours=4, probability=0.3),
        },
        min_length=1,
    )
    delta: float = Field(0.05, gt=0, lt=1)
    epsilon: float = Field(0.75, gt=0, lt=1, description="ε of Theorem 1, as a share of K")
