"""How near every agent comes to the analysis of all data in one place, by rule.

    python benchmarks/evidence.py [--json] [--rounds 60]

Logistic regression on 569 rows and 30 columns (breast cancer, standardised), six agents with 3 to 214 rows on a
directed ring, 30 % of messages lost, prior N(0, 1), float64. *Off*: the largest distance of an agent's mean from the
mode of all data, in standard deviations of that analysis. *Sd*: an agent's standard deviations over those of that
analysis, smallest and largest of any coefficient and agent.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np

RULES: dict[str, dict[str, Any]] = {
    "laplace, sites": {"learner": {"kind": "laplace"}, "consensus": {"kind": "sites"}},
    "laplace, tracking": {"learner": {"kind": "laplace"}, "consensus": {"kind": "tracking"}},
    "laplace, pooled by trust": {"learner": {"kind": "laplace"}},
    "laplace, each alone": {"learner": {"kind": "laplace"}, "consensus": {"kind": "sites"}, "alone": True},
    "variational, pooled by trust (the paper)": {},
}


def pooled_analysis(x: Any, y: Any) -> tuple[Any, Any]:
    """Mode and covariance by Newton's method on all rows."""
    X, w = np.concatenate([np.ones((len(x), 1)), x], axis=1), np.zeros(x.shape[1] + 1)
    for _ in range(50):
        p = 1 / (1 + np.exp(-X @ w))
        H = X.T @ (X * (p * (1 - p))[:, None]) + np.eye(len(w))
        w = w + np.linalg.solve(H, X.T @ (y - p) - w)
    return w, np.linalg.inv(H)


def main() -> None:
    """Learn by every rule and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    from sklearn.datasets import load_breast_cancer

    import consilience as cs
    from consilience.described.changes import Changes
    from consilience.described.networks import Ring

    x, y = load_breast_cancer(return_X_y=True)
    x = ((x - x.mean(0)) / x.std(0)).astype(np.float32).astype(np.float64)
    parts = np.split(np.random.default_rng(0).permutation(len(y)), [3, 15, 55, 155, 355])
    shares = [(x[own], y[own]) for own in parts]
    mode, covariance = pooled_analysis(x, y)
    sd = np.sqrt(np.diagonal(covariance))
    network = Ring(agents=6, directed=True, changes=Changes(loss=0.3))
    rows = []
    for name, rule in RULES.items():
        fit = cs.learn(
            cs.mlp((30,), 1, hidden=()), shares, network, rounds=options.rounds, likelihood="bernoulli",
            precision="float64", test=(x, y), progress=False, **rule,
        )  # fmt: skip
        beliefs = [fit.belief(agent, arm=fit.arms[-1]) for agent in range(6)]
        means, sds = (
            np.stack([np.concatenate([tree[-1]["c"], tree[-1]["w"][0]]) for tree in trees])
            for trees in ([b.mean for b in beliefs], [b.sd for b in beliefs])
        )
        off = float((np.abs(means - mode) / sd).max())
        rows.append({"rule": name, "off": off, "sd_least": float((sds / sd).min()), "sd_most": float((sds / sd).max())})
    if options.json:
        print(json.dumps({"rounds": options.rounds, "rules": rows}, indent=2))
        return
    for row in rows:
        print(f"{row['rule']:>42}  off {row['off']:8.2g} sd   sd {row['sd_least']:.3f} to {row['sd_most']:.3f} × exact")


if __name__ == "__main__":
    main()
