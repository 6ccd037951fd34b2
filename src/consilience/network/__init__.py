"""Networks: who hears whom, and how much."""

from consilience.network.checks import check, components, period
from consilience.network.churn import Churn, Presence
from consilience.network.clocks import Asynchronous
from consilience.network.files import read_network
from consilience.network.flows import Flows
from consilience.network.following import heard_of
from consilience.network.graphs import complete, erdos_renyi, grid, path, ring, star, watts_strogatz
from consilience.network.network import Network, from_matrix, from_networkx
from consilience.network.partial import Participating
from consilience.network.schedule import Fixed, Gossip, Lossy, Most, Replay, RotatingStar, Schedule, Unheard
from consilience.network.tables import Tables
from consilience.network.turn_files import read_turns, turns_as_csv
from consilience.network.turns import IDLE, Turn
from consilience.network.union import check_union
from consilience.network.weights import lazy, metropolis, uniform

__all__ = [
    "Asynchronous",
    "Churn",
    "Fixed",
    "Flows",
    "Gossip",
    "IDLE",
    "Lossy",
    "Most",
    "Network",
    "Participating",
    "Presence",
    "Replay",
    "RotatingStar",
    "Schedule",
    "Tables",
    "Turn",
    "Unheard",
    "check",
    "check_union",
    "complete",
    "components",
    "erdos_renyi",
    "from_matrix",
    "from_networkx",
    "grid",
    "heard_of",
    "lazy",
    "metropolis",
    "path",
    "period",
    "read_network",
    "read_turns",
    "ring",
    "star",
    "turns_as_csv",
    "uniform",
    "watts_strogatz",
]
