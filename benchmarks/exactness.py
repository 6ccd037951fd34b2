"""How near sites come to variational inference with all data in one place, and whether they stay calibrated.

    python benchmarks/exactness.py [--json] [--rounds 100]

MNIST shrunk to 14 × 14 pixels (means of 2 × 2), 5,000 training images, softmax regression (1,970 weights), prior
N(0, 1/10) on each, temperature 1, five agents with two digits each: {0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}.

*−ELBO*: E_q[−log ℓ of all 5,000 labels] + KL(q ‖ prior), of the agent for whom it is largest, in nats; outputs of such
a model are Gaussian, and drawn 200 times, the same draws for all. *Above*: over the lowest found with all data in one
agent, by Adam on means and sds and by the natural gradient. *NLL*, *ECE*: on the 10,000 test images, mean of the
agents. After R rounds and three times as many. Nothing was chosen by the test images.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np

PRECISION, IMAGES, DRAWS = 10.0, 5_000, 200
DIGITS = ((0, 1), (2, 3), (4, 5), (6, 7), (8, 9))
PRIOR = {"prior_sd": PRECISION**-0.5}
# Newton's means have the cavity as their prior: where they rest, all agents' sites make up the optimum of all data.
NATURAL = {"kind": "natural", "mean": "newton", "learning_rate": 0.05, "decay": 0.98, "curvature_decay": 0.999}
ADAM = {"kind": "variational", "estimator": "outputs", "learning_rate": 0.02, "initial_sd": 0.2}
SITES = {"kind": "sites", "damping": 1 / len(DIGITS)}


def shrunk(images: Any) -> Any:
    """Means of 2 × 2 pixels, from 0 to 1, in a row."""
    means = images.reshape(-1, 14, 2, 14, 2).astype(np.float32).mean((2, 4)) / 255
    return means.reshape(len(images), 14 * 14)


class Problem:
    """The images, the model, and what a run comes to on them."""

    def __init__(self) -> None:
        import jax
        import jax.numpy as jnp

        import consilience as cs
        from consilience.data import load_dataset

        mnist = load_dataset("mnist")
        chosen = np.sort(np.random.default_rng(0).permutation(len(mnist.labels))[:IMAGES])
        self.x, self.y = shrunk(mnist.inputs[chosen]), mnist.labels[chosen]
        self.test = shrunk(mnist.test_inputs), mnist.test_labels
        made = cs.mlp((14 * 14,), 10, hidden=())
        self.model = made._replace(init=lambda key: jax.tree.map(jnp.zeros_like, made.init(key)), described=None)
        self.five = [(self.x[own], self.y[own]) for own in (np.isin(self.y, digits) for digits in DIGITS)]

        def negative_elbo(mean: Any, sd: Any) -> Any:
            variance = jax.tree.map(jnp.square, sd)

            def draw(key: Any) -> Any:
                assert made.apply_gaussian is not None
                outputs = jax.nn.log_softmax(made.apply_gaussian(mean, variance, jnp.asarray(self.x), key))
                return -jnp.take_along_axis(outputs, jnp.asarray(self.y)[:, None], axis=1).sum()

            def kl(m: Any, s: Any) -> Any:
                return 0.5 * jnp.sum(PRECISION * (s * s + m * m) - 1 - jnp.log(PRECISION * s * s))

            expected = jax.lax.map(draw, jax.random.split(jax.random.key(0), DRAWS)).mean()
            return expected + sum(jax.tree.leaves(jax.tree.map(kl, mean, sd)))

        self._negative_elbo = jax.jit(negative_elbo)

    def play(self, what: str, shares: Any, network: Any, rounds: int, **rule: Any) -> dict[str, Any]:
        """Learn, and measure every agent's belief."""
        import consilience as cs

        began = time.perf_counter()
        fit = cs.learn(
            self.model, shares, network, rounds=rounds, record_every=rounds, test=self.test, samples=32,
            progress=False, **rule,
        )  # fmt: skip
        beliefs = [fit.belief(agent) for agent in range(len(shares))]
        record, arm = fit.record, fit.arms[0]
        return {
            "what": what,
            "rounds": rounds,
            "negative_elbo": max(float(self._negative_elbo(b.mean, b.sd)) for b in beliefs),
            "test_nll": float(record.select(arm, "pooled_test_nll")[-1].mean()),
            "test_ece": float(record.select(arm, "pooled_test_ece")[-1].mean()),
            "test_accuracy": float(record.select(arm, "pooled_test_accuracy")[-1].mean()),
            "mean_sd": float(record.select(arm, "mean_sd")[-1].mean()),
            "seconds": time.perf_counter() - began,
        }


def main() -> None:
    """Learn all data in one place and by every rule, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args()
    import consilience as cs

    problem, rounds = Problem(), (options.rounds, 3 * options.rounds)
    everything = [(problem.x, problem.y)]
    rows = [
        problem.play(what, everything, cs.complete(1), options.rounds, learner=PRIOR | learner, consensus=consensus)
        for what, learner, consensus in (
            ("all data in one agent, Adam", ADAM, {"kind": "sites"}),
            ("all data in one agent, natural gradient", NATURAL, SITES),
        )
    ]
    least = min(row["negative_elbo"] for row in rows)
    networks = {"ring": cs.ring(len(DIGITS)), "complete": cs.complete(len(DIGITS))}
    for name, network in networks.items():
        for rule, described in (
            ("sites", {"learner": PRIOR | NATURAL, "consensus": SITES}),
            ("the paper's rule", {"learner": PRIOR}),
        ):
            rows += [problem.play(f"{rule}, {name}", problem.five, network, each, **described) for each in rounds]
    for row in rows:
        row["above"] = row["negative_elbo"] / least - 1
    if options.json:
        print(json.dumps({"rounds": options.rounds, "images": IMAGES, "runs": rows}, indent=2))
        return
    for row in rows:
        print(
            f"{row['what']:>40}  {row['rounds']:4d} rounds  −ELBO {row['negative_elbo']:7.1f}"
            f"  above {row['above']:7.2%}  NLL {row['test_nll']:.4f}  ECE {row['test_ece']:.4f}"
            f"  accuracy {row['test_accuracy']:.2%}  mean sd {row['mean_sd']:.4f}  {row['seconds']:4.0f} s"
        )


if __name__ == "__main__":
    main()
