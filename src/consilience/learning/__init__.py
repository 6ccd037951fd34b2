"""The front door: learn from arrays or tables, and use what was learnt."""

from consilience.learning import export
from consilience.learning.coefficients import Coefficients
from consilience.learning.comparison import compare
from consilience.learning.fit import Belief, Fit, load
from consilience.learning.from_arrays import learn
from consilience.learning.peer import Peer
from consilience.learning.prediction import Prediction

__all__ = ["Belief", "Coefficients", "Fit", "Peer", "Prediction", "compare", "export", "learn", "load"]
