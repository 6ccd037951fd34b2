"""Predict a number with honest intervals: six clinics of unequal size learn one linear model and its noise.

scikit-learn's diabetes table; nothing is chosen by the test rows, which only judge at the end.

    python examples/regression.py
"""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

import consilience as cs

table = load_diabetes(scaled=False)
x, x_test, y, y_test = train_test_split(table.data, table.target, test_size=142, random_state=0)
centre, scale = x.mean(0), x.std(0)  # the same for everybody
x, x_test = (x - centre) / scale, (x_test - centre) / scale

sizes = {"north": 5, "east": 15, "south": 30, "west": 50, "coast": 80, "centre": 120}
rows = dict(zip(sizes, np.split(np.arange(len(y)), np.cumsum(list(sizes.values()))[:-1]), strict=True))
shares = {name: (x[own], y[own]) for name, own in rows.items()}

# Numbers are predicted with Gaussian noise; none is named here, so it is learnt.
fit = cs.learn(cs.mlp((10,), 1, hidden=()), shares, cs.ring(6), alone=True, test=(x_test, y_test), progress=False)

print(f"{'agent':>8} rows   RMSE  90 % interval covers   RMSE alone")
for name, size in sizes.items():
    told, alone = (fit.predict(x_test, name, level=0.9, arm=arm) for arm in ("together", "alone"))
    error, error_alone = (np.sqrt(np.mean((each.prediction - y_test) ** 2)) for each in (told, alone))
    covered = np.mean((told.low <= y_test) & (y_test <= told.high))
    print(f"{name:>8} {size:4} {error:6.1f} {covered:21.1%} {error_alone:12.1f}")
