"""Decentralized Bayesian learning over graphs: agents with private data, and no server, learn one model.

>>> import numpy as np
>>> import consilience as cs
>>> x = np.random.default_rng(0).normal(size=(120, 2)).astype(np.float32)
>>> y = np.where(x @ [1.0, -2.0] > 0, "yes", "no")
>>> shares = {"north": (x[:20], y[:20]), "east": (x[20:50], y[20:50]), "south": (x[50:90], y[50:90])}
>>> fit = cs.learn(cs.mlp((2,), 2, hidden=()), shares, cs.ring(3), rounds=5, test=(x[90:], y[90:]), progress=False)
>>> fit.predict(x[:4], agent="east").probabilities.shape
(4, 2)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from consilience.errors import InputError
    from consilience.learning import Belief, Fit, Peer, Prediction, learn, load
    from consilience.models import Model, cnn, mlp
    from consilience.models.likelihoods import Bernoulli, Categorical, Gaussian, Poisson
    from consilience.models.likelihoods import given as likelihood
    from consilience.network import (
        Network,
        complete,
        erdos_renyi,
        from_matrix,
        from_networkx,
        grid,
        path,
        ring,
        star,
        watts_strogatz,
    )

__version__ = "0.1.0"
__all__ = [
    "Belief",
    "Bernoulli",
    "Categorical",
    "Fit",
    "Gaussian",
    "InputError",
    "Model",
    "Network",
    "Peer",
    "Poisson",
    "Prediction",
    "cnn",
    "complete",
    "erdos_renyi",
    "from_matrix",
    "from_networkx",
    "grid",
    "learn",
    "likelihood",
    "load",
    "mlp",
    "path",
    "ring",
    "star",
    "watts_strogatz",
]
_HOMES = {
    **dict.fromkeys(("Belief", "Fit", "Peer", "Prediction", "learn", "load"), "learning"),
    **dict.fromkeys(("Model", "cnn", "mlp"), "models"),
    **dict.fromkeys(("Bernoulli", "Categorical", "Gaussian", "Poisson"), "models.likelihoods"),
    "InputError": "errors",
}


def __getattr__(name: str) -> Any:
    """What is offered is imported when it is first asked for: the command's small answers do not wait for JAX."""
    if name not in __all__:
        raise AttributeError(f"module 'consilience' has no attribute '{name}'")
    from consilience.machine.runtime import use_all_cores

    use_all_cores()  # before JAX looks for its devices; where it has, these are used as they are
    if name == "likelihood":
        return import_module("consilience.models.likelihoods").given
    return getattr(import_module(f"consilience.{_HOMES.get(name, 'network')}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
