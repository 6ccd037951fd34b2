"""A peer: one agent's life, its links and its folder, driven by a thread of its own, until the last round.

Links run in the transport's threads and leave messages and news here; the life uses them when it gets to it. What is
decided by a roster changes between two rounds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

from consilience.engines.arm import Progress
from consilience.engines.peers.bundle import Bundle, newer
from consilience.engines.peers.identity import Identity
from consilience.engines.peers.keeping import Keeper
from consilience.engines.peers.keys import check_signature, sign
from consilience.engines.peers.life import Life, Position
from consilience.engines.peers.link import PROTOCOL, Agreed, Greeting, Link
from consilience.engines.peers.mailboxes import Counted, Filled, Mailbox, Pooled, Tabled
from consilience.engines.peers.messages import Entry, Said, Version, as_count
from consilience.engines.peers.player import ArmPlayer
from consilience.engines.peers.roster import Member, Roster
from consilience.engines.peers.transport import Transport
from consilience.engines.peers.waiting import Patience, Waiting
from consilience.engines.peers.wire import Bounds, encoded
from consilience.engines.peers.wire.frames import canonical
from consilience.errors import InputError

FOR_EVER = float("inf")


class Neighbour(NamedTuple):
    """How a neighbour stands: reachable, admitted (it has greeted), contributing; when it was last heard, on our clock.

    sent: the last round whose message it has confirmed. ahead: by how many seconds its clock is.
    """

    reachable: bool = False
    admitted: bool = False
    heard_at: float | None = None
    round: int = 0
    sent: int = 0
    epoch: int = 0
    version: str = ""
    ahead: float = 0.0
    left: str = ""


@runtime_checkable
class Told(Protocol):
    """Whoever is told what happens: a log, a table on a screen, a test."""

    def __call__(self, what: str, **facts: Any) -> None:
        """Something has changed."""
        ...


def nobody(what: str, **facts: Any) -> None:
    """Tells nobody."""


class Node:
    """One peer. `make(roster)` gives the agent as it is under a roster; `run` lives to the last round."""

    def __init__(
        self,
        identity: Identity,
        bundle: Bundle,
        make: Callable[[Roster], ArmPlayer],
        consensus: str,
        keeper: Keeper,
        transport: Transport,
        version: str,
        told: Told = nobody,
        record_every: int = 1,
        keep_bundle: Callable[[Bundle], None] = lambda bundle: None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.identity, self.bundle, self._make, self._consensus = identity, bundle, make, consensus
        self._keeper, self._transport, self._version, self._told = keeper, transport, version, told
        self._record_every, self._keep_bundle, self.now = record_every, keep_bundle, now
        self._news, self._fresh, self._stopping = threading.Condition(), False, ""
        self._offered: Bundle | None = None
        self.neighbours: dict[int, Neighbour] = {}
        self.links: dict[int, Link] = {}
        self.player = make(bundle.roster)
        self._take_roster(bundle)
        self.life = self._lived()
        self._held: Mapping[int, Version] = self.life.mailbox.held()

    @property
    def me(self) -> int:
        """This peer's number."""
        member = self.bundle.roster.member(self.identity.id)
        if member is None:
            gone = self.bundle.roster.tombstone(self.identity.id)
            when = f"was removed in epoch {gone.epoch}" if gone else "is not in it"
            raise InputError(f"roster: {self.identity.name} {when}; ask the study's steward")
        return member.number

    def run(self) -> None:
        """Live to the last round, or until asked to stop; then say goodbye."""
        self._keeper.open()
        try:
            self._transport.start()
            self._live()
        finally:
            self._keeper.close()

    def _live(self) -> None:
        try:
            for wait in self.life.play():
                with self._news:
                    if not self._fresh and not self._stopping:
                        self._news.wait(min(wait, 3600.0))
                    self._fresh = False
            self._told("finished" if self.life.position.round >= self.life.rounds else "stopped", round=self.round)
        finally:
            for link in self.links.values():
                link.leave(self._stopping or "all rounds are played")
            self._transport.stop()

    def stop(self, why: str = "was stopped") -> None:
        """Ask it to finish the step, save and say goodbye."""
        with self._news:
            self._stopping, self.life.leaving = why, True
            self._news.notify_all()

    @property
    def round(self) -> int:
        """The last round that was begun."""
        return self.life.position.round

    # What a life has around it

    def row(self) -> Mapping[int, float]:
        """Whom this peer hears, with what weight."""
        return self._row

    def listeners(self) -> Iterable[int]:
        """Who hears this peer."""
        return self._listeners

    def send(self, neighbour: int, said: Said) -> None:
        """Hand a message to a link."""
        if neighbour in self.links:
            self.links[neighbour].say(said, self.life.incarnation)

    def save(self, life: Life) -> None:
        """Keep where it stands, before anything of it is sent."""
        self._held = life.mailbox.held()
        self._keeper.save(life.state, self._public(life), life.position, life.mailbox.kept(), life.incarnation)

    def played(self, life: Life, filled: Filled, missed: Iterable[int]) -> None:
        """A round was played: record it, and take a newer roster where there is one."""
        number = life.position.round
        self._held = life.mailbox.held()
        due = number % self._record_every == 0 or number == life.rounds
        scores = self.player.measure(life.state, self._public(life), number) if due else None
        self._keeper.played(number, filled, scores)
        names = {member.number: member.name for member in self.bundle.roster.members}
        self._told(
            "round",
            round=number,
            heard=[names.get(one, str(one)) for one in filled.weights if one != life.me],
            missed=[names.get(one, str(one)) for one in missed],
            scores=scores or {},
        )
        with self._news:
            offered, self._offered = self._offered, None
        if offered is not None:
            self._change(offered)

    def _public(self, life: Life) -> Any:
        """What was published last, as the agent has it; before anything was, what it would say."""
        return self.player.publish(life.state) if life.public is None else self.player.tree(life.public)

    # What links report

    def agreed(self) -> Agreed:
        """What must be agreed on, now."""
        return self._agreed

    def greeting(self) -> Greeting:
        """What this peer says first."""
        return Greeting(
            PROTOCOL, self._version, self._agreed.study, self._agreed.epoch, self.life.incarnation, self.round,
            time.time(),
        )  # fmt: skip

    def roster(self) -> str:
        """The signed roster."""
        return self.bundle.offer

    def offered(self, text: str, by: Member) -> None:
        """Somebody offers a roster; a newer one is taken when the round ends, an equal or older one is nothing new."""
        with self._news:
            held = self._offered or self.bundle
            if text == held.offer:
                return
            self._offered = newer(held, text, f"the roster that {by.name} offers")
            self._fresh = True
            self._news.notify_all()

    def greeted(self, by: Member, greeting: Greeting) -> None:
        """A neighbour may take part."""
        before = self.neighbours.get(by.number, Neighbour())
        self.neighbours[by.number] = before._replace(
            reachable=True,
            admitted=True,
            round=max(before.round, greeting.round),
            epoch=greeting.epoch,
            version=greeting.version,
            ahead=greeting.clock - time.time(),
            left="",
        )
        self._told("greeted", name=by.name, round=greeting.round, epoch=greeting.epoch, version=greeting.version)

    def arrived(self, by: Member, said: Said) -> None:
        """A message."""
        before = self.neighbours.get(by.number, Neighbour())
        self.neighbours[by.number] = before._replace(heard_at=self.now(), round=max(before.round, said.round))
        if self.life.receive(said):
            with self._news:
                self._fresh = True
                self._news.notify_all()

    def held(self) -> Mapping[int, Version]:
        """The versions that are here."""
        return self._held

    def receipt(self, by: Member, number: int, held: Mapping[int, Version]) -> None:
        """A neighbour has these versions, and the message of this round."""
        before = self.neighbours.get(by.number, Neighbour())
        self.neighbours[by.number] = before._replace(sent=max(before.sent, number))
        self.life.mailbox.knows(by.number, held)

    def parted(self, by: Member, why: str, goodbye: bool) -> None:
        """A neighbour is gone; who said goodbye is not waited for."""
        before = self.neighbours.get(by.number, Neighbour())
        if goodbye:
            self.life.waiting.parted(by.number)
            with self._news:
                self._fresh = True
                self._news.notify_all()
        self.neighbours[by.number] = before._replace(reachable=False, admitted=False, left=why)
        if before.admitted:
            self._told("parted", name=by.name, why=why)

    def genuine(self, entry: Entry) -> bool:
        """Whether an entry is signed by its owner."""
        owner = next((member for member in self.bundle.roster.members if member.number == entry.owner), None)
        return owner is not None and check_signature(owner.certificate, self._content(entry), entry.signature)

    def _content(self, entry: Entry) -> bytes:
        """What an owner signs: of which study, whose, which version, and all its numbers."""
        said = canonical({"study": self._agreed.study, "owner": entry.owner, "version": as_count(entry.version)})
        return said + encoded(entry.arrays, self._agreed.schema)

    def _signed(self, entry: Entry) -> Entry:
        if self._consensus != "sites":
            return entry
        return entry._replace(signature=sign(self.identity.key, self._content(entry)))

    # How it begins, and how it changes

    def _lived(self) -> Life:
        """The life as it was kept, or at its beginning."""
        policy = self.bundle.study.policy
        start = self.player.start()
        standing = self._keeper.load(Progress(start, self.player.publish(start)))
        mailbox = self._mailbox()
        state, position, incarnation, said = start, Position(), 1, None
        if standing is not None:
            said = standing.public
            state, position, incarnation = standing.state, standing.position, standing.incarnation + 1
            mailbox.restore(standing.mail)
        patience = Patience(policy.patience, max(10 * policy.patience, 60.0), policy.silent_after)
        mutual = {(link.hearer, link.heard) for link in self.bundle.roster.links}
        ahead = 2 if all((b, a) in mutual for a, b in mutual) else len(self.bundle.roster.members) + 1
        life = Life(
            self.me, policy.rounds, self.player, state, mailbox, Waiting(patience), self, incarnation, position,
            policy.kind == "sync", self._signed, ahead,
        )  # fmt: skip
        life.public = said
        return life

    def _mailbox(self) -> Mailbox:
        roster, policy = self.bundle.roster, self.bundle.study.policy
        if self._consensus == "sites":
            return Tabled(self.me)
        if self._consensus == "tracking":
            return Counted(self.me, len(self._listeners), roster.epoch)
        return Pooled(self.me, None if policy.kind == "sync" else policy.staleness)

    def _take_roster(self, bundle: Bundle) -> None:
        """Who is heard, who listens, and what is agreed on, under this roster."""
        self.bundle = bundle
        roster, study, me = bundle.roster, bundle.study, self.me
        self._row = roster.row(me)
        self._listeners = [link.hearer for link in roster.links if link.heard == me]
        limits, tracked = study.limits, self._consensus == "tracking"
        least = {"pooling": limits.least_precision, "sites": 0.0}.get(self._consensus, -FOR_EVER)
        most = FOR_EVER if tracked else limits.most_precision
        self._agreed = Agreed(
            study.hash,
            roster.epoch,
            self.player.schema(wide=tracked),
            "half" if study.wire == "float16" and self._consensus == "pooling" else "exact",
            self._consensus == "sites",
            Bounds(least, most),
            limits.most_bytes,
            study.policy.rounds,
            {member.id: member.number for member in roster.members},
        )
        linked = {*self._row, *self._listeners} - {me}
        members = {member.number: member for member in roster.members}
        self.links = {
            number: self.links[number]
            if number in self.links and self.links[number].other == members[number]
            else Link(members[number], self.identity.id, self)
            for number in sorted(linked)
        }
        self.neighbours = {number: self.neighbours.get(number, Neighbour()) for number in self.links}
        self._transport.admit(
            {member.id: member for member in roster.members},
            {members[number].id: link for number, link in self.links.items()},
        )

    def _change(self, bundle: Bundle) -> None:
        """Go on under a newer roster."""
        before, life = self.bundle.roster, self.life
        self._keep_bundle(bundle)
        if bundle.roster.member(self.identity.id) is None:
            self.bundle = bundle
            gone = bundle.roster.tombstone(self.identity.id)
            self._told("removed", epoch=gone.epoch if gone else bundle.roster.epoch)
            self.stop("was removed")
            life.leaving = True
            return
        self._take_roster(bundle)
        gone_numbers = set(before.numbers) - set(bundle.roster.numbers)
        life.arrivals.forget(gone_numbers)
        if isinstance(life.mailbox, Tabled):
            life.mailbox.without(gone_numbers)
        if self._consensus == "tracking":  # others listen now: sums begin anew, with everybody's sites as they are
            self.player = life.player = self._make(bundle.roster)
            life.state, life.mailbox = self.player.begin_sums(life.state), self._mailbox()
        for link in self.links.values():
            link.offer()
        self._told("roster", epoch=bundle.roster.epoch, members=[member.name for member in bundle.roster.members])
