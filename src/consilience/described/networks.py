"""Typed descriptions of networks, one for each kind."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from consilience.described.changes import Changes
from consilience.described.fields import Described, naming
from consilience.errors import InputError
from consilience.machine import memory
from consilience.network import (
    Network,
    RotatingStar,
    Schedule,
    complete,
    erdos_renyi,
    from_matrix,
    grid,
    lazy,
    path,
    read_network,
    ring,
    star,
    watts_strogatz,
)
from consilience.network.weights import Rule
from consilience.streams import WORD

MOST = 2**31  # agents are numbered in 32 bits


class AnyNetwork(Described):
    """What every network description has."""

    an_edge: ClassVar[int] = 100  # bytes while it is built, measured

    changes: Changes | None = Field(None, description="how it changes from round to round")
    laziness: float = Field(0.0, ge=0, lt=1, description="weight every agent keeps for itself before listening")

    def plain(self) -> Network:
        """The network before laziness."""
        raise NotImplementedError

    def expected_edges(self) -> float:
        """How many entries W will have, about; zero where it is already there."""
        return 0.0

    def build(self) -> Network:
        """The network that this describes (not yet checked against assumption 1)."""
        edges = self.expected_edges()
        memory.require(self.an_edge * edges, f"network: about {edges:.2g} links")
        network = self.plain()
        if not self.laziness:
            return network
        return Network(lazy(network.W, self.laziness), f"lazy {network.name}", network.names)

    def fixed(self) -> Network:
        """The network, for what is only meant for one that stays the same."""
        if isinstance(self.schedule(), Network):
            return self.build()
        raise InputError("network: must be the same in every round here; image experiments take networks that change")

    def schedule(self) -> Network | Schedule:
        """The network, or how it changes."""
        return self.build() if self.changes is None else self.changes.build(self.build())


class Star(AnyNetwork):
    """A hub and its edge agents."""

    kind: Literal["star"] = "star"
    edges: int = Field(8, ge=1, lt=MOST, description="number of edge agents")
    trust: float = Field(0.5, gt=0, lt=1, description="weight a that every edge agent puts on the hub")

    def expected_edges(self) -> float:
        """Each edge agent's two, and the hub's."""
        return 3.0 * self.edges + 1

    def plain(self) -> Network:
        """The star."""
        return star(self.edges, self.trust)


class RotatingStarNetwork(AnyNetwork):
    """The paper's time-varying star: a few of the edge agents at once, in turn; `build` is the mean of a cycle."""

    kind: Literal["rotating-star"] = "rotating-star"
    edges: int = Field(25, ge=1, lt=MOST, description="N: number of edge agents")
    at_once: int = Field(5, ge=1, lt=MOST, description="N_0: how many of them are connected in a round")
    trust: float = Field(0.5, gt=0, lt=1, description="weight a that an edge agent puts on the hub")

    def turns(self) -> RotatingStar:
        """The cycle."""
        return RotatingStar(self.edges, self.at_once, self.trust)

    def expected_edges(self) -> float:
        """Of all matrices of a cycle."""
        return float(self.edges) * (self.edges + 2 * self.at_once) / self.at_once

    def plain(self) -> Network:
        """The mean of the cycle's W_t."""
        turns = self.turns()
        matrices = [turns.turn(number).matrix(turns.agents) for number in range(1, turns.repeats + 1)]
        return Network(sum(matrices[1:], matrices[0]) / turns.repeats, f"mean of a star, {self.at_once} at once")

    def schedule(self) -> Network | Schedule:
        """The cycle; messages may be lost in it and agents come and go."""
        changes = self.changes
        if self.laziness:
            raise InputError("laziness: a rotating star has its own turns; trust says how much an edge keeps")
        if changes is None:
            return self.turns()
        if changes.gossip or changes.clocks or changes.replay:
            raise InputError("changes: a rotating star has its own turns; it takes loss, up and down")
        changes.check()
        return changes.losing(changes.churning(self.turns()))


class Grid(AnyNetwork):
    """A rectangle of agents."""

    kind: Literal["grid"] = "grid"
    rows: int = Field(3, ge=1, lt=MOST)
    columns: int = Field(3, ge=1, lt=MOST)
    weights: Rule = "uniform"

    def expected_edges(self) -> float:
        """To four sides, and its own."""
        return 5.0 * self.rows * self.columns

    def plain(self) -> Network:
        """The grid."""
        return grid(self.rows, self.columns, self.weights)


