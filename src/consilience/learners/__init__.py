"""Learners: the ways an agent turns private data into a new belief."""

from consilience.learners.conjugate import Observations, conjugate, evidence
from consilience.learners.exact import exact

__all__ = ["Observations", "conjugate", "evidence", "exact"]
