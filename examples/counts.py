"""Predict counts: six shops of unequal size learn what brings customers, each from its own days only.

The table is made up, so the truth is known: a rate ratio is what a column multiplies the visits of a day by.

    python examples/counts.py
"""

import numpy as np

import consilience as cs

TRUTH = {"sunny": 1.5, "discount": 2.0, "rain": 0.6, "weekday": 1.0}  # rate ratios
rng = np.random.default_rng(0)
sizes = [5, 20, 50, 100, 200, 400]
x = rng.integers(0, 2, (sum(sizes), len(TRUTH))).astype(float)
y = rng.poisson(3.0 * np.exp(x @ np.log(list(TRUTH.values()))))
ends = np.cumsum(sizes)
shares = [(x[end - size : end], y[end - size : end]) for size, end in zip(sizes, ends, strict=True)]

fit = cs.learn(cs.mlp((4,), 1, hidden=()), shares, cs.ring(6), likelihood="poisson", alone=True, progress=False)


def ratios(agent: int, arm: str) -> np.ndarray:
    """What an agent holds each column to multiply visits by: e to its weight."""
    (weights,) = (layer["w"][0] for layer in fit.belief(agent, arm=arm).mean if layer)
    return np.asarray(np.exp(weights))


print("The shop with 5 days of its own; rate ratios")
print(f"{'column':>9}  truth  together  alone")
found = zip(TRUTH.items(), ratios(0, "together"), ratios(0, "alone"), strict=True)
for (column, truth), together, alone in found:
    print(f"{column:>9} {truth:6.2f} {together:9.2f} {alone:6.2f}")
