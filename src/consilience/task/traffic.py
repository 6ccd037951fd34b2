"""What a rule costs on the way: the messages that its agents send each other in every round."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from consilience.network import Network, Schedule
from consilience.network.traffic import hub_of, over_links, through_server
from consilience.task.consensus import Central, ConsensusConfig, FedAvg


def messages_of(
    consensus: ConsensusConfig,
    network: Network | Schedule,
    hears: Network | Schedule,
    sizes: Int[np.ndarray, "agents"],
    rounds: int,
) -> Int[np.ndarray, "rounds"]:
    """How many messages agents on this network send in each of so many rounds, `hears` being what the rule makes of it.

    FedAvg goes through a server, whatever the network, but that on a star the hub is the server. With all data in one
    place nothing is sent but that data, once, which is no message.
    """
    if isinstance(consensus, Central):
        return np.zeros(rounds, np.int64)
    if isinstance(consensus, FedAvg):
        some = None if isinstance(hears, Network) else hears
        return through_server(some, np.flatnonzero(sizes), hub_of(network), rounds)
    return over_links(hears, rounds)
