"""The front door: learn from arrays or tables, and use what was learnt."""

from consilience.learning.fit import Belief, Fit, load
from consilience.learning.from_arrays import learn
from consilience.learning.prediction import Prediction

__all__ = ["Belief", "Fit", "Prediction", "learn", "load"]
