"""Bring a likelihood: Student's t shrugs off wild values that pull a Gaussian model away.

Four agents measure a line; one reading in ten is nonsense.

    python examples/own_likelihood.py
"""

from typing import Any

import numpy as np
from jax.scipy.stats import t

import consilience as cs

rng = np.random.default_rng(0)
x = rng.normal(size=(200, 2))
truth = x @ np.array([2.0, -1.0])
y = truth + 0.3 * rng.normal(size=200) + 30.0 * (rng.random(200) < 0.1)
shares = [(x[k::4], y[k::4]) for k in range(4)]

likelihoods: dict[str, Any] = {
    "Gaussian": cs.Gaussian(noise=0.3),
    "Student": cs.likelihood(lambda f, y: t.logpdf(y - f[:, 0], 3, scale=0.3), outputs=1, name="student"),
}
for name, likelihood in likelihoods.items():
    fit = cs.learn(cs.mlp((2,), 1, hidden=()), shares, cs.ring(4), likelihood=likelihood, progress=False)
    told = fit.predict(x, agent=2).columns
    line = told["prediction"] if name == "Gaussian" else told["mean_0"]  # a density alone tells of outputs
    print(f"{name:>9} likelihood: distance from the true line {np.sqrt(np.mean((line - truth) ** 2)):.2f}")
