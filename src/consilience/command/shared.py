"""What the verbs of the command share: its options, where it prints, and how it complains."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Annotated, Any, NoReturn

import typer
from rich.progress import Progress
from rich.text import Text

from consilience.errors import printable
from consilience.files.strict_json import strict_json
from consilience.report.tables import console, show

__all__ = ["show"]  # beside what is defined here

screen = console()
complaints = console(stderr=True)
MESSAGE = 1000  # characters of a complaint, at most

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors (and what --json asks for).")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a field, e.g. --set rounds=50 --set learner.batch=20; `consilience config EXPERIMENT` names them.",
    ),
]


def print_json(value: Any) -> None:
    """One JSON document."""
    typer.echo(strict_json(value))


def say(text: str) -> None:
    """One line of text, as it is, however narrow the screen."""
    screen.print(printable(text), soft_wrap=True)


def working(on: str) -> AbstractContextManager[object]:
    """Show that something takes a while; only on a real terminal, where it vanishes again (FORCE_COLOR makes none)."""
    return complaints.status(on) if sys.stderr is not None and sys.stderr.isatty() else nullcontext()


@contextmanager
def progressing(bar: Progress) -> Iterator[None]:
    """Show a bar; where something fails it vanishes, so that the error is all that is said."""
    with bar:
        try:
            yield
        except BaseException:
            bar.live.transient = True
            bar.live.stop()
            bar.disable = True  # it would end with a blank line
            raise


def complain(message: str) -> None:
    """Say what is wrong, in one line."""
    line = printable(" ".join(message[:MESSAGE].splitlines())) + "…" * (len(message) > MESSAGE)
    complaints.print(Text.assemble(("error:", "bold red"), f" {line}"), soft_wrap=True)


def fail(message: str, code: int) -> NoReturn:
    """Say it and end."""
    complain(message)
    raise SystemExit(code)


def first_line(error: BaseException) -> str:
    """The beginning of what an error says."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)[:200]
