"""Many lives in one process: a clock moved by hand, messages that are lost, late or twice; peers that are killed."""

from __future__ import annotations

import copy
import heapq
import itertools
from types import SimpleNamespace

import numpy as np

from consilience.consensus.tracking import LEAST
from consilience.engines.peers.life import Life, Position
from consilience.engines.peers.mailboxes import Counted, Pooled, Tabled
from consilience.engines.peers.waiting import Patience, Waiting

PRIOR = {"precision": np.array([0.5]), "precision_mean": np.array([0.1])}


def plus(one, other, factor=1.0):
    return {name: one[name] + factor * other[name] for name in one}


class Own:
    """The evidence of an agent's data; it changes for some rounds, as local learning does, and then stays."""

    def __init__(self, me, settles=6):
        rng = np.random.default_rng([7, me])
        self.final = {"precision": rng.uniform(0.5, 2, 1), "precision_mean": rng.normal(size=1)}
        self.settles = settles

    def after(self, learnt):
        part = min(learnt / self.settles, 1.0)
        return {name: part * array for name, array in self.final.items()}


class PooledPlayer(Own):
    """b = q + evidence; q is what is pooled."""

    def start(self):
        return SimpleNamespace(q=PRIOR, learnt=0)

    def learn(self, state, number):
        new = SimpleNamespace(q=plus(state.q, self.final), learnt=state.learnt + 1)
        return new, new.q

    def pool(self, state, inbox):
        return SimpleNamespace(q=inbox, learnt=state.learnt)


class SitesPlayer(Own):
    """The site is sent; q is the prior times all sites."""

    def start(self):
        return SimpleNamespace(q=PRIOR, learnt=0)

    def learn(self, state, number):
        new = SimpleNamespace(q=state.q, learnt=state.learnt + 1)
        return new, self.after(new.learnt)

    def pool(self, state, inbox):
        return SimpleNamespace(q=plus(PRIOR, inbox), learnt=state.learnt)


class TrackingPlayer(Own):
    """Sums are given away with what is new in the site; q is the prior times N z/ω."""

    def __init__(self, me, agents, settles=6):
        super().__init__(me, settles)
        self.agents = agents

    def start(self):
        nothing = {name: np.zeros(1) for name in PRIOR}
        return SimpleNamespace(q=PRIOR, learnt=0, sums={**nothing, "agents": np.ones(1)}, site=nothing)

    def learn(self, state, number):
        site = self.after(state.learnt + 1)
        evidence = {name: state.sums[name] + site[name] - state.site[name] for name in PRIOR}
        given = {**evidence, "agents": state.sums["agents"]}
        return SimpleNamespace(q=state.q, learnt=state.learnt + 1, sums=state.sums, site=site), given

    def pool(self, state, inbox):
        q = state.q
        if inbox["agents"] > LEAST:
            q = plus(PRIOR, {name: inbox[name] * self.agents / inbox["agents"] for name in PRIOR})
        return SimpleNamespace(q=q, learnt=state.learnt, sums=inbox, site=state.site)


def snapshot(mailbox):
    """A mailbox as it is now; what it holds is never changed in place but for its tables."""
    new = copy.copy(mailbox)
    vars(new).update({name: dict(value) for name, value in vars(new).items() if isinstance(value, dict)})
    return new


def player_of(rule, me, agents):
    return {"pooling": PooledPlayer, "sites": SitesPlayer}.get(rule, lambda me: TrackingPlayer(me, agents))(me)


