"""`consilience reproduce`: the paper's figures and claims, run here."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from consilience.command.ends import paths_given
from consilience.command.play import DataDir, play, prepare
from consilience.command.shared import AsJson, Quiet, complaints, print_json, say, show, working
from consilience.errors import InputError
from consilience.machine.stopping import unwinding


def reproduce(
    figures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FIGURE", help="1, theorem-1, centrality, 2a, 2b, 3, 4, 5 or time-varying; without, all."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder of the runs, figures and claims.")] = Path("runs/paper"),
    estimate: Annotated[bool, typer.Option("--estimate", help="Only say how long it will take.")] = False,
    only_finished: Annotated[
        bool, typer.Option("--only-finished", help="Play nothing: tell what finished runs say, and which are missing.")
    ] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Run what figures of the paper need, draw them, and say which of the paper's claims hold.

    What is finished is not run again, and what was interrupted is carried on: type the same command once more. A
    finished run leaves NAME.json in the folder, a small file with all that is told of it; the run's own folder can go.
    """
    guard = prepare()
    from consilience.paper.parts import PARTS, part_named
    from consilience.paper.reproduce import due, kept, tell
    from consilience.runs import run as runs

    shown = not (quiet or as_json)
    with unwinding(), paths_given():
        parts = [part_named(name) for name in dict.fromkeys(figures or [part.name for part in PARTS])]
        if estimate and only_finished:
            raise InputError("--only-finished: plays nothing, there is nothing to --estimate")
        planned = due(parts, out, data_dir)
        left = [one for one in planned if not one.finished]
        if not estimate:
            out.mkdir(parents=True, exist_ok=True)  # where it cannot be, that is said first
        if estimate or (left and shown and not only_finished):
            _tell_time(left, len(planned), as_json)
        if estimate:
            return 0
        for one in planned:
            if one.finished:
                kept(one)
    again = shlex.join(["consilience", "reproduce", *(figures or []), "--out", str(out)])
    for number, one in enumerate([] if only_finished else left, start=1):
        with unwinding(), paths_given():
            folder = one.folder if one.folder.exists() else runs.begin(one.config, one.folder, one.play.command())
        if shown:
            complaints.print(f"{number} of {len(left)}: {one.play.command()}", soft_wrap=True, markup=False)
        play(folder, as_json, quiet, guard, data_dir, again, summarised=False)
        with unwinding():
            kept(one)
    with unwinding():
        found = tell(parts, out)
    if as_json:
        print_json(found.values())
    elif not quiet:
        _show(found.claims)
        for part, names in found.missing.items():
            say(f"not told: {part}, which waits for {', '.join(names)}")
        for file in found.figures:
            say(f"wrote {file}")
        say(f"wrote {out / 'paper.json'}")
    return 0


def _tell_time(left: list[Any], planned: int, as_json: bool) -> None:
    from consilience.paper.reproduce import speeds
    from consilience.report.tables import table
    from consilience.runs.estimate import kind_of

    with working("playing a few rounds of each kind of run, to say how long it will take …"):
        known = speeds(left)
    minutes = [known[kind_of(one.config)].seconds(one.config, one.done) / 60 for one in left]
    if as_json:
        print_json(
            {
                "minutes": round(sum(minutes), 1),
                "runs": {one.play.name: round(m, 1) for one, m in zip(left, minutes, strict=True)},
            }
        )
        return
    if not left:
        say(f"all {planned} runs are finished")
        return
    rows = [[one.play.name, one.config.rounds - one.done, f"{m:.1f}"] for one, m in zip(left, minutes, strict=True)]
    title = f"{len(left)} of {planned} runs are left: about {duration(sum(minutes))} on this machine"
    show(table(["run", "rounds left", "minutes"], rows, title))


def duration(minutes: float) -> str:
    """Minutes as a person says them.

    >>> duration(0.2), duration(12.3), duration(190.0)
    ('a minute', '13 minutes', '3 h 10 min')
    """
    whole = max(int(-(-minutes // 1)), 1)
    if whole < 100:
        return "a minute" if whole == 1 else f"{whole} minutes"
    return f"{whole // 60} h {whole % 60} min"


def _show(claims: list[Any]) -> None:
    from consilience.report.tables import table

    words = {True: "yes", False: "NO", None: "–"}
    rows = [[claim.figure, claim.claim, claim.paper, claim.here, words[claim.holds]] for claim in claims]
    show(table(["figure", "claim", "paper", "here", "holds"], rows, "The paper's claims, and what was found here"))
