"""The paper, figure by figure: the runs that each needs, what it claims, and whether that holds."""

from consilience.paper.claims import Claim
from consilience.paper.parts import Part, part_named
from consilience.paper.plays import Play
from consilience.paper.told import Told

__all__ = ["Claim", "Part", "Play", "Told", "part_named"]
