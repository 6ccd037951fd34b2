"""What the verbs of the command share: its options, where it prints, and how it complains."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.measure import Measurement
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from consilience.errors import printable
from consilience.files.strict_json import strict_json

# What is printed may be a user's own words: brackets in it are no markup, and :smile: is no picture.
_console = partial(Console, markup=False, emoji=False, highlight=False)
screen = _console()
complaints = _console(stderr=True)
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


def show(table: Table, whole: bool = False) -> None:
    """A table, at least as wide as its longest words, or as its longest cells: numbers are never cut off."""
    needs = Measurement.get(screen, screen.options.update(max_width=10_000), table)
    _console(width=max(needs.maximum if whole else needs.minimum, screen.width)).print(table)


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
