"""Counts: a network's output is the logarithm of a rate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, logsumexp, xlogy
from jaxtyping import Array, Float, Int, PRNGKeyArray

from consilience.errors import InputError, brief
from consilience.models.likelihoods import mixture
from consilience.models.likelihoods.draws import draws_of
from consilience.models.likelihoods.likelihood import Apply, Told, require_level, require_positive
from consilience.models.networks import Model
from consilience.models.scores import average


class PoissonDraws(NamedTuple):
    """log λ_k of every draw θ_k."""

    log_rates: Float[Array, "examples draws"]


@dataclass(frozen=True)
class Poisson:
    """y ~ Poisson(λ) with λ = centre · e^f, for counts y.

    `centre` is what the network need not learn: say, the mean of all counts. CRPS, coverage and intervals are exact
    sums over 0, 1, 2, … up to `most`; where counts or rates reach beyond (rates above about 110, for 200), every
    Poisson is taken for the Gaussian with its mean and variance.

    >>> likelihood = Poisson(centre=2.0)
    >>> f"{likelihood.log_density(jnp.array([[0.0]]), jnp.array([3])).item():.4f}"  # log(2³ e⁻² / 3!)
    '-1.7123'
    >>> told = likelihood.told(PoissonDraws(jnp.log(jnp.array([[4.0, 4.0]]))), level=0.9)
    >>> told["low"].item(), told["high"].item()
    (1, 8)
    """

    centre: float = 1.0
    most: int = 200
    concave: ClassVar[bool] = True
    name: ClassVar[str] = "poisson"
    outputs: ClassVar[int] = 1

    def __post_init__(self) -> None:
        require_positive("centre", self.centre)
        if self.most < 0:
            raise InputError(f"most: must be at least 0, got {brief(self.most)}")

    def model(self, network: Model) -> Model:
        """The network."""
        return network

    def log_density(
        self, outputs: Float[Array, "batch 1"], targets: Float[Array, "batch"] | Int[Array, "batch"]
    ) -> Float[Array, "batch"]:
        """y log λ − λ − log y!."""
        return log_mass(targets.astype(outputs.dtype), math.log(self.centre) + outputs[:, 0])

    def predictive(self, apply: Apply, belief: Any, inputs: Array, key: PRNGKeyArray, samples: int) -> PoissonDraws:
        """An equal mixture of the Poisson laws of all draws θ_k; the draws are kept."""
        return PoissonDraws(math.log(self.centre) + draws_of(apply, belief, inputs, key, samples)[..., 0])

    def scores(
        self,
        predicted: PoissonDraws,
        targets: Float[Array, "examples"] | Int[Array, "examples"],
        weights: Float[Array, "examples"] | None = None,
    ) -> dict[str, Float[Array, ""]]:
        """RMSE, NLL, CRPS, coverage of central intervals, and standard deviations: aleatoric and epistemic.

        The central interval is the smallest of whole numbers that leaves at most half of the rest on each side, so it
        holds its level or more.
        """
        log_rates = predicted.log_rates
        y, rates = targets.astype(log_rates.dtype), jnp.exp(log_rates)
        crps, below, upto = self._crps_and_shares(y, log_rates)
        aleatoric, epistemic = _spreads(rates)
        inside = {level: (upto >= (1 - level / 100) / 2) & (below < (1 + level / 100) / 2) for level in (50, 90)}
        return {
            "rmse": jnp.sqrt(average((y - rates.mean(1)) ** 2, weights)),
            "nll": -average(mixture.by_row(_log_mixture_mass, y, log_rates), weights),
            "crps": average(crps, weights),
            **{f"coverage_{level}": average(inside[level].astype(y.dtype), weights) for level in inside},
            "aleatoric": average(aleatoric, weights),
            "epistemic": average(epistemic, weights),
        }

    def told(self, predicted: PoissonDraws, level: float = 0.9) -> Told:
        """Mean, standard deviation (and its two parts) and the whole numbers that end the interval of this level."""
        require_level(level)
        log_rates = jnp.asarray(predicted.log_rates)
        rates = jnp.exp(log_rates)
        aleatoric, epistemic = (np.asarray(part, np.float64) for part in _spreads(rates))
        low, high = _interval(log_rates, level, self.most)
        far = np.asarray(_reach(rates) > self.most)
        if far.any():
            low, high = (np.where(far, *ends) for ends in zip(_far_interval(rates, level), (low, high), strict=True))
        return {
            "prediction": np.asarray(rates.mean(1), np.float64),
            "sd": np.hypot(aleatoric, epistemic),
            "low": np.asarray(low).astype(np.int64),
            "high": np.asarray(high).astype(np.int64),
            "aleatoric": aleatoric,
            "epistemic": epistemic,
        }

    def _crps_and_shares(
        self, y: Float[Array, "examples"], log_rates: Float[Array, "examples draws"]
    ) -> tuple[Float[Array, "examples"], Float[Array, "examples"], Float[Array, "examples"]]:
        """CRPS, F(y − 1) and F(y)."""
        rates = jnp.exp(log_rates)
        reach = jnp.maximum(y, _reach(rates))
        near = reach <= self.most
        summed = mixture.by_row(_summed, y, log_rates, jnp.where(near, reach, -1))
        # Under `vmap` both are computed; otherwise what is far costs nothing where nothing is.
        far = jax.lax.cond(near.all(), lambda: summed, lambda: _far(y, rates))
        return tuple(jnp.where(near, *pair) for pair in zip(summed, far, strict=True))  # type: ignore[return-value]


def log_mass(y: Float[Array, "..."], log_rate: Float[Array, "..."]) -> Float[Array, "..."]:
    """y log λ − λ − log y!, as its greatest value and the distance from it: large numbers that cancel never appear.

    >>> log_mass(jnp.array(0.0), jnp.log(jnp.array(3.0))).round(4).item()
    -3.0
    """
    apart = log_rate - jnp.log(jnp.maximum(y, 1))
    excess = jnp.where(y > 0, y * jnp.expm1(apart), jnp.exp(log_rate))  # λ − y
    return y * apart - excess + _log_mass_at_its_rate(y)


def _log_mass_at_its_rate(y: Float[Array, "..."]) -> Float[Array, "..."]:
    """y log y − y − log y!, beyond 10 by Stirling's series."""
    few, many = jnp.minimum(y, 10), jnp.maximum(y, 10)
    rest = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 / many**2) / many**2) / many**2) / many
    return jnp.where(y <= 10, xlogy(few, few) - few - gammaln(few + 1), -0.5 * jnp.log(2 * jnp.pi * many) - rest)


