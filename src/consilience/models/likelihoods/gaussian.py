"""Real numbers: a network's output is the mean of a Gaussian whose noise is known or learnt."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from consilience.errors import InputError, brief
from consilience.models.likelihoods import mixture
from consilience.models.likelihoods.draws import draws_of
from consilience.models.likelihoods.likelihood import Apply, Told, require_level, require_positive
from consilience.models.networks import Model, Parameters
from consilience.models.scores import average


class GaussianDraws(NamedTuple):
    """f_k and σ_k of every draw θ_k, in units of `scale`; known noise is one column."""

    means: Float[Array, "examples draws"]
    sds: Float[Array, "examples #draws"]


@dataclass(frozen=True)
class Gaussian:
    """y ~ N(centre + scale · f, (scale · σ)²), with y as it is in the data.

    `noise` is scale · σ, where it is known; None learns σ, one for all examples, as a parameter beside the network's.
    `centre` and `scale` are what the network need not learn: say, the mean and the standard deviation of all targets.

    >>> likelihood = Gaussian(noise=2.0, centre=10.0, scale=4.0)
    >>> likelihood.log_density(jnp.array([[0.5]]), jnp.array([12.0])).round(4).tolist()  # log N(12; 12, 2²)
    [-1.6121]
    >>> told = likelihood.told(GaussianDraws(jnp.array([[0.0, 1.0]]), jnp.array([[0.5]])))
    >>> told["prediction"].item(), told["aleatoric"].item(), told["epistemic"].item()
    (12.0, 2.0, 2.0)
    """

    noise: float | None = None
    centre: float = 0.0
    scale: float = 1.0
    name: ClassVar[str] = "gaussian"
    outputs: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.noise is not None:
            require_positive("noise", self.noise)
        require_positive("scale", self.scale)
        if not math.isfinite(self.centre):
            raise InputError(f"centre: must be finite, got {brief(self.centre)}")

    @property
    def concave(self) -> bool:
        """In the mean; not in the mean and log σ together."""
        return self.noise is not None

    def model(self, network: Model) -> Model:
        """The network, or with log σ beside it where the noise is learnt: outputs are then f and log σ."""
        return network if self.noise is not None else with_noise(network)

    def log_density(
        self,
        outputs: Float[Array, "batch outputs"],
        targets: Float[Array, "batch"] | Int[Array, "batch"],
    ) -> Float[Array, "batch"]:
        """log N(y; centre + scale · f, (scale · σ)²)."""
        mean, log_sd = self._mean_and_log_sd(outputs)
        return mixture.log_normal(self._scaled(targets), mean, log_sd) - math.log(self.scale)

    def above(
        self,
        outputs: Float[Array, "batch outputs"],
        targets: Float[Array, "batch"] | Int[Array, "batch"],
    ) -> Float[Array, "batch outputs outputs"]:
        """A curvature of −log ℓ in mean and log σ with which steps of both do not diverge.

        That of the mean as it is, 1/σ²; of log σ twice the squared residual in units of σ, and no less than what is
        expected of that, 2; nothing between them, as is expected.
        """
        mean, log_sd = self._mean_and_log_sd(outputs)
        squared = ((self._scaled(targets) - mean) * jnp.exp(-log_sd)) ** 2
        of_mean = jnp.exp(-2 * log_sd) * jnp.ones_like(mean)
        if self.concave:
            return of_mean[:, None, None]
        return jax.vmap(jnp.diag)(jnp.stack([of_mean, 2 * jnp.maximum(squared, 1)], axis=1))

    def predictive(self, apply: Apply, belief: Any, inputs: Array, key: PRNGKeyArray, samples: int) -> GaussianDraws:
        """An equal mixture of the Gaussians of all draws θ_k; the draws are kept."""
        mean, log_sd = self._mean_and_log_sd(draws_of(apply, belief, inputs, key, samples))
        return GaussianDraws(mean, jnp.exp(log_sd) * jnp.ones_like(mean[:, :1]))

    def scores(
        self,
        predicted: GaussianDraws,
        targets: Float[Array, "examples"] | Int[Array, "examples"],
        weights: Float[Array, "examples"] | None = None,
    ) -> dict[str, Float[Array, ""]]:
        """RMSE, NLL, CRPS, coverage of central intervals, and standard deviations: aleatoric and epistemic.

        NLL, CRPS and coverage are those of the mixture, without further approximation.
        """
        y, (means, sds) = self._scaled(targets), predicted
        below = mixture.by_row(mixture.cdf, y, means, sds)
        inside = {level: jnp.abs(below - 0.5) <= level / 200 for level in (50, 90)}
        aleatoric, epistemic = _spreads(predicted)
        return {
            "rmse": self.scale * jnp.sqrt(average((y - means.mean(1)) ** 2, weights)),
            "nll": math.log(self.scale) - average(mixture.by_row(mixture.log_density, y, means, sds), weights),
            "crps": self.scale * average(mixture.by_row(mixture.crps, y, means, sds), weights),
            **{f"coverage_{level}": average(inside[level].astype(y.dtype), weights) for level in inside},
            "aleatoric": self.scale * average(aleatoric, weights),
            "epistemic": self.scale * average(epistemic, weights),
        }

    def told(self, predicted: GaussianDraws, level: float = 0.9) -> Told:
        """Mean, standard deviation (and its two parts) and the ends of the central interval of this level."""
        require_level(level)
        drawn = GaussianDraws(*map(jnp.asarray, predicted))
        aleatoric, epistemic = (self.scale * np.asarray(part, np.float64) for part in _spreads(drawn))
        mean, low, high = (
            self.centre + self.scale * np.asarray(value, np.float64)
            for value in (drawn.means.mean(1), *_interval(*drawn, level))
        )
        sd = np.hypot(aleatoric, epistemic)
        return {
            "prediction": mean, "sd": sd, "low": low, "high": high, "aleatoric": aleatoric, "epistemic": epistemic,
        }  # fmt: skip

    def _scaled(self, targets: Array) -> Float[Array, "examples"]:
        return (targets - self.centre) / self.scale

    def _mean_and_log_sd(self, outputs: Float[Array, "*batch outputs"]) -> tuple[Array, Array]:
        """f and log σ, which is one number where it is known."""
        known = None if self.noise is None else jnp.asarray(math.log(self.noise / self.scale), outputs.dtype)
        return outputs[..., 0], outputs[..., 1] if known is None else known


def with_noise(network: Model) -> Model:
    """The network with one more parameter, log σ, which starts at 0 and is one more output for every example.

    >>> from consilience.models import mlp
    >>> model = with_noise(mlp((3,), 1, hidden=()))
    >>> model.apply(model.init(jax.random.key(0)), jnp.zeros((2, 3))).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    gaussian = network.apply_gaussian

    def init(key: PRNGKeyArray) -> Parameters:
        return {"network": network.init(key), "log_noise": jnp.zeros(())}

    def apply(parameters: Parameters, x: Array) -> Float[Array, "batch 2"]:
        return _beside(network.apply(parameters["network"], x), parameters["log_noise"])

    def apply_gaussian(
        means: Parameters, variances: Parameters, x: Array, key: PRNGKeyArray
    ) -> Float[Array, "batch 2"]:
        assert gaussian is not None
        of_network, own = jax.random.split(key)
        f = gaussian(means["network"], variances["network"], x, of_network)
        noise = jax.random.normal(own, f.shape[:1], f.dtype)
        return _beside(f, means["log_noise"] + jnp.sqrt(variances["log_noise"]) * noise)

    return Model(init, apply, None if gaussian is None else apply_gaussian)


def _beside(f: Float[Array, "batch 1"], log_sd: Float[Array, "..."]) -> Float[Array, "batch 2"]:
    return jnp.stack([f[:, 0], jnp.broadcast_to(log_sd, f.shape[:1])], axis=-1)


def _spreads(drawn: GaussianDraws) -> tuple[Float[Array, "examples"], Float[Array, "examples"]]:
    """Standard deviations: of the noise, and of what is not known of the mean."""
    return jnp.sqrt((drawn.sds**2).mean(1)), drawn.means.std(1)


_interval = jax.jit(mixture.interval)
