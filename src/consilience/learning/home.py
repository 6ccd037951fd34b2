"""A peer's home: its key, the bundle of the study that it joined, its own data, and the folder of its run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from consilience.data.arrays import check_pair
from consilience.described.settings import to_toml
from consilience.errors import InputError, printable
from consilience.experiments.learn.agreed import described_by
from consilience.experiments.learn.description import Config
from consilience.experiments.learn.one import Share, share_of
from consilience.files.whole import replacing
from consilience.runs import folder as files
from consilience.runs.description import pinned
from consilience.runs.heard import STUDY
from consilience.runs.provenance import provenance

if TYPE_CHECKING:
    from consilience.engines.peers.bundle import Bundle
    from consilience.engines.peers.identity import Identity
    from consilience.engines.peers.roster import Member

BUNDLE, RUN, HEALTH, DATA, LOG = "study.bundle", "run", "health.json", "data.npz", "log.jsonl"
OTHER_DATA = "is not what was learnt from so far; give it as it was, or take a new home"
OTHER_STUDY = "has joined another study; take a home for each (consilience peer init --key-of has the same key there)"


class Joined(NamedTuple):
    """What a home has joined; where data was given, with so many rows to learn from, and so many to be judged by."""

    bundle: Bundle
    rows: int | None = None
    held_out: int | None = None


def join(home: Path, bundle_file: Path, data: Path) -> Joined:
    """Take a study's bundle into a home and check the own data against it; nothing is sent to anybody.

    What the home has then: a newer roster where neighbours have told of one, and how many rows there are.
    """
    from consilience.engines.peers import identity
    from consilience.engines.peers.bundle import Bundle

    own = identity.load(home)
    bundle = Bundle.read(bundle_file)
    member = member_in(own, bundle, bundle_file)
    known = Bundle.read(home / BUNDLE) if (home / BUNDLE).exists() else None
    if known is not None and known.study.hash != bundle.study.hash:
        raise InputError(f"home: '{printable(str(home))}' {OTHER_STUDY}")
    if known is not None:
        bundle = _newest(known, bundle, bundle_file)
        member = member_in(own, bundle, bundle_file)
    described = described_by(
        bundle.study.task,
        shares={"kind": "files", "files": {own.name: str(data.absolute())}},
        network={"kind": "ring", "agents": 1},
        rounds=bundle.study.policy.rounds,
    )
    with jax.enable_x64(described.precision == "float64"), _called(f"shares.files.{own.name}", "data"):
        config = pinned(described)
        share = share_in(config, bundle, member.number, max(bundle.roster.numbers) + 1)
    home_run = home / RUN
    home_run.mkdir(exist_ok=True)
    with files.locked(home_run):
        files.played(home_run)  # what is damaged is found before anything is written
        if files.latest_checkpoint(home_run) is not None and joined(home).files != config.files:
            raise InputError(f"data: '{printable(str(data))}' {OTHER_DATA}")
        files.write_shares(home_run, share.kept)
        files.note(home_run, seeds=config.seeds(), peer=own.name, **{STUDY: bundle.study.hash}, **provenance(None))
        files.write(home_run, files.CONFIG, to_toml(config).encode())
    bundle.write(home / BUNDLE)
    return Joined(bundle, share.kept["rows"][0], share.kept["held_out_rows"][0])


def _newest(held: Bundle, given: Bundle, file: Path) -> Bundle:
    """Of the bundle that a home has and one that is given, which must go on from it, the one that is newer."""
    from consilience.engines.peers.bundle import newer

    what = f"bundle '{printable(str(file))}'"
    if given.steward.id != held.steward.id:
        raise InputError(f"{what}: is signed by somebody else than the steward of the study that was joined")
    if given.roster.epoch < held.roster.epoch:
        return held  # neighbours have told of a newer roster
    if given.roster == held.roster:
        return held
    return newer(held, given.offer, what)


@contextmanager
def _called(field: str, name: str) -> Iterator[None]:
    """Complain of a field by the name that whoever joins knows it by."""
    try:
        yield
    except InputError as error:
        if not str(error).startswith(f"{field}:"):
            raise
        raise InputError(f"{name}{str(error).removeprefix(field)}") from None


def member_in(own: Identity, bundle: Bundle, file: Path) -> Member:
    """What a bundle says of this peer; one that has no place for it is refused."""
    member = bundle.roster.member(own.id)
    if member is None:
        gone = bundle.roster.tombstone(own.id)
        other = any(one.name == own.name for one in bundle.roster.members)
        said = f"was removed in epoch {gone.epoch}; ask the steward" if gone else "is not in its roster"
        said += "" if gone else " with this key, but with another one" if other else ""
        said += "" if gone else "; send the steward your card"
        raise InputError(f"bundle '{printable(str(file))}': {own.name} {said}")
    return member


def take(home: Path, bundle_file: Path) -> Bundle:
    """Lay a newer bundle of the study that was joined into a home, also of a peer that runs: it goes on under it.

    Gives the bundle that is there then, which may be newer still.
    """
    from consilience.engines.peers import identity
    from consilience.engines.peers.bundle import Bundle

    held, given = bundle_in(home), Bundle.read(bundle_file)
    if given.study.hash != held.study.hash:
        raise InputError(f"home: '{printable(str(home))}' {OTHER_STUDY}")
    if (newest := _newest(held, given, bundle_file)) is not held:
        member_in(identity.load(home), newest, bundle_file)
        newest.write(home / BUNDLE)
    return newest


def bundles_laid(home: Path) -> Callable[[], Bundle | None]:
    """A function that gives the bundle in a home where its file has changed since it was last asked."""
    seen: list[Any] = [_stamp(home / BUNDLE)]

    def laid() -> Bundle | None:
        now = _stamp(home / BUNDLE)
        if now == seen[0]:
            return None
        seen[0] = now
        return bundle_in(home)

    return laid


def _stamp(file: Path) -> Any:
    """What changes when a file is replaced."""
    try:
        about = file.stat()
        return about.st_ino, about.st_mtime_ns, about.st_size
    except OSError:
        return None


def bundle_in(home: Path) -> Bundle:
    """The newest bundle of the study that a home has joined."""
    from consilience.engines.peers.bundle import Bundle

    if not (home / BUNDLE).is_file():
        raise InputError(f"home: '{printable(str(home))}' has joined no study; `consilience peer join` does that")
    return Bundle.read(home / BUNDLE)


def joined(home: Path) -> Config:
    """The description of what a home's peer learns, with its own data."""
    from consilience import experiments
    from consilience.runs.run import opened

    found = experiments.lying_in(opened(home / RUN), home / RUN)
    assert isinstance(found, Config)
    return found


def share_in(config: Config, bundle: Any, number: int, agents: int) -> Share:
    """What the agent of this number holds, among so many."""
    study = bundle.study
    return share_of(study.task, config, number, agents, study.labels, study.input_shape)


def kept(home: Path, share: Any) -> Path:
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
