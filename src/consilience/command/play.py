"""How the command plays a run: JAX set up, a progress bar, a polite end."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from consilience.command.ends import to_be_mended
from consilience.command.shared import complain, complaints, fail, first_line, print_json, progressing, say, show
from consilience.engines.guard import LOST, NOT_ALL, Guard, guarded
from consilience.engines.hosts import Meeting
from consilience.machine.stopping import asked, asking, unwinding
from consilience.report.progress import progress_bar

DataDir = Annotated[Path | None, typer.Option(help="A folder with the dataset's files.")]


def prepare(meeting: Meeting | None = None, cores: int | None = None) -> Guard:
    """Set JAX up before anything imports it, for all cores or so many, and meet the other hosts where there are any."""
    from consilience.engines.hosts import join
    from consilience.machine.runtime import (
        check_flags,
        keep_compiled_programs,
        use_all_cores,
        use_cores,
        use_large_pages,
    )

    use_large_pages()
    check_flags()
    if cores is None:
        use_all_cores()
    else:
        use_cores(cores)
    guard = Guard()
    if meeting is not None:
        meeting.check()
        if meeting.several:
            guard = guarded(NOT_ALL.format(hosts=meeting.hosts or "all", timeout=meeting.timeout), complain)
            join(meeting)
            guard.if_lost(LOST.format(folder="RUN"))
    keep_compiled_programs()
    return guard


def play(
    folder: Path,
    as_json: bool,
    quiet: bool,
    guard: Guard,
    data_dir: Path | None,
    again: str = "consilience resume {folder}",
    summarised: bool = True,
) -> int:
    """Carry a run on to its end with a progress bar; `again` is what carries it on where it is stopped."""
    from jax.errors import JaxRuntimeError

    from consilience.engines import hosts
    from consilience.runs import run as runs

    guard.if_lost(LOST.format(folder=folder))
    title = hosts.from_first(lambda: runs.opened(folder).model_dump(mode="json", include={"experiment", "rounds"}))
    shown = not (quiet or as_json) and hosts.is_first()
    bar = progress_bar(title["experiment"], complaints, disable=not shown)
    again = again.format(folder=folder)
    stopped = f"stopped; carry on with: {again}"
    told: list[int] = []  # rounds; before the first is played nothing is lost by stopping at once, except other hosts
    playing = ExitStack()

    def tell_politely() -> None:
        if shown:
            complaints.print("stopping after this round (again: at once) …")

    def on_round(done: int, words: str) -> None:
        bar.update(task, completed=done, words=words)
        told.append(done)
        if len(told) == (2 if hosts.count() == 1 else 1):
            playing.enter_context(asking(tell_politely))

    try:
        with unwinding(stopped, lambda: runs.note_stopped(folder)), progressing(bar), playing:
            task = bar.add_task("rounds", total=title["rounds"], words="")
            summary = runs.carry_on(folder, on_round, asked, data_dir)
    except (runs.RunFailed, runs.Stopped) as ended:  # the same on all hosts
        words = str(ended) if isinstance(ended, runs.RunFailed) else stopped
        guard.is_over(words, 1)
        hosts.leave()
        fail(words, 1)
    except KeyboardInterrupt:
        fail(stopped, 1)
    except OSError as error:
        if len(told) < 2 or isinstance(error, BrokenPipeError):
            raise
        fail(to_be_mended(error, again), 1)
    except JaxRuntimeError as error:
        if hosts.count() == 1:
            raise
        fail(f"{LOST.format(folder=folder)} ({first_line(error)})", 1)
    if summarised and hosts.is_first():
        show_summary(summary, folder, as_json, quiet)
        sys.stdout.flush()
    guard.is_over()
    hosts.leave()
    return 0


def show_summary(summary: dict[str, Any], folder: Path, as_json: bool, quiet: bool) -> None:
    """Tables of a run's summary, and what was written."""
    from consilience.experiments import table

    if as_json:
        print_json(summary | {"folder": str(folder)})
    elif not quiet:
        show(table(summary))
        if "note" in summary:
            say(f"note: {summary['note']}")
        for file in (*summary["figures"], "record.csv", "summary.json"):
            if (folder / file).exists():
                say(f"wrote {folder / file}")
