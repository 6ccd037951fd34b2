"""`consilience new`: a description of what a user's files hold, proposed from them, to read, correct and run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from consilience.command.ends import paths_given
from consilience.command.shared import AsJson, Quiet, print_json, say, show, working
from consilience.errors import InputError, brief
from consilience.machine.stopping import unwinding

ENDING = ".toml"


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is called: NAME.toml is written.")],
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="CSV or Parquet files, one an agent.")],
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="Predict this column, a class.")] = None,
    target: Annotated[str | None, typer.Option(metavar="COLUMN", help="Predict this column, a number.")] = None,
    counts: Annotated[bool, typer.Option("--counts", help="The target counts something: 0, 1, 2, …")] = False,
    owner: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="With one file: the column that names whose each row is.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where NAME.toml is written.")] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Write over a NAME.toml that is there.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Look at files and write a description of what to learn from them, for you to read and correct.

    What columns mean is proposed, and said where files differ; nothing is learnt, and nothing leaves this machine.
    """
    with unwinding(), paths_given():
        from consilience.files.whole import write_atomically
        from consilience.task.draft import drafted
        from consilience.task.proposal import Answer, propose

        if (label is None) == (target is None):
            raise InputError("--label, --target: name the one column that is predicted by one of the two")
        if counts and target is None:
            raise InputError("--counts: says what a --target is, got a --label")
        if owner is not None and len(files) > 1:
            raise InputError(f"--owner: is for one file, got {len(files)} files; each is an agent's then")
        written = out / (name if name.endswith(ENDING) else name + ENDING)
        if written.exists() and not force:
            raise InputError(f"NAME: '{written}' is there already; --force writes over it")
        with working("looking at the files …"):
            shares, survey = _looked_at(files, owner)
            answer = Answer(str(label if target is None else target), target is None, counts)
            if answer.column == owner:
                raise InputError(f"--owner: {brief(owner)} is what is predicted")
            proposal = propose(survey, answer)
        text = drafted(str(written).removesuffix(ENDING), shares, proposal)
        written.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(written, text.encode())
    if as_json:
        print_json(_told(written, shares, survey, proposal))
    elif not quiet:
        _show(written, shares, survey, proposal)


def _looked_at(files: list[Path], owner: str | None) -> Any:
    """Whose data is where, and what is in it."""
    from consilience.data.owners import in_order
    from consilience.data.survey import surveyed
    from consilience.task.draft import Shares

    if owner is not None:
        found = surveyed(files[0], owner)
        names = in_order(found)
        return Shares(dict.fromkeys(names, files[0]), owner), {name: found[name] for name in names}
    agents = agent_names(files)
    survey = {agent: next(iter(surveyed(file).values())) for agent, file in agents.items()}
    return Shares(agents), survey


def agent_names(files: list[Path]) -> dict[str, Path]:
    """Each agent is called like its file; where files in several folders are called alike, like its folder, too.

    >>> list(agent_names([Path("a.csv"), Path("b.csv")])), list(agent_names([Path("x/a.csv"), Path("y/a.csv")]))
    (['a', 'b'], ['x-a', 'y-a'])
    """
    stems = [file.stem for file in files]
    names = [
        f"{file.absolute().parent.name}-{file.stem}" if stems.count(file.stem) > 1 else file.stem for file in files
    ]
    for name, file in zip(names, files, strict=True):
        if names.count(name) > 1:
            raise InputError(
                f"FILE: each must have a name of its own, two are called {brief(name)}, got {brief(str(file))}"
            )
    return dict(zip(names, files, strict=True))


def _rows(own: Any) -> int:
    return max(int(found.rows) for found in own.values())


def _told(written: Path, shares: Any, survey: Any, proposal: Any) -> dict[str, Any]:
    return {
        "wrote": str(written),
        "agents": {agent: {"file": str(file), "rows": _rows(survey[agent])} for agent, file in shares.agents.items()},
        "owner": shares.owner,
        "columns": {
            name: column.model_dump(mode="json", exclude_none=True) for name, column in proposal.columns.items()
        },
        "notes": proposal.notes,
        "next": f"consilience run {written}",
    }


def _show(written: Path, shares: Any, survey: Any, proposal: Any) -> None:
    from consilience.report.tables import table
    from consilience.task.columns import InRange, listed

    def meant(column: Any) -> str:
        if isinstance(column, InRange) and column.centre:
            return f"{column.centre:g} ± {column.scale:g}"
        return listed(column.levels, 4) if hasattr(column, "levels") else ""

    rows = [[name, column.kind, meant(column)] for name, column in proposal.columns.items()]
    agents = "1 agent" if len(shares.agents) == 1 else f"{len(shares.agents)} agents"
    every = sum(map(_rows, survey.values()))
    show(table(["column", "kind", ""], rows, f"{agents} with {every:,} rows in all"))
    for note in proposal.notes:
        say(note)
    say(f"wrote {written}: read it, correct it, then: consilience run {written}")
