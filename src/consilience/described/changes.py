"""How a network changes from round to round: clocks, gossip, loss, agents that come and go, recorded turns."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from consilience.described.fields import Described, naming
from consilience.errors import InputError
from consilience.network import (
    Asynchronous,
    Churn,
    Fixed,
    Gossip,
    Lossy,
    Network,
    Presence,
    Replay,
    Schedule,
    read_turns,
)
from consilience.runs.folder import check_beside
from consilience.streams import WORD, stream


class Clocks(Described):
    """Agents that do not wait: how long each one's round takes, how long a belief travels, how old it may get."""

    durations: list[Annotated[float, Field(gt=0)]] | None = Field(None, min_length=1, description="one for each agent")
    spread: float = Field(0.0, ge=0, description="else log-normal around 1 with this sd of the logarithm")
    delay: float = Field(0.0, ge=0, description="of every message between two agents")
    staleness: float | None = Field(None, ge=0, description="age beyond which a belief is not pooled; default: any age")
    tick: float | None = Field(None, gt=0, description="how often clocks are read [default: the shortest duration]")
    wait: bool = Field(False, description="everybody waits for the slowest: synchronous, on the same clock")

    def build(self, network: Network, seed: int, presence: Presence | None) -> Schedule:
        """The schedule; the fastest agent's round takes 1 where durations are drawn."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            drawn = np.exp(self.spread * stream("durations", seed).standard_normal(network.agents))
            durations = np.array(self.durations) if self.durations is not None else drawn / drawn.min()
        if not np.isfinite(durations).all():
            raise InputError(f"spread: is too large, no clock is that slow, got {self.spread:g}")
        tick = float(durations.min()) if self.tick is None else self.tick
        if self.wait:
            durations = np.full_like(durations, durations.max())
        staleness = np.inf if self.staleness is None else self.staleness
        return Asynchronous(network, durations, self.delay, staleness, tick, presence)


class Changes(Described):
    """How a network changes from round to round. What is not said stays as it is; weight that is lost returns."""

    gossip: Literal["edge", "matching"] | None = Field(None, description="one random edge, or a matching, a round")
    clocks: Clocks | None = Field(None, description="agents with their own clocks")
    up: float | None = Field(None, ge=1, description="rounds an agent stays, on average, before it leaves")
    down: float | None = Field(None, ge=1, description="rounds it stays away, on average")
    loss: float = Field(0.0, ge=0, lt=1, description="probability that a message is lost")
    replay: Path | None = naming(
        "file", None, description="recorded turns, played again in the place of all other changes"
    )
    seed: int = Field(0, ge=0, lt=WORD)

    def build(self, network: Network) -> Schedule:
        """The schedule over a network."""
        self.check()
        if self.replay is not None:
            check_beside(self.replay)
            return Replay(network.agents, read_turns(self.replay))
        schedule: Schedule = Fixed(network)
        if self.gossip:
            schedule = Gossip(network, self.gossip == "matching", self.seed)
        if self.clocks:
            presence = None
            if self.up is not None and self.down is not None:
                presence = Presence(network.agents, self.up, self.down, self.seed)
            schedule = self.clocks.build(network, self.seed, presence)
        else:
            schedule = self.churning(schedule)
        return self.losing(schedule)

    def check(self) -> None:
        """Refuse changes that do not go together."""
        if self.gossip and self.clocks:
            raise InputError("changes: gossip and clocks exclude each other")
        if (self.up is None) != (self.down is None):
            raise InputError("changes: up and down go together")

    def churning(self, schedule: Schedule) -> Schedule:
        """The schedule whose agents come and go, where they do."""
        if self.up is None or self.down is None:
            return schedule
        return Churn(schedule, self.up, self.down, self.seed)

    def losing(self, schedule: Schedule) -> Schedule:
        """The schedule whose messages are lost, where they are."""
        return Lossy(schedule, self.loss, self.seed) if self.loss else schedule
