"""Beliefs: members of exponential families, held as natural parameters, and the one way to pool them.

Every family is a NamedTuple whose fields *are* its natural parameters, so a stack of beliefs is the same tuple with a
leading axis, and the paper's consensus step (eq. 4) is one weighted sum for all of them: :func:`pool`.
"""

from consilience.beliefs.categorical import Categorical
from consilience.beliefs.family import Belief
from consilience.beliefs.gaussian import Gaussian
from consilience.beliefs.meanfield import MeanField
from consilience.beliefs.point import Point
from consilience.beliefs.pooling import Edges, pool

__all__ = ["Belief", "Categorical", "Edges", "Gaussian", "MeanField", "Point", "pool"]
