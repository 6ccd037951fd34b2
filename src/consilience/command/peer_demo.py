"""`consilience peer demo`: real peers on this machine, to try."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from consilience.command.ends import paths_given
from consilience.command.peer import score_told
from consilience.command.peer_links import peer
from consilience.command.play import prepare, show_summary
from consilience.command.shared import AsJson, Quiet, complaints, fail, say, screen
from consilience.errors import InputError
from consilience.machine.stopping import asked, asking, unwinding

if TYPE_CHECKING:
    from consilience.learning.demo import Standing

__all__ = ["peer"]
COLUMNS = ("peer", "round", "score", "heard from", "missed", "sent")


@peer.command()
def demo(
    agents: Annotated[int | None, typer.Option(min=2, max=50, help="How many peers [default: 4].")] = None,
    task: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A description, as `consilience new` writes them, with data.")
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="How many [default: 20, or the description's].")] = None,
    rule: Annotated[
        str | None, typer.Option(help="How they learn [default: sites, or the description's]: `consilience rules`.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where their homes are made.")] = Path("runs/peers"),
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Try it: real processes on this machine, with keys of their own and mutual TLS, learn digits split by label.

    Or, with --task, what a description of yours says, each from its own share. Ctrl-C lets all of them finish their
    step and ends them. Afterwards FOLDER/together has the summary and the figures that a simulation would have.
    """
    prepare()
    with unwinding(), paths_given():
        from consilience.learning import together
        from consilience.learning.demo import begun, played
        from consilience.learning.trial import of_digits, of_task

        if out.exists() and any(out.iterdir()):
            raise InputError(f"--out: '{out}' is there already and not empty; --out names another folder")
        out.mkdir(parents=True, exist_ok=True)
        trial = of_digits(out, agents, rounds, rule) if task is None else of_task(out, task, agents, rounds, rule)
        names = begun(out, trial)
        silent = quiet or as_json
        if not silent:
            say(f"{len(names)} peers, each with a key and a file of its own: {', '.join(names)}")
            if trial.left:
                say(f"not for peers, left out: {', '.join(trial.left)}")
        with _showing(silent) as shown, asking(lambda: None if silent else complaints.print("stopping all peers …")):
            ended = played(out, names, shown, asked)
        if lost := [name for name, code in ended.items() if code]:
            why = "stopped" if asked() else f"{', '.join(lost)} did not play to the end"
            fail(f"{why}; what they said is in {out}/NAME/start.jsonl", 1)
        summary = together.report(together.gathered([out / name for name in names]), out / "together")
    show_summary(summary, out / "together", as_json, quiet)
    if not silent:
        say(f"next: consilience predict {out / names[0] / 'run'} NEW_ROWS")


@contextmanager
def _showing(silent: bool) -> Iterator[Callable[[list[Standing]], None]]:
    """How everybody stands: a table that changes, or without a terminal a line when all have played a round."""
    if silent:
        yield lambda standings: None
    elif screen.is_terminal:
        from rich.live import Live

        with Live(console=screen, auto_refresh=False) as live:
            yield lambda standings: live.update(_table(standings), refresh=True)
    else:
        told = [0]

        def line(standings: list[Standing]) -> None:
            if (number := min(one.round for one in standings)) > told[0]:
                told[0] = number
                say(f"round {number:3d}   " + "   ".join(f"{one.name} {score_told(one.scores)}" for one in standings))

        yield line


def _table(standings: list[Standing]) -> Any:
    from consilience.report.tables import table

    rows = [
        [
            one.name,
            one.round,
            score_told(one.scores),
            ", ".join(one.heard) or "–",
            one.missed,
            f"{one.sent / 1e6:.1f} MB",
        ]
        for one in standings
    ]
    return table(COLUMNS, rows)
