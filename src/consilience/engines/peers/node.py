"""A peer: one agent's life, its links and its folder, driven by a thread of its own, until the last round.

Links run in the transport's threads and report to its `Reception`; the life uses what they leave there when it gets to
it. What is decided by a roster changes between two rounds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from consilience.engines.arm import Progress
from consilience.engines.peers.bundle import Bundle
from consilience.engines.peers.desk import Agreed
from consilience.engines.peers.identity import Identity
from consilience.engines.peers.keeping import Keeper
from consilience.engines.peers.life import Life, Position
from consilience.engines.peers.mailboxes import Filled, Mailbox, Tabled
from consilience.engines.peers.membership import NOBODY_ASKED, Asked, Membership
from consilience.engines.peers.messages import Said
from consilience.engines.peers.neighbourhood import Neighbourhood
from consilience.engines.peers.place import Place, agreed_on, mailbox_of
from consilience.engines.peers.player import ArmPlayer
from consilience.engines.peers.reception import Reception, Told, nobody
from consilience.engines.peers.roster import Roster
from consilience.engines.peers.status import Status
from consilience.engines.peers.transport import STRANGERS, Transport
from consilience.engines.peers.waiting import Patience, Waiting
from consilience.machine.memory import give_back

GLANCE = 0.05  # seconds between two looks at who is still behind
TOLD_AFTER = 3.0  # seconds of a round in which somebody is waited for who is not there
LONGEST_WAIT = 3600.0


class Node:
    """One peer. `make(roster)` gives the agent as it is under a roster; `run` lives to the last round.

    `home` is asked in every round who takes part. `give_back()` is called once, when all programs have been compiled.
    """

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
        home: Asked = NOBODY_ASKED,
        now: Callable[[], float] = time.monotonic,
        give_back: Callable[[], None] = give_back,
    ) -> None:
        self.identity, self._make, self._consensus = identity, make, consensus
        self._keeper, self._transport, self._told = keeper, transport, told
        self._record_every, self.now, self._give_back = record_every, now, give_back
        self._stopping = ""
        self._scores: Mapping[str, float] = {}
        self._waits_in, self._waits_since = -1, 0.0
        self._said_absent: set[str] = set()
        self.reception = Reception(identity, bundle, version, told, now)
        self.neighbourhood = Neighbourhood(identity, self.reception, transport, self._agreed)
        self.membership = Membership(identity, bundle, self.reception, self.neighbourhood, told, home)
        self.player = make(bundle.roster)
        self.membership.take()
        self._keep_among()
        self.life = self.reception.life = self._lived()
        self.reception.versions = self.life.mailbox.held()

    def run(self) -> None:
        """Live to the last round, or until asked to stop; then say goodbye."""
        try:
            self._keeper.open()
            self._transport.start()
            self._told("listening", address=self.identity.card.address)
            self._live()
        finally:
            self._keeper.close()

    def _live(self) -> None:
        try:
            for wait in self.life.play():
                self.reception.wait(min(wait, self._tell_absent(wait)))
                if self.membership.ending:
                    self.life.leaving = True  # nobody speaks to it any more
            if self.membership.ending:  # in the middle of a round
                self._change()
            self._told("finished" if self.played_rounds >= self.life.rounds else "stopped", round=self.played_rounds)
            self._stay()
        finally:
            self.neighbourhood.leave(self._stopping or "all rounds are played")
            self._transport.stop()

    def _tell_absent(self, wait: float) -> float:
        """Say once for whom a round waits who is not there at all; seconds until this should be looked at again."""
        now = self.now()
        if self._waits_in != self.round:
            self._waits_in, self._waits_since = self.round, now
        if (left := self._waits_since + TOLD_AFTER - now) > 0:
            return left
        parted, roster = self.life.waiting.has_parted, self.membership.bundle.roster
        standing = self.neighbourhood.standing(self.played_rounds, now)
        absent = {
            one.name: one.why
            for one in standing
            if one.contributing is not None and not one.admitted and not parted(roster.number(one.name))
        }
        if new := {name: why for name, why in absent.items() if name not in self._said_absent}:
            self._told("waiting", names=list(new), why="; ".join(filter(None, new.values())), seconds=round(wait))
        self._said_absent = set(absent)
        return LONGEST_WAIT

    def _stay(self) -> None:
        """Be there for those who are behind: with the last message they come to the end in a round or two."""
        stay = self.life.waiting.patience.stay
        until, told = self.now() + stay, False
        while not self.life.leaving and (behind := self._behind()) and self.now() < until:
            if not told and self.now() > until - stay + 1.0:  # others need no longer than that
                self._told("staying", names=list(map(self.neighbourhood.name, behind)), seconds=stay)
                told = True
            self.reception.wait(GLANCE)

    def _behind(self) -> list[int]:
        """Listeners that were here once, have not said goodbye, and have not got the last message."""
        parted = self.life.waiting.has_parted
        return [number for number in self.neighbourhood.behind(self.life.rounds) if not parted(number)]

    def status(self) -> Status:
        """How it stands now; may be asked by any thread."""
        bundle = self.membership.bundle
        return Status(
            name=self.identity.name,
            study=bundle.study.name,
            epoch=bundle.roster.epoch,
            version=self.reception.version,
            round=self.round,
            rounds=self.life.rounds,
            scores=self._scores,
            neighbours=self.neighbourhood.standing(self.played_rounds, self.now()),
            blocked=tuple(self.membership.blocked().values()),
            strangers=sum(self._transport.refused().get(STRANGERS, {}).values()),
            pid=os.getpid(),
        )

    def stop(self, why: str = "was stopped") -> None:
        """Ask it to finish the step, save and say goodbye."""
        self._stopping, self.life.leaving = why, True
        self.reception.wake()

    @property
    def round(self) -> int:
        """The last round that was begun."""
        return self.life.position.round

    @property
    def played_rounds(self) -> int:
        """The last round that was played to its end."""
        return self.round - self.life.position.published

    @property
    def removed(self) -> bool:
        """Whether it is no member of the study any more."""
        return self.membership.removed

    # What a life has around it

    def row(self) -> Mapping[int, float]:
        """Whom this peer hears, with what weight."""
        return self.neighbourhood.place.row

    def listeners(self) -> Iterable[int]:
        """Who hears this peer."""
        return self.neighbourhood.place.listeners

    def send(self, neighbour: int, said: Said) -> None:
        """Hand a message to a link."""
        self.neighbourhood.say(neighbour, said, self.life.incarnation)

    def save(self, life: Life) -> None:
        """Keep where it stands, before anything of it is sent."""
        self.reception.versions = life.mailbox.held()
        box = life.mailbox
        self._keeper.save(
            life.state, self._public(life), life.position, box.kept(), life.incarnation, box.passed_on
        )  # fmt: skip

    def played(self, life: Life, filled: Filled, missed: Collection[int]) -> None:
        """A round was played: record it, and go on with whoever takes part now."""
        number = life.position.round
        self.reception.versions = life.mailbox.held()
        due = number % self._record_every == 0 or number == life.rounds
        scores = self.player.measure(life.state, self._public(life), number) if due else None
        names = self.membership.names
        self._keeper.played(number, filled, names, scores)
        self.reception.contributed(number, self.row().keys() - {*missed, life.me})
        if scores and not self._scores:  # everything has been compiled
            self._give_back()
        self._scores = scores or self._scores
        self._tell_silent(life, missed)
        self._told(
            "round",
            round=number,
            heard=[names.get(one, str(one)) for one in filled.weights if one not in (life.me, *missed)],
            missed=[names.get(one, str(one)) for one in missed],
            scores=scores or {},
            sent=sum(sent for sent, _ in self._transport.bytes().values()),
        )
        self._change()

    def _tell_silent(self, life: Life, missed: Collection[int]) -> None:
        """Say once of a neighbour that it is no longer waited for."""
        for number in missed:
            known = self.reception.neighbours.get(number)
            if known is not None and life.waiting.missed.get(number) == life.waiting.patience.silent_after:
                since = None if known.heard_at is None else round(self.now() - known.heard_at, 1)
                rounds = life.waiting.patience.silent_after
                self._told("silent", name=self.neighbourhood.name(number), rounds=rounds, seconds=since)

    def _public(self, life: Life) -> Any:
        """What was published last, as the agent has it; before anything was, what it would say."""
        return self.player.publish(life.state) if life.public is None else self.player.tree(life.public)

    # How it begins, and how it changes

    def _lived(self) -> Life:
        """The life as it was kept, or at its beginning."""
        bundle = self.membership.bundle
        policy, links = bundle.study.policy, bundle.roster.links
        start = self.player.start()
        standing = self._keeper.load(Progress(start, self.player.publish(start)))
        mailbox = self._mailbox(bundle)
        state, position, incarnation, said = start, Position(), 1, None
        if standing is not None:
            said = standing.public
            state, position, incarnation = standing.state, standing.position, standing.incarnation + 1
            if self._consensus == "tracking" and standing.mail.known.get("epoch") != bundle.roster.epoch:
                # Another roster was laid into the home meanwhile: sums begin anew, as they do for all others.
                state, position = self.player.begin_sums(state), Position(position.round)
            mailbox.restore(standing.mail, standing.public)
            mailbox.recall(standing.passed_on)
        self._use(mailbox)
        long = 10 * policy.patience
        patience = Patience(policy.patience, max(long, 60.0), policy.silent_after, long)
        mutual = {(link.hearer, link.heard) for link in links}
        ahead = 2 if all((b, a) in mutual for a, b in mutual) else len(bundle.roster.members) + 1
        life = Life(
            self.membership.me, policy.rounds, self.player, state, mailbox, Waiting(patience), self, incarnation,
            position, policy.kind == "sync", self.reception.signed, ahead,
        )  # fmt: skip
        life.public = said
        return life

    def _keep_among(self) -> None:
        """Say who may be heard from now on."""
        place = self.neighbourhood.place
        heard = place.members if self._consensus == "sites" else place.row
        self._keeper.among([place.members[number].name for number in sorted(heard)])

    def _agreed(self, bundle: Bundle, place: Place) -> Agreed:
        return agreed_on(bundle, place, self._consensus, self.player.schema(wide=self._consensus == "tracking"))

    def _change(self) -> None:
        """Go on with those who take part now."""
        for change in self.membership.changes():
            if self.removed:
                self.stop("was removed")
                return
            self._keep_among()
            self._forget(change.gone)
            if change.renewed and self._consensus == "tracking":
                self._begin_sums(self.membership.bundle)

    def _forget(self, members: set[int]) -> None:
        """What these have said is not used any more; what was pooled stays pooled."""
        self.life.arrivals.forget(members)
        self._use(self.life.mailbox)

    def _use(self, mailbox: Mailbox) -> None:
        """Of what is held use that of those who take part."""
        if isinstance(mailbox, Tabled):
            mailbox.only(self.neighbourhood.place.members)
            mailbox.believe(self.reception.genuine)

    def _begin_sums(self, bundle: Bundle) -> None:
        """Others listen now: sums begin anew, with everybody's sites as they are."""
        self.player = self.life.player = self._make(bundle.roster)
        self.life.state = self.player.begin_sums(self.life.state)
        self.life.mailbox = self._mailbox(bundle)

    def _mailbox(self, bundle: Bundle) -> Mailbox:
        return mailbox_of(bundle, self.neighbourhood.place, self._consensus, self.reception.agreed_on)
