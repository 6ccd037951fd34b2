"""Learners: the ways an agent turns private data into a new belief."""

from consilience.learners.conjugate import Observations, conjugate, evidence
from consilience.learners.exact import exact
from consilience.learners.minibatches import Minibatches
from consilience.learners.variational import Options, variational

__all__ = ["Minibatches", "Observations", "Options", "conjugate", "evidence", "exact", "variational"]
