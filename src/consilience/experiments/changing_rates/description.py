"""What a run on networks that change has."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from consilience.described.changes import Changes, Clocks
from consilience.described.networks import Complete, Grid, NetworkConfig, RotatingStarNetwork, Star, WattsStrogatz
from consilience.experiments.coins import Coins
from consilience.runs.description import ArmName

RuleName = Literal["paper", "sites", "tracking"]


class Config(Coins):
    """Coins over networks that change."""

    experiment: Literal["changing-rates"] = "changing-rates"
    rounds: int = Field(2000, ge=4)
    replicates: int = Field(1000, ge=1)
    points: int = Field(
        16, ge=2, le=10**5, description="recorded rounds, evenly spaced in log n, from round 4 to the last"
    )
    checkpoint_every: int = Field(1000, ge=1)
    networks: dict[ArmName, NetworkConfig] = Field(
        {
            "rotating star": RotatingStarNetwork(edges=8, at_once=2),
            "lossy star": Star(edges=8, trust=0.5, changes=Changes(loss=0.6)),
            "gossip on a grid": Grid(rows=3, columns=3, changes=Changes(gossip="matching")),
            "churn": WattsStrogatz(agents=12, neighbours=4, probability=0.3, changes=Changes(up=20, down=20)),
            "own clocks": Complete(agents=9, changes=Changes(clocks=Clocks(spread=0.7, delay=0.5))),
        },
        min_length=1,
    )
    rules: list[RuleName] = Field(
        ["paper", "sites", "tracking"],
        min_length=1,
        description="how evidence comes together: beliefs pooled by trust, or everybody's evidence counted once",
    )

    @field_validator("rules")
    @classmethod
    def _each_once(cls, value: list[RuleName]) -> list[RuleName]:
        if len(set(value)) < len(value):
            raise ValueError("should have each rule once")
        return value

    def arms(self) -> dict[str, tuple[str, RuleName]]:
        """Every arm's network and rule, by the arm's name: the network's own under the paper's rule."""
        pairs = [(network, rule) for network in self.networks for rule in self.rules]
        return {network if rule == "paper" else f"{network}, {rule}": (network, rule) for network, rule in pairs}
