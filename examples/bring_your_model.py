"""Bring a model from Flax or Equinox as it is: nine agents learn it over a star, and only beliefs travel.

Embedded digits; the hub holds 2-9, eight edge agents share 0 and 1. Needs `pip install flax equinox`.

    python examples/bring_your_model.py
"""

import equinox as eqx
import flax.linen as nn
import jax
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import consilience as cs

digits = load_digits()
x, x_test, y, y_test = train_test_split(digits.data / 16, digits.target, test_size=360, random_state=0)
hub, rest = y > 1, (y <= 1).nonzero()[0]
shares = {"hub": (x[hub], y[hub])} | {f"edge {k}": (x[rest[k::8]], y[rest[k::8]]) for k in range(8)}

models = {
    "Flax": nn.Sequential([nn.Dense(32), nn.relu, nn.Dense(10)]),
    "Equinox": eqx.nn.MLP(64, 10, width_size=32, depth=1, key=jax.random.key(0)),
}
for name, model in models.items():
    fit = cs.learn(model, shares, cs.star(8), rounds=30, test=(x_test, y_test), progress=False)
    right = [(fit.predict(x_test, agent).prediction == y_test).mean() for agent in fit.agents]
    print(f"{name:>8}: {sum(right) / len(right):.1%} average accuracy on all ten digits")
