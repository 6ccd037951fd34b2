"""What the verbs of the command share: its options, where it prints, and how it complains."""

from __future__ import annotations

import json
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

screen = Console()
complaints = Console(stderr=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors (and what --json asks for).")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a field, e.g. --set rounds=50 --set network.kind=ring."),
]


def print_json(value: Any) -> None:
    """One JSON document."""
    typer.echo(json.dumps(value, indent=2, allow_nan=False))


def complain(message: str) -> None:
    """Say what is wrong, in one line."""
    complaints.print(f"[bold red]error:[/] {_escaped(message)}", highlight=False, soft_wrap=True)


def fail(message: str, code: int) -> NoReturn:
    """Say it and end."""
    complain(message)
    raise SystemExit(code)


def first_line(error: BaseException) -> str:
    """The beginning of what an error says."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)[:200]


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(" ".join(text.split("\n")))
