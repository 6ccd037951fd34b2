"""Whole peers in one process, over the transport's twin in memory: links, wire, roster and life, stepped by hand.

Only the sockets, the disk and what is learnt are stand-ins. Messages are lost and said again when they are old; frames
are late; links are cut and mended; peers are killed between any two steps and come back from what they saved.
"""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np
from peer_lives import PRIOR, Own, player_of, plus, snapshot
from people import STUDY, bundle, person

from consilience.engines.peers.keeping import Keeper, Standing
from consilience.engines.peers.links import laid
from consilience.engines.peers.mail import NO_MAIL, Kept
from consilience.engines.peers.membership import Asked
from consilience.engines.peers.node import Node
from consilience.engines.peers.player import ArmPlayer
from consilience.engines.peers.study import Study
from consilience.engines.peers.transport.memory import Faults as OfFrames
from consilience.engines.peers.transport.memory import Net
from consilience.engines.peers.wire.schema import Leaf, Schema

NAMES = ("north", "east", "south", "west", "hill", "lake", "wood")
STEP = 0.1  # seconds on everybody's clock
SELDOM = 4  # rounds


class KeptInMemory(Keeper):
    """A peer's folder as far as a life needs it; what was saved survives a kill, the rest does not."""

    def __init__(self):
        self.saved = self.before = None  # the last checkpoint, and the one that is kept besides
        self.heard, self.saves, self.passed_on = {}, 0, NO_MAIL

    def load(self, shapes):
        return self.saved

    def among(self, names):
        """Nobody asks."""

    def open(self):
        """Nothing to open."""

    def close(self):
        """Nothing to close."""

    def save(self, state, public, position, mail, incarnation, passed_on):
        kept = Kept({name: array.copy() for name, array in mail.arrays.items()}, copy.deepcopy(mail.known))
        self.before = self.saved
        self.saves += 1
        if self.saves % SELDOM == 0:  # what others say again is kept now and then
            self.passed_on = passed_on()
        self.saved = Standing(copy.copy(state), public, position, kept, incarnation, self.passed_on)
        self.heard = {
            number: row for number, row in self.heard.items() if number < position.round or not position.published
        }

    def played(self, number, filled, names, scores):
        self.heard[number] = dict(filled.weights)


class Toy(ArmPlayer):
    """The players of `peer_lives`, as a node asks for them."""

    def __init__(self, rule, me, agents):
        self._player, self.rule = player_of(rule, me, agents), rule

    def start(self):
        return self._player.start()

    def learn(self, state, number):
        return self._player.learn(state, number)

    def pool(self, state, inbox):
        return self._player.pool(state, inbox)

    def publish(self, state):
        return {**PRIOR, **({"agents": np.ones(1)} if self.rule == "tracking" else {})}

    def tree(self, arrays):
        return dict(arrays)

    def schema(self, wide=False):
        return Schema(tuple(Leaf(name, "float64", (1,)) for name in self.publish(None)))

    def measure(self, state, public, number):
        return {}

    def begin_sums(self, state):
        state = copy.copy(state)
        state.sums = {**state.site, "agents": np.ones(1)}
        return state


class Faults(NamedTuple):
    """How likely a message is lost, or said again when a newer one was; and the most steps that a frame is late."""

    loss: float = 0.0
    again: float = 0.0
    late: int = 0


class Unreliable(Node):
    """A peer whose messages suffer; a connection itself loses nothing and keeps its order, as TLS does."""

    def __init__(self, *given, faults, rng, **named):
        self._faults, self._rng, self._said = faults, rng, {}
        super().__init__(*given, **named)

    def send(self, neighbour, said):
        if self._rng.random() >= self._faults.loss:
            super().send(neighbour, said)
        if neighbour in self._said and self._rng.random() < self._faults.again:
            super().send(neighbour, self._said[neighbour])
        self._said[neighbour] = said


class Nodes:
    """Peers of a study on a ring, and the net between them."""

    def __init__(self, rule, agents, rounds, seed=0, faults=Faults(), patience=3.0, kind="sync", links=None):  # noqa: B008
        self.rule, self.agents, self.rounds = rule, agents, rounds
        policy = {"rounds": rounds, "patience": patience, "kind": kind}
        limits = {"most_precision": 1e12}
        study = Study.of({"name": "trial", "task": STUDY.task, "policy": policy, "limits": limits})
        self.bundle = bundle(*NAMES[:agents], study=study, links=links and laid(links, list(range(agents))))
        self.net, self.faults = Net(seed, OfFrames(delay=faults.late)), faults
        self.rng = np.random.default_rng(seed)
        self.keepers = [KeptInMemory() for _ in range(agents)]
        self.bundles, self.blocked = [self.bundle] * agents, [set() for _ in range(agents)]
        self.nodes, self.lives, self.due = [None] * agents, [None] * agents, [0.0] * agents
        self.ended = set()
        for me in range(agents):
            self.start(me)

    def id(self, me):
        return person(NAMES[me]).id

    @property
    def time(self):
        return self.net.time * STEP

    def start(self, me):
        """Begin, or come back after a kill."""
        if self.nodes[me] is not None:
            return

        def keep(newer):
            self.bundles[me] = newer

        node = Unreliable(
            person(NAMES[me]), self.bundles[me], lambda roster: Toy(self.rule, me, len(roster.members)),
            self.rule, self.keepers[me], self.net.transport(self.id(me)), "1",
            home=Asked(keep, blocked=lambda: self.blocked[me]), now=lambda: self.time, faults=self.faults, rng=self.rng,
        )  # fmt: skip
        node.life.mailbox = snapshot(node.life.mailbox)
        node._transport.start()
        self.nodes[me], self.lives[me], self.due[me] = node, node.life.play(), 0.0
        self.ended.discard(me)

    def renew(self, me, newer):
        """A newer bundle in a home, of a peer that runs or of one that does not."""
        if self.nodes[me] is None:
            self.bundles[me] = newer
        else:
            self.nodes[me].reception.laid(newer)

    def kill(self, me, damaged=False):
        """As kill -9 does; where the last checkpoint was damaged, the one before is what there is."""
        if self.nodes[me] is not None:
            self.net.vanish(self.id(me))
            self.nodes[me] = self.lives[me] = None
            if damaged:
                self.keepers[me].saved = self.keepers[me].before

    def cut(self, one, other):
        self.net.cut(self.id(one), self.id(other))

    def mend(self, one, other):
        self.net.heal(self.id(one), self.id(other))

    def step(self):
        """A step of the net; then everybody who has news, or has waited long enough, goes on."""
        self.net.step()
        for me, node in enumerate(self.nodes):
            if node is None or me in self.ended:
                continue
            if node.reception._fresh or self.time >= self.due[me]:
                node.reception._fresh = False
                try:
                    self.due[me] = self.time + next(self.lives[me])
                except StopIteration:
                    self.ended.add(me)  # it stays to say its last words again, as a process does for a while

    def play(self, events=(), most=20_000):
        """Until all have played their rounds; `events`: (when, what to do)."""
        left = sorted(events, key=lambda event: event[0])
        for _ in range(most):
            while left and left[0][0] <= self.time:
                left.pop(0)[1]()
            self.step()
            if not left and len(self.ended) == self.agents:
                return
        raise AssertionError(f"does not end: rounds {[node and node.round for node in self.nodes]}")

    def beliefs(self):
        return [node.life.state.q for node in self.nodes]

    def exact(self):
        total = PRIOR
        for me in range(self.agents):
            total = plus(total, Own(me).final)
        return total
