"""Learners: the ways an agent turns private data into a new belief."""

from consilience.learners.conjugate import Observations, conjugate, conjugate_learner, evidence
from consilience.learners.exact import exact, exact_learner
from consilience.learners.minibatches import Minibatches
from consilience.learners.variational import Options, variational, variational_learner

__all__ = [
    "Minibatches",
    "Observations",
    "Options",
    "conjugate",
    "conjugate_learner",
    "evidence",
    "exact",
    "exact_learner",
    "variational",
    "variational_learner",
]
