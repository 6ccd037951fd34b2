"""What is asked of a peer from outside: how it stands, whether its links work, whom it blocks, that it leaves."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consilience.errors import InputError
from consilience.learning.home import HEALTH, RUN, bundle_in
from consilience.runs import folder as files

if TYPE_CHECKING:
    from consilience.engines.peers.checking import Found


def status(home: Path) -> dict[str, Any]:
    """How the peer of a home stands: what it says itself while it runs, else how far it got, with `running` false."""
    from consilience.engines.peers import identity
    from consilience.engines.peers.transport.health import asked

    own = identity.load(home)
    bundle_in(home)
    try:
        left = json.loads((home / HEALTH).read_bytes())
        told = asked(int(left["port"]))
        # Whoever has the port now may be somebody else: `leave` sends a signal to the process that this names.
        same = told is not None and (told.get("name"), told.get("pid")) == (own.name, left["pid"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        same = False
    if same and told is not None:
        return {"running": True, **told}
    known = files.facts(home / RUN)
    return {
        "running": False,
        "name": own.name,
        "was": known.get("status", "joined"),
        "round": files.played(home / RUN),
    }


def check(home: Path, seconds: float = 10.0) -> list[Found]:
    """Look at every link of a home's peer, which must not be running: nothing of it is learnt or sent."""
    from consilience import __version__
    from consilience.engines.peers import identity
    from consilience.engines.peers.checking import checked
    from consilience.engines.peers.transport.grpc import GrpcTransport, Own

    own, bundle = identity.load(home), bundle_in(home)
    if (member := bundle.roster.member(own.id)) is None:
        raise InputError(f"bundle: {own.name} is not in the roster of epoch {bundle.roster.epoch}; ask the steward")
    transport = GrpcTransport(Own(own.private_pem(), own.certificate, own.id), own.card.address)
    with files.locked(home / RUN):
        return checked(bundle, member.number, transport, __version__, seconds)


def block(home: Path, name: str, undo: bool = False) -> None:
    """Have nothing to do with a member from the next round on, whatever the roster says; or again."""
    from consilience.engines.peers import blocking, identity

    own, bundle = identity.load(home), bundle_in(home)
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
