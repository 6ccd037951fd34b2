"""The paper's consensus: beliefs are sent, and pooled by a weighted geometric mean (eq. 4)."""

from __future__ import annotations

from consilience.agent import Agent, Inbox, Learner, Own


def pooling(learner: Learner) -> Agent:
    """An agent that publishes its belief and adopts what it pools as the prior of its next round.

    q_i ∝ exp(Σ_j W_ij log b_j). Evidence counts by centrality, and where data is reused, again in every round.
    """

    def pool(own: Own, inbox: Inbox) -> Own:
        return learner.start(own, inbox.pooled, inbox.pooled)

    return Agent(learner.init, learner.fit, learner.belief, pool)
