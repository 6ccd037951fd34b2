"""Models: networks, or any pair of `init` and `apply`, and what their outputs say of the data."""

from consilience.models.likelihoods import Likelihood, LogDensity, log_likelihood
from consilience.models.networks import Conv, Dense, Halve, Layer, Model, Relu, Reshape, cnn, mlp, stack

__all__ = [
    "Conv",
    "Dense",
    "Halve",
    "Layer",
    "Likelihood",
    "LogDensity",
    "Model",
    "Relu",
    "Reshape",
    "cnn",
    "log_likelihood",
    "mlp",
    "stack",
]
