"""Directed graphs whose messages are lost and late, and whose agents come and go."""

import numpy as np

from consilience.network import Asynchronous, Churn, Fixed, Lossy, from_matrix

TROUBLES = ("loss", "clocks", "churn")


def directed(rng, agents):
    """A strongly connected directed graph, unbalanced, with weights of no meaning to those who count evidence."""
    W = np.eye(agents) + np.roll(np.eye(agents), 1, axis=1) + (rng.random((agents, agents)) < 1.5 / agents)
    W = W * rng.uniform(0.2, 1, W.shape)
    return from_matrix(W / W.sum(1, keepdims=True))


def troubled(rng, network, kind):
    if kind == "loss":
        return Lossy(Fixed(network), 0.3, int(rng.integers(99)))
    if kind == "churn":
        return Churn(Lossy(Fixed(network), 0.3), 6, 3, int(rng.integers(99)))
    durations = rng.choice([1, 1.5, 2.3], network.agents)
    return Lossy(Asynchronous(network, durations, delay=0.8, tick=1.0), 0.3, int(rng.integers(99)))
