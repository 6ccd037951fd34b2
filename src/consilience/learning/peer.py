"""A peer from its home: its key, the study that it joined, its own file; others see its beliefs and nothing else."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from consilience.data.arrays import check_pair
from consilience.described.settings import to_toml
from consilience.errors import InputError, printable
from consilience.experiments.learn.agreed import described_by
from consilience.experiments.learn.description import Config
from consilience.experiments.learn.one import Share, share_of
from consilience.files.strict_json import strict_json
from consilience.files.whole import replacing, write_atomically
from consilience.learning.fit import Fit
from consilience.runs import folder as files
from consilience.runs.description import pinned
from consilience.runs.provenance import provenance

if TYPE_CHECKING:
    from consilience.engines.peers.bundle import Bundle
    from consilience.engines.peers.checking import Found
    from consilience.engines.peers.node import Node

BUNDLE, RUN, HEALTH, DATA, LOG = "study.bundle", "run", "health.json", "data.npz", "log.jsonl"
ARM = "together"
OTHER_DATA = "is not what was learnt from so far; give it as it was, or take a new home"


class Peer:
    """One agent of a study, on this host. `Peer.join` has everything checked and written down; `run` learns.

    The folder `run` in its home is a run's folder with one agent: `Fit`, `predict`, `export`, `report` read it. It is
    opened by `run` alone, while nobody else has it.

    >>> fit = Peer.open("peer", "study.bundle", "mine.csv").run()  # doctest: +SKIP
    >>> Peer.open("nowhere", "study.bundle", "mine.csv")  # a home is what `consilience peer init` makes
    Traceback (most recent call last):
    consilience.errors.InputError: home: cannot read 'nowhere/key.pem': No such file or directory
    """

    def __init__(
        self,
        home: Path,
        told: Callable[..., None] | None = None,
        listen: str | None = None,
        health_port: int | None = None,
    ) -> None:
        from consilience.engines.peers import identity

        self.home, self._told, self._listen, self._health_port = home, told, listen, health_port
        self._own = identity.load(home)
        _bundle_in(home)  # refused here, where it is damaged
        self.config = _joined(home)
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
        from consilience.engines.peers.node import Node
        from consilience.engines.peers.player import ArmPlayer
        from consilience.engines.peers.roster import Roster
        from consilience.engines.peers.transport.grpc import GrpcTransport, Own

        home, own, bundle = self.home, self._own, _bundle_in(self.home)
        double = self.config.precision == "float64"
        shares: dict[int, Share] = {}

        def make(roster: Roster) -> ArmPlayer:
            member = roster.member(own.id)
            assert member is not None
            agents = max(roster.numbers) + 1
            with jax.enable_x64(double):
                if agents not in shares:
                    shares[agents] = _share(self.config, bundle, member.number, agents)
                arm = shares[agents].arm(len(roster.members))
            return ArmPlayer(arm, member.number, self.config.seed, double)

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
            lambda newer: newer.write(home / BUNDLE),
            lambda: blocked_in(home).keys(),
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
        options: as of `Peer` (told, listen, health_port).
        """
        from consilience.engines.peers import identity

        home = Path(folder)
        identity.load(home)  # refused before anything is written
        data = Path(share) if isinstance(share, str | Path) else _kept(home, share)
        cls.join(home, Path(task), data)
        return cls(home, **options)

    @classmethod
    def join(cls, home: Path, bundle_file: Path, data: Path) -> int:
        """Take a study's bundle into a home and check the own data against it; nothing is sent to anybody.

        Tells how many rows there are to learn from.
        """
        from consilience.engines.peers import identity
        from consilience.engines.peers.bundle import Bundle

        own = identity.load(home)
        bundle = Bundle.read(bundle_file)
        member = bundle.roster.member(own.id)
        if member is None:
            gone = bundle.roster.tombstone(own.id)
            said = f"was removed in epoch {gone.epoch}" if gone else "is not in its roster; send the steward your card"
            raise InputError(f"bundle '{printable(str(bundle_file))}': {own.name} {said}")
        known = Bundle.read(home / BUNDLE) if (home / BUNDLE).exists() else None
        if known is not None and known.study.hash != bundle.study.hash:
            raise InputError(f"home: '{printable(str(home))}' has joined another study; take a home for each")
        if known is not None and known.roster.epoch > bundle.roster.epoch:
            bundle = known  # neighbours have told of a newer roster
        config = pinned(
            described_by(
                bundle.study.task,
                shares={"kind": "files", "files": {own.name: str(data.absolute())}},
                network={"kind": "ring", "agents": 1},
                rounds=bundle.study.policy.rounds,
            )
        )
        with jax.enable_x64(config.precision == "float64"):
            share = _share(config, bundle, member.number, max(bundle.roster.numbers) + 1)
        home_run = home / RUN
        home_run.mkdir(exist_ok=True)
        with files.locked(home_run):
            if files.latest_checkpoint(home_run) is not None and _joined(home).files != config.files:
                raise InputError(f"data: '{printable(str(data))}' {OTHER_DATA}")
            files.write_shares(home_run, share.kept)
            files.note(home_run, seeds=config.seeds(), peer=own.name, **provenance(None))
            files.write(home_run, files.CONFIG, to_toml(config).encode())
        bundle.write(home / BUNDLE)
        rows: int = share.kept["rows"][0]
        return rows

    def run(self) -> Fit:
        """Learn to the last round, or until `stop` is called; what was learnt."""
        from consilience.runs.folder import locked

        with locked(self.home / RUN):
            pinned(self.config)  # the data is what was learnt from so far
            node = self._node = self._begun()
            if self._stopped:
                node.stop(self._stopped)
            files.note(self.home / RUN, status="running")
            ending = "stopped"
            try:
                with self._answering(node):
                    node.run()
                ending = "finished" if node.round >= node.life.rounds else "stopped"
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


