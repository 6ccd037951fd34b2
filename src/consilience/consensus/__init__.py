"""Consensus: the ways in which everybody's evidence comes together. Each makes an agent of a learner."""

from consilience.consensus.pooling import pooling
from consilience.consensus.sites import Sited, sites
from consilience.consensus.tracking import Tracked, tracking

__all__ = ["Sited", "Tracked", "pooling", "sites", "tracking"]
