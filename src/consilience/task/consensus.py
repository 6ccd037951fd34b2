"""How everybody's evidence comes together, described: one for each kind."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from consilience.described.fields import Described

ALONE = "alone"  # the arm in which nobody talks
Damping = Annotated[float, Field(gt=0, le=1, description="how much of what was learnt a site takes on in a round")]


class Pooling(Described):
    """The paper's: beliefs are pooled by their weighted geometric mean; point weights are averaged."""

    kind: Literal["pooling"] = "pooling"
    alike: bool = Field(
        False, description="agents' data counts alike: likelihoods are tempered by 1/(N v), v being their centrality"
    )


class Sites(Described):
    """Everybody keeps the newest site of everybody: all data counts once, whatever is lost or late."""

    kind: Literal["sites"] = "sites"
    damping: Damping = 1.0
    passes: int = Field(1, ge=1, le=100, description="how often in a round neighbours pass on what they have heard")


class Tracking(Described):
    """The same total by running sums: only sums are seen, and memory does not grow with the network.

    Sums that have not mixed say wrong things, and what is learnt from them is wrong again: so sites must change more
    slowly than the network mixes.
    """

    kind: Literal["tracking"] = "tracking"
    damping: Damping = 0.1


class FedAvg(Described):
    """Federated averaging: a server (on a star, the hub) averages by how much data each has and sends that to all.

    Played as one turn: everybody hears all who learnt, with their shares of the data.
    """

    kind: Literal["fedavg"] = "fedavg"
    fraction: float = Field(1.0, gt=0, le=1, description="of agents that learn in a round, drawn anew every time")


class GradientTracking(Described):
    """Point weights and directions of descent are averaged with Metropolis weights on the network's links."""

    kind: Literal["gradient-tracking"] = "gradient-tracking"


class Alone(Described):
    """Nobody hears anybody."""

    kind: Literal["alone"] = "alone"


class Central(Described):
    """One agent has all data; the others hear it and nobody else."""

    kind: Literal["central"] = "central"


ConsensusConfig = Annotated[
    Pooling | Sites | Tracking | FedAvg | GradientTracking | Alone | Central, Field(discriminator="kind")
]


def apart(consensus: ConsensusConfig) -> ConsensusConfig:
    """The same where nobody hears anybody: everybody believes what its own data says, as a site or as a belief.

    >>> apart(Tracking()).kind, apart(FedAvg()).kind
    ('sites', 'pooling')
    """
    return Sites() if isinstance(consensus, Sites | Tracking) else Pooling()
