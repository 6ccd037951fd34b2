"""Bring a networkx graph and a model; get the theory and a simulation of it, side by side.

Florentine families (a classic social network) guess whether a coin is fair. Only one of them sees it tossed. How fast
does everybody know, and does it matter who watches?

    python examples/bring_your_graph.py
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np

from consilience.beliefs import Categorical
from consilience.engines.arm import Arm, agent_key
from consilience.engines.simulate import Simulation
from consilience.learners import exact
from consilience.network import check, from_networkx
from consilience.theory import finite_information, lambda_max, rate, stationary

ROUNDS, SEEDS = 300, range(200)


def decay(watching: str) -> tuple[float, float]:
    """Predicted and measured decay of the wrong hypothesis, in nats a round, when one family watches the coin."""
    network = from_networkx(nx.florentine_families_graph(), name="Florence")
    check(network)
    fair, bent = [0.5, 0.5], [0.9, 0.1]
    tables = np.array([[fair, bent if name == watching else fair] for name in network.names])
    K = rate(stationary(network), finite_information(tables, truth=0), truth=0).K

    logs = jnp.log(jnp.array(tables))
    agent = exact(Categorical.uniform(2), lambda seen: logs[seen[0], :, seen[1]])
    arm = Arm(
        agent,
        draw=lambda data, key, family: (family, jax.random.bernoulli(agent_key(key, family)).astype(int)),
        hears=network,
        measure=lambda data, now, n, key: {"decay": -now.public.log_probabilities()[1] / n},
    )
    simulation = Simulation(arm, SEEDS)
    _, measured = simulation.play(1, [ROUNDS], [True], simulation.start())
    return K, float(measured["decay"].mean())


def main() -> None:
    """Print a line for each watcher."""
    network = from_networkx(nx.florentine_families_graph())
    print(f"{network.agents} families, gap {1 - lambda_max(network):.3f}")
    for family in ("Medici", "Pazzi"):
        predicted, measured = decay(family)
        print(f"{family:>8} watches: predicted {predicted:.4f} nats a round, measured {measured:.4f}")


if __name__ == "__main__":
    main()