class World:
    """Peers, and messages on their way. `loss`, `twice`: probabilities; `late`: the most seconds a message takes."""

    def __init__(
        self, W, rule, rounds, seed=0, loss=0.0, twice=0.0, late=0.0, patience=None, reorders=False, staleness=None
    ):
        self.W, self.rule, self.rounds, self.loss, self.twice, self.late = W, rule, rounds, loss, twice, late
        self.rng, self.time, self._events, self._order = np.random.default_rng(seed), 0.0, [], itertools.count()
        self.patience = patience or Patience(round=5.0, gather=20.0, silent_after=2)
        self.agents, self.staleness = len(W), staleness
        self.reorders, self.arrives = reorders, {}
        self.saved = [None] * self.agents
        self.lives = [None] * self.agents
        self.running = [None] * self.agents
        self.epoch = [0] * self.agents  # of the process: what was meant for a killed one is not for its successor
        self.histories = [[] for _ in range(self.agents)]
        self.finished = set()
        self.cut, self.calls = set(), [0] * self.agents
        for me in range(self.agents):
            self.start(me)

    def row(self, me):
        return {j: float(w) for j, w in enumerate(self.W[me]) if w > 0 or j == me}

    def mailbox(self, me):
        if self.rule == "sites":
            return Tabled(me)
        if self.rule == "tracking":
            return Counted(me, int((np.delete(self.W[:, me], me) > 0).sum()), epoch=0)
        return Pooled(me, self.staleness)

    def start(self, me):
        """Begin, or come back after a kill, from what was saved."""
        player = player_of(self.rule, me, self.agents)
        around = Surroundings(self, me)
        state, mailbox, position, count = self.saved[me] or (player.start(), self.mailbox(me), Position(), 0)
        mailbox = snapshot(mailbox)
        self.lives[me] = Life(
            me, self.rounds, player, state, mailbox, Waiting(self.patience), around, count + 1, position,
            waits=self.staleness is None, ahead=self.agents,
        )  # fmt: skip
        self.epoch[me] += 1
        self.running[me] = self.lives[me].play()
        self.finished.discard(me)
        self.call(me)
        for other in range(self.agents):  # who connects anew is told what was said last
            if other != me and self.lives[other] is not None and other in self.row(me):
                self.lives[other].around.again(me)

    def kill(self, me):
        """As kill -9 does: nothing but what was saved is left."""
        self.running[me], self.epoch[me] = None, self.epoch[me] + 1

    def later(self, delay, f, *given):
        self.at(self.time + delay, f, *given)

    def at(self, time, f, *given):
        heapq.heappush(self._events, (time, next(self._order), f, given))

    def drive(self, me, call):
        """Let one go on until it waits again; a call that another one has overtaken is for nothing."""
        if self.running[me] is None or call != self.calls[me]:
            return
        try:
            wait = next(self.running[me])
        except StopIteration:
            self.finished.add(me)
            self.running[me] = None
            return
        self.call(me, wait)

    def call(self, me, wait=0.0):
        self.calls[me] += 1
        self.later(wait, self.drive, me, self.calls[me])

    def deliver(self, to, said, epoch):
        if self.running[to] is None or epoch != self.epoch[to] or (said.sender, to) in self.cut:
            return
        self.lives[said.sender].mailbox.knows(to, self.lives[to].mailbox.held())
        if self.lives[to].receive(said):
            self.call(to)

    def play(self, most=10**5):
        """Until nothing happens any more."""
        for _ in range(most):
            if not self._events:
                return
            self.time, _, f, given = heapq.heappop(self._events)
            f(*given)
        raise AssertionError("does not end")

    def beliefs(self):
        return [life.state.q for life in self.lives]

    def exact(self):
        total = PRIOR
        for me in range(self.agents):
            total = plus(total, Own(me).final)
        return total


class Surroundings:
    """What a life has around it."""

    def __init__(self, world, me):
        self.world, self.me, self.last = world, me, {}

    def row(self):
        return self.world.row(self.me)

    def listeners(self):
        return [int(j) for j in np.flatnonzero(self.world.W[:, self.me]) if j != self.me]

    def now(self):
        return self.world.time

    def send(self, neighbour, said):
        self.last[neighbour] = said
        self._carry(neighbour, said)

    def again(self, neighbour):
        if neighbour in self.last:
            self._carry(neighbour, self.last[neighbour])

    def _carry(self, neighbour, said):
        world = self.world
        for _ in range(2 if world.rng.random() < world.twice else 1):
            if world.rng.random() >= world.loss:
                when, link = world.time + 0.1 + world.late * world.rng.random(), (self.me, neighbour)
                if not world.reorders:  # as on a stream
                    when = world.arrives[link] = max(when, world.arrives.get(link, 0.0))
                world.at(when, world.deliver, neighbour, said, world.epoch[neighbour])

    def save(self, life):
        self.world.saved[self.me] = life.state, snapshot(life.mailbox), life.position, life.incarnation

    def played(self, life, filled, missed):
        self.world.histories[self.me].append((life.position.round, dict(filled.weights), list(missed)))
