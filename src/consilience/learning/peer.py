"""A peer from its home: its key, the study that it joined, its own file; others see its beliefs and nothing else."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from consilience.errors import InputError, printable
from consilience.experiments.learn.one import Share
from consilience.files.strict_json import strict_json
from consilience.files.whole import write_atomically
from consilience.learning import home as homes
from consilience.learning.fit import Fit
from consilience.learning.home import BUNDLE, HEALTH, LOG, RUN, bundle_in, share_in
from consilience.machine.memory import forget_tracing, give_back
from consilience.machine.scheduling import take_turns_of
from consilience.runs import folder as files
from consilience.runs.description import pinned

if TYPE_CHECKING:
    from consilience.engines.peers.node import Node

ARM = "together"


class Peer:
    """One agent of a study, on this host. `open` has everything checked and written down; `run` learns.

    The folder `run` in its home is a run's folder with one agent: `Fit`, `predict`, `export`, `report` read it. It is
    opened by `run` alone, while nobody else has it. `alone`: nothing else happens in this process, so that it need not
    keep what JAX remembers for others.

    >>> fit = Peer.open("peer", "study.bundle", "mine.csv").run()  # doctest: +SKIP
    >>> Peer.open("nowhere", "study.bundle", "mine.csv")  # a home is what `consilience peer init` makes
    Traceback (most recent call last):
    consilience.errors.InputError: home: 'nowhere' has no key; consilience peer init NAME makes one there
    """

    def __init__(
        self,
        home: Path,
        told: Callable[..., None] | None = None,
        listen: str | None = None,
        health_port: int | None = None,
        alone: bool = False,
    ) -> None:
        from consilience.engines.peers import identity

        self.home, self._told, self._listen, self._health_port = home, told, listen, health_port
        self._alone = alone
        self._own = identity.load(home)
        homes.member_in(self._own, bundle_in(home), home / BUNDLE)  # refused here, where it is damaged
        self.config = homes.joined(home)
        self._node: Node | None = None
        self._stopped = ""

    @property
    def node(self) -> Node:
        """The life that is lived, or was; there is one as soon as it runs."""
        if self._node is None:
            raise InputError(f"peer: '{printable(str(self.home))}' has not been run")
        return self._node

    def _begun(self) -> Node:
        """The life as the folder has it; whoever calls this holds the folder."""
        from consilience import __version__
        from consilience.engines.peers.blocking import blocked_in
        from consilience.engines.peers.keeping import Keeper
        from consilience.engines.peers.membership import Asked
        from consilience.engines.peers.node import Node
        from consilience.engines.peers.player import ArmPlayer
        from consilience.engines.peers.roster import Roster
        from consilience.engines.peers.transport.grpc import GrpcTransport, Own

        home, own, bundle = self.home, self._own, bundle_in(self.home)
        double = self.config.precision == "float64"
        shares: dict[int, Share] = {}
        playing: list[ArmPlayer] = []

        def make(roster: Roster) -> ArmPlayer:
            member = roster.member(own.id)
            assert member is not None
            agents = max(roster.numbers) + 1
            with jax.enable_x64(double):
                if agents not in shares:
                    shares[agents] = share_in(self.config, bundle, member.number, agents)
                arm = shares[agents].arm(len(roster.members))
            playing[:] = [ArmPlayer(arm, member.number, self.config.seed, double)]
            return playing[0]

        def settled() -> None:
            """Where the process is a peer's own: what led to programs goes, and a turn is as long as it learns."""
            forget_tracing()
            take_turns_of(playing[0].spent)

        keeper = Keeper(home / RUN, ARM, bundle.study.hash)
        address = own.card.address if self._listen is None else self._listen
        return Node(
            own,
            bundle,
            make,
            self.config.consensus.kind,
            keeper,
            GrpcTransport(Own(own.private_pem(), own.certificate, own.id), address),
            __version__,
            self._telling(),
            self.config.record_every,
            Asked(lambda newer: newer.write(home / BUNDLE), homes.bundles_laid(home), lambda: blocked_in(home).keys()),
            give_back=settled if self._alone else give_back,
        )

    def _telling(self) -> Callable[..., None]:
        """Whom to tell what happens: the log in the home, and whoever asked."""
        from consilience.engines.peers.log import Log

        log, told = Log(self.home / LOG), self._told

        def telling(what: str, **facts: Any) -> None:
            log(what, **facts)
            if told is not None:
                told(what, **facts)

        return telling

    @classmethod
    def open(cls, folder: str | Path, task: str | Path, share: Any, **options: Any) -> Peer:
        """A peer of a program: joined to the study of a bundle with its own data, where it has not joined it yet.

        folder: its home, with a key (`consilience peer init`, `identity.create`). task: the bundle that the steward
        signed. share: a file, or a pair of arrays (x, y), which are kept in the home, readable by its owner only.
        options: as of `Peer` (told, listen, health_port, alone).
        """
        from consilience.engines.peers import identity

        home = Path(folder)
        identity.load(home)  # refused before anything is written
        data = Path(share) if isinstance(share, str | Path) else homes.kept(home, share)
        homes.join(home, Path(task), data)
        return cls(home, **options)

    def run(self) -> Fit:
        """Learn to the last round, or until `stop` is called; what was learnt."""
        with files.locked(self.home / RUN):
            pinned(self.config)  # the data is what was learnt from so far
            node = self._node = self._begun()
            if self._stopped:
                node.stop(self._stopped)
            with self._answering(node):  # until it is on disk how it ended: who asks is told that, or that it runs
                files.note(self.home / RUN, status="running")
                ending = "stopped"
                try:
                    node.run()
                    ending = "finished" if node.played_rounds >= node.life.rounds else "stopped"
                finally:
                    files.note(self.home / RUN, status=ending)
        return Fit(self.home / RUN)

    @contextmanager
    def _answering(self, node: Node) -> Iterator[None]:
        """Tell on a port of this host how it goes, where that is wished; the home says which port that is."""
        if self._health_port is None:
            yield
            return
        from consilience.engines.peers.transport.health import HealthPort

        health = HealthPort(node.status, self._health_port)
        try:
            write_atomically(self.home / HEALTH, strict_json({"port": health.port, "pid": os.getpid()}).encode())
            yield
        finally:
            health.close()
            (self.home / HEALTH).unlink(missing_ok=True)

    async def run_async(self) -> Fit:
        """The same beside whatever else a program does."""
        return await asyncio.to_thread(self.run)

    def stop(self, why: str = "was stopped") -> None:
        """Finish the step, save, say goodbye."""
        self._stopped = why
        if self._node is not None:
            self._node.stop(why)
