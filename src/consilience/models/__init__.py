"""Models: networks, or any pair of `init` and `apply`, and what their outputs say of the data."""

from consilience.models.likelihoods import Likelihood, LogDensity, log_likelihood
from consilience.models.networks import Conv, Dense, Halve, Layer, Model, Reshape, Units, cnn, mlp, stack

__all__ = [
    "Conv",
    "Dense",
    "Halve",
    "Layer",
    "Likelihood",
    "LogDensity",
    "Model",
    "Reshape",
    "Units",
    "cnn",
    "log_likelihood",
    "mlp",
    "stack",
]
