"""Networks: who hears whom, and how much."""

from consilience.network.checks import check, components, period
from consilience.network.files import read_network
from consilience.network.graphs import complete, erdos_renyi, grid, path, ring, star, watts_strogatz
from consilience.network.network import Network, from_matrix, from_networkx
from consilience.network.weights import lazy, metropolis, uniform

__all__ = [
    "Network",
    "check",
    "complete",
    "components",
    "erdos_renyi",
    "from_matrix",
    "from_networkx",
    "grid",
    "lazy",
    "metropolis",
    "path",
    "period",
    "read_network",
    "ring",
    "star",
    "uniform",
    "watts_strogatz",
]