def _log_mixture_mass(y: Float[Array, ""], log_rates: Float[Array, "draws"]) -> Float[Array, ""]:
    return logsumexp(log_mass(y, log_rates)) - jnp.log(log_rates.shape[0])


def _mixture_mass(
    k: Float[Array, ""], log_rates: Float[Array, "draws"], rates: Float[Array, "draws"]
) -> Float[Array, ""]:
    """The same without a logarithm, for k that are not large; the rates are given, as there are many k."""
    return jnp.mean(jnp.exp(k * log_rates - rates - gammaln(k + 1)))


def _reach(rates: Float[Array, "examples draws"]) -> Float[Array, "examples"]:
    """A whole number beyond which there is nothing: less than 1e-8 of any draw."""
    most = rates.max(1)
    return jnp.ceil(most + 6 * jnp.sqrt(most) + 10)


def _summed(
    y: Float[Array, ""], log_rates: Float[Array, "draws"], last: Float[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """Σ_k (F(k) − 1{y ≤ k})² over 0 … last, F(y − 1) and F(y), of one example."""
    rates = jnp.exp(log_rates)

    def add(state: tuple[Array, Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array, Array]:
        k, total, crps, below, upto = state
        mass = _mixture_mass(k, log_rates, rates)
        reached = total + mass
        crps = crps + (reached - (y <= k)) ** 2
        return k + 1, reached, crps, jnp.where(k == y, total, below), jnp.where(k == y, reached, upto)

    zero = jnp.zeros_like(y)
    _, _, crps, below, upto = jax.lax.while_loop(lambda state: state[0] <= last, add, (zero,) * 5)
    return crps, below, upto


def _far(
    y: Float[Array, "examples"], rates: Float[Array, "examples draws"]
) -> tuple[Float[Array, "examples"], Float[Array, "examples"], Float[Array, "examples"]]:
    """CRPS, F(y − 1) and F(y) with Gaussians in the place of Poisson laws; a count is half a unit wide to each side."""
    sds = jnp.sqrt(rates)
    below, upto = (mixture.by_row(mixture.cdf, y + side, rates, sds) for side in (-0.5, 0.5))
    return mixture.by_row(mixture.crps, y, rates, sds), below, upto


@partial(jax.jit, static_argnums=2)
def _interval(
    log_rates: Float[Array, "examples draws"], level: Any, most: int
) -> tuple[Float[Array, "examples"], Float[Array, "examples"]]:
    """The first k with F(k) ≥ (1 − level)/2, and the first with F(k) ≥ (1 + level)/2, where they can be counted to."""
    reach = _reach(jnp.exp(log_rates))

    def of_one(log_rates: Float[Array, "draws"], last: Float[Array, ""]) -> tuple[Array, Array]:
        rates = jnp.exp(log_rates)

        def add(state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
            k, total, low, high = state
            reached = total + _mixture_mass(k, log_rates, rates)
            return k + 1, reached, low + (reached < (1 - level) / 2), high + (reached < (1 + level) / 2)

        _, _, low, high = jax.lax.while_loop(lambda state: state[0] <= last, add, (jnp.zeros_like(last),) * 4)
        return low, high

    low, high = mixture.by_row(of_one, log_rates, jnp.where(reach <= most, reach, -1))
    return low, high


@jax.jit
def _far_interval(
    rates: Float[Array, "examples draws"], level: Any
) -> tuple[Float[Array, "examples"], Float[Array, "examples"]]:
    """The same with Gaussians in the place of Poisson laws."""
    low, high = mixture.interval(rates, jnp.sqrt(rates), level)
    return jnp.maximum(jnp.ceil(low - 0.5), 0), jnp.maximum(jnp.ceil(high - 0.5), 0)


def _spreads(rates: Float[Array, "examples draws"]) -> tuple[Float[Array, "examples"], Float[Array, "examples"]]:
    """Standard deviations: of counts with a known rate, and of what is not known of the rate."""
    return jnp.sqrt(rates.mean(1)), rates.std(1)
