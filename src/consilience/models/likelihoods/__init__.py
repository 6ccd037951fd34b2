"""Likelihoods as values: what a network's outputs say of the data, what they predict and how good that is."""

from consilience.models.likelihoods.bernoulli import Bernoulli
from consilience.models.likelihoods.categorical import Categorical, log_likelihood
from consilience.models.likelihoods.gaussian import Gaussian
from consilience.models.likelihoods.given import given
from consilience.models.likelihoods.likelihood import Likelihood, LogDensity
from consilience.models.likelihoods.poisson import Poisson

__all__ = ["Bernoulli", "Categorical", "Gaussian", "Likelihood", "LogDensity", "Poisson", "given", "log_likelihood"]
