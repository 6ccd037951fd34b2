"""`consilience peer`: one's own host in a network of peers."""

from __future__ import annotations

import math
import os
import threading
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from consilience.command.ends import paths_given, to_be_mended
from consilience.command.play import prepare
from consilience.command.shared import AsJson, Quiet, fail, print_json, say
from consilience.errors import InputError
from consilience.files.strict_json import strict_json
from consilience.machine.memory import keep_little
from consilience.machine.stopping import asking, unwinding

peer = typer.Typer(
    help="Learn with others, each on its own host: only beliefs travel, and there is no server.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
HOME, NO_SCORE = Path("peer"), "–"
Home = Annotated[Path, typer.Option("--home", metavar="FOLDER", help="Where the key and all that is kept lies.")]


@peer.command()
def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What others call you.")],
    listen: Annotated[
        str,
        typer.Option(metavar="HOST:PORT", help="Where others reach you; of two who are linked, one must be reached."),
    ] = "",
    home: Home = HOME,
    same_key: Annotated[bool, typer.Option("--same-key", help="Keep the key; only make a new card.")] = False,
    replaces: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The home of an older key, which signs that this replaces it.")
    ] = None,
    key_of: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The home of your peer in another study, to have its key.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Make your key, which never leaves this machine, and your card, which the study's steward needs.

    Nothing is ever written over. Moved to another address: --same-key --listen HOST:PORT. A new key in the place of an
    old one: --home NEW --replaces OLD. A second study with the key of the first: --home NEW --key-of OLD.
    """
    with unwinding(), paths_given():
        from consilience.engines.peers import identity

        if (same_key or key_of is not None) and replaces is not None:
            raise InputError(
                f"{'--same-key' if same_key else '--key-of'}, --replaces: a key cannot be kept and replaced"
            )
        if same_key and key_of is not None:
            raise InputError("--same-key, --key-of: the first is for the home that has the key, the second for another")
        if (kept := home if same_key else key_of) is not None and (known := identity.load(kept)).name != name:
            raise InputError(f"NAME: the key in '{kept}' is that of '{known.name}'; a name stays with its key")
        if same_key:
            made = identity.moved(home, listen)
        elif key_of is not None:
            made = identity.copied(home, known, listen)
        else:
            made = identity.create(home, name, listen, replaces=None if replaces is None else identity.load(replaces))
    card, words = identity.card_file(home, name), identity.words(made.id)
    option = "" if replaces is None else f" --replaces {name}"
    then = f"send {card} to the study's steward, who types: consilience study add{option} {card.name}"
    if as_json:
        told = {
            "name": name,
            "id": made.id,
            "words": words,
            "address": made.card.address,
            "home": str(home),
            "card": str(card),
        }
        print_json({**told, "next": then})
    elif not quiet:
        say(f"{name}: {words}")
        say(f"wrote {card}" + ("" if same_key else f", and {home / identity.KEY}, which never leaves this machine"))
        if not made.card.address:
            say("without --listen nobody can dial you: those with whom you are linked must be reachable")
        say(f"next: {then}; read the eight words out to them, they must see the same")


@peer.command()
def join(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE", help="What the steward sent: study.bundle.")],
    data: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Your own data: .csv, .parquet or .npz; it stays here.")
    ] = None,
    home: Home = HOME,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Take part in a study: check the bundle and your data against it. Nothing is sent to anybody yet.

    A newer bundle of a study that was joined needs no data; also a peer that runs takes it, and its neighbours from it.
    """
    prepare()
    with unwinding(), paths_given():
        from consilience.engines.peers.identity import words
        from consilience.learning import home as homes
        from consilience.learning.asking import status as of

        if data is None and not (home / homes.BUNDLE).is_file():
            raise InputError("--data: is needed to join a study: your own .csv, .parquet or .npz")
        joined = homes.Joined(homes.take(home, bundle)) if data is None else homes.join(home, bundle, data)
        running = of(home)["running"]
    held = joined.bundle
    steward, then = words(held.steward.id), f"consilience peer start{'' if home == HOME else f' --home {home}'}"
    if as_json:
        told = {"study": held.study.name, "epoch": held.roster.epoch, "rows": joined.rows, "held_out": joined.held_out}
        names = [member.name for member in held.roster.members]
        print_json({**told, "steward": steward, "members": names, "next": None if running else then})
    elif not quiet:
        spare = f", and {joined.held_out} held out to judge by" if joined.held_out else ""
        learning = "" if data is None else f", with {joined.rows} rows of {data.name} to learn from{spare}"
        say(f"joined {held.study.name}, epoch {held.roster.epoch}{learning}")
        say(f"members: {', '.join(member.name for member in held.roster.members)}")
        say(f"the steward's key reads {steward}: compare it on the telephone")
        say("your peer runs, and goes on under it from its next round on" if running else f"next: {then}")


