"""Exact Bayes on a finite set of hypotheses."""

from __future__ import annotations

from collections.abc import Callable

from jaxtyping import Array, Float

from consilience.agent import Agent, Batch, Learner, streaming
from consilience.beliefs import Categorical
from consilience.consensus.pooling import pooling


def exact(prior: Categorical, log_likelihood: Callable[[Batch], Float[Array, "k"]]) -> Agent:
    """An agent of the paper that applies Bayes' rule exactly: b(θ) ∝ ℓ(batch | θ) q(θ) (eq. 2), without projection.

    `log_likelihood(batch)` gives log ℓ(batch | θ) for each of the k hypotheses.

    >>> import jax, jax.numpy as jnp
    >>> fair, bent = jnp.array([0.5, 0.5]), jnp.array([0.1, 0.9])
    >>> coin = exact(Categorical.uniform(2), lambda side: jnp.log(jnp.stack([fair[side], bent[side]])))
    >>> key = jax.random.key(0)
    >>> belief, _ = coin.learn(key, coin.init(key), 1)
    >>> [round(float(p), 4) for p in belief.moments()]
    [0.3571, 0.6429]
    """
    return pooling(exact_learner(prior, log_likelihood))


def exact_learner(prior: Categorical, log_likelihood: Callable[[Batch], Float[Array, "k"]]) -> Learner:
    """Exact Bayes, for any consensus; every batch is new evidence."""

    def update(q: Categorical, batch: Batch) -> Categorical:
        # Normalising keeps the weights near zero, so that millions of rounds lose no digits.
        return Categorical(q.log_weights + log_likelihood(batch)).normalised()

    return streaming(prior, update)