class Ring(AnyNetwork):
    """A circle of agents."""

    kind: Literal["ring"] = "ring"
    agents: int = Field(9, ge=1, lt=MOST)
    directed: bool = Field(False, description="hear only the agent before")
    weights: Rule = "uniform"

    def expected_edges(self) -> float:
        """To both sides, and its own."""
        return 3.0 * self.agents

    def plain(self) -> Network:
        """The ring."""
        return ring(self.agents, self.weights, self.directed)


class Complete(AnyNetwork):
    """Everybody hears everybody."""

    kind: Literal["complete"] = "complete"
    agents: int = Field(9, ge=1, le=20_000)
    weights: Rule = "uniform"

    def expected_edges(self) -> float:
        """Everybody's to everybody."""
        return float(self.agents) ** 2

    def plain(self) -> Network:
        """The complete network."""
        return complete(self.agents, self.weights)


class PathGraph(AnyNetwork):
    """A line of agents."""

    kind: Literal["path"] = "path"
    agents: int = Field(9, ge=1, lt=MOST)
    weights: Rule = "uniform"

    def expected_edges(self) -> float:
        """To both sides, and its own."""
        return 3.0 * self.agents

    def plain(self) -> Network:
        """The path."""
        return path(self.agents, self.weights)


class ErdosRenyi(AnyNetwork):
    """Independent links."""

    an_edge: ClassVar[int] = 300

    kind: Literal["erdos-renyi"] = "erdos-renyi"
    agents: int = Field(9, ge=1, lt=MOST)
    probability: float = Field(0.5, ge=0, le=1)
    seed: int = Field(0, ge=0, lt=WORD)
    weights: Rule = "uniform"

    def expected_edges(self) -> float:
        """Each of the others' with its probability, and its own."""
        return self.agents * (1 + self.probability * (self.agents - 1.0))

    def plain(self) -> Network:
        """The random network."""
        return erdos_renyi(self.agents, self.probability, self.seed, self.weights)


class WattsStrogatz(AnyNetwork):
    """A small world."""

    an_edge: ClassVar[int] = 300

    kind: Literal["watts-strogatz"] = "watts-strogatz"
    agents: int = Field(9, ge=3, lt=MOST)
    neighbours: int = Field(4, ge=2, lt=MOST)
    probability: float = Field(0.1, ge=0, le=1)
    seed: int = Field(0, ge=0, lt=WORD)
    weights: Rule = "uniform"

    def expected_edges(self) -> float:
        """To its neighbours, and its own."""
        return self.agents * (1.0 + self.neighbours)

    def plain(self) -> Network:
        """The small world."""
        if self.neighbours >= self.agents:
            raise InputError(f"neighbours: must be below the number of agents ({self.agents}), got {self.neighbours}")
        return watts_strogatz(self.agents, self.neighbours, self.probability, self.seed, self.weights)


class Matrix(AnyNetwork):
    """W as it is given: its rows, or a CSV or TOML file."""

    kind: Literal["matrix"] = "matrix"
    W: list[list[float]] | None = None
    file: Path | None = naming("file", None)

    def pinned(self) -> Matrix:
        """With the rows that the file holds."""
        rows = self.W if self.file is None else read_network(self.file).W.toarray().tolist()
        return super(Matrix, self.model_copy(update={"W": rows, "file": None})).pinned()

    def plain(self) -> Network:
        """The network with this W."""
        if (self.W is None) == (self.file is None):
            raise InputError("network: a matrix network takes either W or file")
        return from_matrix(self.W) if self.W is not None else read_network(str(self.file))


AnyKind = Star | RotatingStarNetwork | Grid | Ring | Complete | PathGraph | ErdosRenyi | WattsStrogatz | Matrix
NetworkConfig = Annotated[AnyKind, Field(discriminator="kind")]
NETWORKS: dict[str, type[AnyNetwork]] = {
    "star": Star,
    "rotating-star": RotatingStarNetwork,
    "grid": Grid,
    "ring": Ring,
    "complete": Complete,
    "path": PathGraph,
    "erdos-renyi": ErdosRenyi,
    "watts-strogatz": WattsStrogatz,
    "matrix": Matrix,
}