@peer.command()
def start(
    home: Home = HOME,
    health_port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where this host can ask how it goes; 0: any port that is free.")
    ] = 0,
    cores: Annotated[
        int | None, typer.Option(min=1, help="Threads that learning may use; several peers of a host share its cores.")
    ] = None,
    child_of: Annotated[int, typer.Option(hidden=True, help="Stop when this process, which started it, is gone.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON line for everything that happens.")] = False,
    quiet: Quiet = False,
) -> None:
    """Learn with the others to the last round. Ctrl-C finishes the step, saves and says goodbye; `start` carries on.

    A neighbour that is not there costs its weight and nothing else; who contributed to which round is in run/heard.csv.
    While it runs `consilience peer status` tells how it goes; so do /status, /metrics (for Prometheus) and /health on
    the health port, which only this host can reach.
    """
    prepare(cores=cores)
    keep_little()
    with unwinding(), paths_given():
        from consilience.learning.peer import Peer
        from consilience.runs.heard import participants

        peer_ = Peer(home, _teller(as_json, quiet), health_port=health_port, alone=True)
        if child_of:
            threading.Thread(target=_stop_with, args=(child_of, peer_), daemon=True).start()
        again = f"consilience peer start --home {home}"
        try:
            with asking(peer_.stop):
                fit = peer_.run()
        except OSError as error:  # a full disk; what was kept last is whole
            fail(to_be_mended(error, again), 1)
        taking_part = participants(fit.folder)
    done, rounds = peer_.node.played_rounds, peer_.node.life.rounds
    if peer_.node.removed:
        fail(f"removed from the study after round {done}; what was learnt until then is in {fit.folder}", 1)
    if done < rounds:
        fail(f"stopped after round {done} of {rounds}; carry on with: {again}", 1)
    if not (quiet or as_json):
        say(f"all {rounds} rounds are played; what was learnt is in {fit.folder}")
        if taking_part is not None and taking_part.note:
            say(taking_part.note)
        say(f"next: consilience predict {fit.folder} NEW_FILE")


def _stop_with(parent: int, peer_: Any) -> None:
    """Whoever was started for a trial does not go on when the trial is gone, however it ended."""
    while os.getppid() == parent:
        time.sleep(0.5)
    peer_.stop("who started it is gone")


def _teller(as_json: bool, quiet: bool) -> Any:
    """Says what happens: a line for every change, and for every round.

    Who comes and goes again and again for one reason is said once; the log counts it.
    """
    troubles, repeated = dict[str, str](), set[str]()

    def told(what: str, **facts: Any) -> None:
        if as_json:
            typer.echo(strict_json({"what": what, **facts}, indent=None))
            return
        name = facts.get("name", "")
        if what == "parted" and troubles.get(name) == facts["why"]:
            repeated.add(name)
        elif what == "parted":
            troubles[name] = facts["why"]
            repeated.discard(name)
        elif what == "round":  # whoever is heard has no trouble any more
            for heard in facts["heard"]:
                troubles.pop(heard, None)
                repeated.discard(heard)
        if not (quiet or (what in ("greeted", "parted") and name in repeated)):
            say(told_line(what, facts))

    return told


def told_line(what: str, facts: dict[str, Any]) -> str:
    """What happened, for people.

    >>> told_line("round", {"round": 3, "heard": ["A"], "missed": ["B"], "scores": {"pooled_held_out_rmse": 0.5}})
    'round 3: heard A; missed B; rmse 0.5'
    """
    if what == "round":
        scores = facts["scores"]
        parts = [f"heard {', '.join(facts['heard']) or 'nobody'}"]
        parts += [f"missed {', '.join(facts['missed'])}"] if facts["missed"] else []
        parts += [told] if (told := score_told(scores)) != NO_SCORE else []
        return f"round {facts['round']}: {'; '.join(parts)}"
    if what == "greeted":
        return f"{facts['name']} is here, at round {facts['round']}"
    if what == "parted":
        return f"{facts['name']}: {facts['why']}"
    if what == "silent":
        since = "" if facts["seconds"] is None else f", last heard {facts['seconds']:.0f} s ago"
        return f"{facts['name']}: {facts['rounds']} rounds missed{since}; going on without it until it is heard"
    if what == "listening":
        return f"listening at {facts['address']}" if facts["address"] else "calling those who can be called"
    if what == "waiting":
        why = f": {facts['why']}" if facts["why"] else ""
        return f"waiting for {', '.join(facts['names'])}, {facts['seconds']} s at most (Ctrl-C ends it){why}"
    if what == "staying":
        return f"{', '.join(facts['names'])}: behind; staying for {facts['seconds']:.0f} s at most (Ctrl-C ends it)"
    if what == "roster":
        return f"roster of epoch {facts['epoch']}: {', '.join(facts['members'])}"
    if what == "blocked":
        return f"blocked now: {', '.join(facts['names']) or 'nobody'}; what was pooled stays pooled"
    if what == "trouble":
        return str(facts["why"])
    if what == "removed":
        return f"removed from the study in epoch {facts['epoch']}; what was pooled stays pooled"
    return what if "round" not in facts else f"{what} after round {facts['round']}"


def score_told(scores: dict[str, float]) -> str:
    """The first score that people ask for, by the rows that a peer holds out.

    >>> score_told({"pooled_held_out_nll": 0.5, "pooled_held_out_accuracy": 0.75}), score_told({})
    ('accuracy 75.0%', '–')
    """
    for name, form in (("accuracy", ".1%"), ("rmse", ".4g"), ("nll", ".4g")):
        if math.isfinite(score := scores.get(f"pooled_held_out_{name}", math.nan)):  # none, where no row is held out
            return f"{name} {score:{form}}"
    return NO_SCORE
