"""`consilience peer check|status|leave|block`: how one's own peer stands with its neighbours."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from consilience.command.ends import paths_given
from consilience.command.peer import HOME, Home, peer
from consilience.command.play import prepare
from consilience.command.shared import AsJson, Quiet, fail, print_json, say, show
from consilience.machine.stopping import unwinding

__all__ = ["peer"]
WAS = {"running": "it was killed, or its host went down"}  # what its folder said last


@peer.command()
def check(
    home: Home = HOME,
    seconds: Annotated[float, typer.Option(min=0.1, max=600, help="How long to try.")] = 10.0,
    as_json: AsJson = False,
) -> None:
    """Look at every link before you start: is the neighbour there, is it who it should be, has it the same study?

    Nothing is learnt or sent. Neighbours that do not run yet cannot be seen; those who call you must run, too.
    """
    prepare()
    with unwinding(), paths_given():
        from consilience.learning.asking import check as look

        found = look(home, seconds)
    wrong = [one for one in found if one.problem]
    if as_json:
        print_json([one._asdict() for one in found])
    else:
        for one in found:
            told = f"version {one.version}, epoch {one.epoch}, clock {one.clock:+.1f} s"
            say(one.problem if one.problem else f"{one.neighbour}: in order ({told})")
    if wrong:
        raise SystemExit(1)


@peer.command()
def status(home: Home = HOME, as_json: AsJson = False) -> None:
    """Tell how your peer stands with its neighbours; exit code 1 where it does not run, or nothing is exchanged.

    A neighbour is away, or reachable (there is a connection), or admitted (study and roster are agreed on), or
    contributing (what it said was used in the last round).
    """
    with unwinding(), paths_given():
        from consilience.learning.asking import status as of

        told = of(home)
    if as_json:
        print_json(told)
    elif told["running"]:
        _show_status(told)
    if not told["running"]:
        then = "" if told["was"] == "finished" else f"; start it with: consilience peer start --home {home}"
        rounds = "1 round is" if told["round"] == 1 else f"{told['round']} rounds are"
        fail(f"{told['name']} does not run: {WAS.get(told['was'], told['was'])}, {rounds} played{then}", 1)
    if not told["exchanging"]:
        fail("nothing is exchanged: no neighbour contributed to the last round", 1)


@peer.command()
def leave(home: Home = HOME, quiet: Quiet = False) -> None:
    """Let your running peer finish its step, save, say goodbye and end. `peer start` comes back, and carries on."""
    with unwinding(), paths_given():
        from consilience.learning.asking import leave as left

        number = left(home)
    if not quiet:
        say(f"left after round {number}; come back with: consilience peer start --home {home}")


@peer.command()
def block(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A member of the study.")],
    undo: Annotated[bool, typer.Option("--undo", help="Take it back.")] = False,
    home: Home = HOME,
    quiet: Quiet = False,
) -> None:
    """Have nothing to do with a member from the next round on, whatever the roster says. Its weight returns to you.

    What was pooled stays pooled. Only your own peer is concerned; the steward removes a member for all.
    """
    with unwinding(), paths_given():
        from consilience.learning.asking import block as blocked

        blocked(home, name, undo)
    if not quiet:
        say(f"{name} is {'not blocked any more' if undo else 'blocked'}, from the next round on")


def _show_status(told: dict[str, Any]) -> None:
    from consilience.report.tables import table

    def ago(seconds: float | None) -> str:
        return "never" if seconds is None else f"{seconds:.0f} s ago"

    columns = ["neighbour", "state", "last heard", "round", "epoch", "clock", "MB sent", "received"]
    rows = [
        [
            one["name"],
            one["state"],
            ago(one["last_heard"]),
            one["round"],
            one["epoch"],
            f"{one['clock']:+.1f} s",
            f"{one['bytes_sent'] / 1e6:.2f}",
            f"{one['bytes_received'] / 1e6:.2f}",
        ]
        for one in told["neighbours"]
    ]
    title = f"{told['name']} in {told['study']}, epoch {told['epoch']}: round {told['round']} of {told['rounds']}"
    show(table(columns, rows, title))
    for one in told["neighbours"]:
        if one["why"]:
            say(one["why"] if one["why"].startswith(one["name"]) else f"{one['name']}: {one['why']}")
        if one["version"] not in ("", told["version"]):
            say(f"{one['name']}: has version {one['version']}, ours is {told['version']}; better have the same")
    if told["blocked"]:
        say(f"blocked here: {', '.join(told['blocked'])} (consilience peer block --undo)")
    if told["strangers"]:
        whose = "people who are blocked or" if told["blocked"] else "people who are"
        say(f"{told['strangers']} calls of {whose} not in the roster were refused")