def check(home: Path, seconds: float = 10.0) -> list[Found]:
    """Look at every link of a home's peer, which must not be running: nothing of it is learnt or sent."""
    from consilience import __version__
    from consilience.engines.peers import identity
    from consilience.engines.peers.checking import checked
    from consilience.engines.peers.transport.grpc import GrpcTransport, Own
    from consilience.runs.folder import locked

    own, bundle = identity.load(home), _bundle_in(home)
    if (member := bundle.roster.member(own.id)) is None:
        raise InputError(f"bundle: {own.name} is not in the roster of epoch {bundle.roster.epoch}; ask the steward")
    transport = GrpcTransport(Own(own.private_pem(), own.certificate, own.id), own.card.address)
    with locked(home / RUN):
        return checked(bundle, member.number, transport, __version__, seconds)


def block(home: Path, name: str, undo: bool = False) -> None:
    """Have nothing to do with a member from the next round on, whatever the roster says; or again."""
    from consilience.engines.peers import blocking, identity

    own, bundle = identity.load(home), _bundle_in(home)
    if undo:
        blocking.unblock(home, name)
        return
    if (member := bundle.roster.named(name)).id == own.id:
        raise InputError(f"member: {name} is you; `consilience peer leave` ends your part")
    if bundle.study.task.get("consensus", {}).get("kind") == "tracking":
        raise InputError(
            f"member: in a study by tracking what {name} was given would be lost; ask the steward to remove it"
        )
    blocking.block(home, member.id, member.name)


def leave(home: Path, patience: float = 60.0) -> int:
    """Have a running peer finish its step, save and say goodbye; the round after which it left."""
    told = status(home)
    if not told["running"]:
        raise InputError(f"peer: {told['name']} does not run")
    os.kill(int(told["pid"]), signal.SIGTERM)
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if not (told := status(home))["running"]:
            return int(told["round"])
        time.sleep(0.1)
    raise InputError(f"peer: {told['name']} has not left within {patience:.0f} s")


def _bundle_in(home: Path) -> Bundle:
    from consilience.engines.peers.bundle import Bundle

    if not (home / BUNDLE).is_file():
        raise InputError(f"home: '{printable(str(home))}' has joined no study; `consilience peer join` does that")
    return Bundle.read(home / BUNDLE)


def status(home: Path) -> dict[str, Any]:
    """How the peer of a home stands: what it says itself while it runs, else how far it got, with `running` false."""
    from consilience.engines.peers import identity
    from consilience.engines.peers.transport.health import asked

    own = identity.load(home)
    _bundle_in(home)
    try:
        left = json.loads((home / HEALTH).read_bytes())
        told = asked(int(left["port"]))
        # Whoever has the port now may be somebody else: `leave` sends a signal to the process that this names.
        same = told is not None and (told.get("name"), told.get("pid")) == (own.name, left["pid"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        same = False
    if same and told is not None:
        return {"running": True, **told}
    known = files.facts(home / RUN)
    return {
        "running": False,
        "name": own.name,
        "was": known.get("status", "joined"),
        "round": known.get("rounds_played", 0),
    }


def _kept(home: Path, share: Any) -> Path:
    """A pair of arrays as a file of the home; once learnt from, others are refused."""
    if not isinstance(share, tuple | list) or len(share) != 2:
        raise InputError(f"share: must be a file or a pair of arrays (x, y), got {type(share).__name__}")
    x, y = check_pair(share[0], share[1], "share")
    content, file = BytesIO(), home / DATA
    np.savez(content, x=x, y=y)
    if file.exists() and file.read_bytes() == content.getvalue():
        return file
    if (home / RUN).is_dir() and files.latest_checkpoint(home / RUN) is not None:
        raise InputError(f"share: {OTHER_DATA}")
    with replacing(file) as stream:
        os.fchmod(stream.fileno(), 0o600)
        stream.write(content.getvalue())
    return file


def _joined(home: Path) -> Config:
    from consilience import experiments
    from consilience.runs.run import opened

    found = experiments.lying_in(opened(home / RUN), home / RUN)
    assert isinstance(found, Config)
    return found


def _share(config: Config, bundle: Any, number: int, agents: int) -> Share:
    study = bundle.study
    return share_of(study.task, config, number, agents, study.labels, study.input_shape)
