"""The verbs of the command, thin over the library."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from consilience import __version__
from consilience.command.data import data
from consilience.command.ends import paths_given
from consilience.command.new import new
from consilience.command.paper import reproduce
from consilience.command.peer_demo import peer
from consilience.command.play import DataDir, play, prepare, show_summary
from consilience.command.shared import AsJson, Quiet, Settings, print_json, say, show, working
from consilience.command.study import study
from consilience.command.use import coefficients, compare, export, missing_data, predict, say_each
from consilience.engines.hosts import Meeting
from consilience.machine.stopping import unwinding

app = typer.Typer(
    name="consilience",
    help="Decentralized Bayesian learning over graphs: agents with private data, and no server, learn one model.",
    epilog="Start with: consilience run star-digits",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # brackets in a help text are brackets
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(data, name="data")
app.add_typer(peer, name="peer")
app.add_typer(study, name="study")
Coordinator = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="Several hosts: where the first one is reached by all.")
]
RuleName = Annotated[
    str | None,
    typer.Option("--rule", help="How agents learn, and evidence comes together: see `consilience rules`."),
]
HostCount = Annotated[int | None, typer.Option("--hosts", help="Several hosts: how many.")]
HostId = Annotated[int | None, typer.Option("--host-id", help="Several hosts: which one this is, from 0.")]
HostTimeout = Annotated[int, typer.Option(min=1, help="Several hosts: seconds to wait for the others to come.")]


@app.command()
def run(
    experiment: Annotated[
        str, typer.Argument(help="A built-in experiment (see `consilience experiments`) or a TOML file.")
    ],
    settings: Settings = None,
    rounds: Annotated[int | None, typer.Option(help="How many rounds to play.")] = None,
    seed: Annotated[int | None, typer.Option(help="The first seed.")] = None,
    trust: Annotated[float | None, typer.Option(help="Star experiments: weight a that edges put on the hub.")] = None,
    rule: RuleName = None,
    data_dir: DataDir = None,
    out: Annotated[Path | None, typer.Option(help="The run's folder [default: runs/EXPERIMENT-N].")] = None,
    coordinator: Coordinator = None,
    hosts: HostCount = None,
    host_id: HostId = None,
    host_timeout: HostTimeout = 60,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Run an experiment; writes a folder with its configuration, record, summary and figures.

    On several hosts, start the same command on each, with its own --host-id (under SLURM or Open MPI without any of
    the three): the agents are spread over all of them, and the first one keeps the folder.
    """
    guard = prepare(Meeting(coordinator, hosts, host_id, host_timeout))
    from consilience.engines.hosts import agree, from_first, on_all
    from consilience.experiments import load
    from consilience.runs import run as runs

    options = {"rounds": rounds, "seed": seed, "networks.cooperating.trust": trust, "data_dir": data_dir}
    named = [f"{key}={value}" for key, value in options.items() if value is not None]

    with unwinding(), paths_given():
        config = on_all(lambda: load(experiment, [*(settings or []), *named], rule))
        agree("the description", config.model_dump(mode="json", exclude={"data_dir"}))
        folder = from_first(lambda: str(runs.begin(config, out)))
    return play(Path(folder), as_json, quiet, guard, data_dir)


@app.command()
def resume(
    folder: Annotated[Path, typer.Argument(help="The folder of a run that was interrupted.")],
    rounds: Annotated[int | None, typer.Option(help="Go on to this round instead of the one it was begun for.")] = None,
    data_dir: DataDir = None,
    coordinator: Coordinator = None,
    hosts: HostCount = None,
    host_id: HostId = None,
    host_timeout: HostTimeout = 60,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Carry an interrupted run on from its last checkpoint, with the numbers it would have had.

    On as many hosts as there are now, whatever their number was; only the first one needs the folder.
    """
    guard = prepare(Meeting(coordinator, hosts, host_id, host_timeout))
    from consilience.engines.hosts import agree, from_first
    from consilience.runs import run as runs

    agree("--rounds", {"rounds": rounds})
    if rounds is not None:
        with unwinding(), paths_given():
            from_first(lambda: runs.extend(folder, rounds))
    return play(folder, as_json, quiet, guard, data_dir)


@app.command()
def report(
    folders: Annotated[
        list[Path], typer.Argument(metavar="FOLDER...", help="The folder of a run, or those of all peers of a study.")
    ],
    to: Annotated[
        Path | None, typer.Option(help="Write them to another folder, e.g. to keep them with a paper.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Draw a run's figures and write its summary anew from its record.

    Of peers that learnt together, several folders (or homes) give what a simulation of all of them would have told, in
    the folder that --to names [default: runs/together-N].
    """
    with unwinding(), paths_given():
        if len(folders) == 1:
            from consilience.runs import run as runs

            to = to or folders[0]
            summary, missing = runs.report(folders[0], to), missing_data(folders[0])
        else:
            from consilience.learning import together
            from consilience.runs.folder import new_folder

            peers, missing = together.gathered(folders), ()  # what is refused makes no folder
            to = to or new_folder("together")
            summary = together.report(peers, to)
    show_summary(summary, to, as_json, quiet)
    if not (as_json or quiet):
        say_each(missing)


@app.command()
def experiments(as_json: AsJson = False) -> None:
    """List the built-in experiments."""
    from consilience.experiments import EXPERIMENTS
    from consilience.report.tables import table

    known = {name: experiment.summary for name, experiment in EXPERIMENTS.items()}
    if as_json:
        print_json(known)
    else:
        show(table(["experiment", "what it shows"], [[name, text] for name, text in known.items()]))


@app.command()
def rules(as_json: AsJson = False) -> None:
    """List the rules: how agents learn from their own data, and how everybody's evidence comes together."""
    from consilience.report.tables import table
    from consilience.task.rules import RULES

    known = {
        name: {"what": what, "learner": (learner or {"kind": "variational"})["kind"], "consensus": consensus["kind"]}
        for name, (what, learner, consensus) in RULES.items()
    }
    if as_json:
        print_json(known)
    else:
        show(
            table(
                ["rule", "what it does", "learner", "consensus"], [[name, *row.values()] for name, row in known.items()]
            )
        )


@app.command()
def config(
    experiment: Annotated[str, typer.Argument(help="A built-in experiment or a TOML file.")],
    settings: Settings = None,
    rule: RuleName = None,
    as_json: AsJson = False,
) -> None:
    """Print an experiment's whole configuration as TOML, to change and run: consilience run my.toml.

    Comments say what its fields mean. Of `learn`, whose data is yours, it is an example with files that are not there.
    """
    from consilience.described.commented import commented_toml
    from consilience.described.settings import to_toml
    from consilience.experiments import example

    loaded = example(experiment, settings or [], rule)
    if as_json:
        print_json(loaded.model_dump(mode="json", exclude_none=True))
    else:
        text = commented_toml(loaded)
        try:
            text.encode(sys.stdout.encoding)
        except UnicodeEncodeError:  # σ and … are only in the comments, most often
            text = to_toml(loaded)
            text.encode(sys.stdout.encoding)  # a letter that is lacking here must not become another one
        sys.stdout.write(text)


@app.command()
def theory(
    network: Annotated[
        str,
        typer.Argument(
            help="A kind (star, grid, ring, complete, path, erdos-renyi, watts-strogatz), W.csv / W.toml, or the "
            "recorded turns of a network that changes, RUN/turns-ARM.csv."
        ),
    ],
    edges: Annotated[int | None, typer.Option(help="star: number of edge agents.")] = None,
    trust: Annotated[float | None, typer.Option(help="star: weight a that edges put on the hub.")] = None,
    agents: Annotated[int | None, typer.Option(help="ring, path, complete, erdos-renyi, watts-strogatz: N.")] = None,
    rows: Annotated[int | None, typer.Option(help="grid.")] = None,
    columns: Annotated[int | None, typer.Option(help="grid.")] = None,
    neighbours: Annotated[int | None, typer.Option(help="watts-strogatz: links an agent.")] = None,
    probability: Annotated[
        float | None, typer.Option(help="erdos-renyi: of a link; watts-strogatz: of rewiring.")
    ] = None,
    directed: Annotated[bool | None, typer.Option("--directed", help="ring: hear only the agent before.")] = None,
    weights: Annotated[str | None, typer.Option(help="uniform or metropolis.")] = None,
    laziness: Annotated[float | None, typer.Option(help="Weight everybody keeps for itself before listening.")] = None,
    seed: Annotated[int | None, typer.Option(help="erdos-renyi, watts-strogatz.")] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            help="TOML: likelihoods = [agent][hypothesis][outcome] and truth = its number; or, for a linear-Gaussian "
            "model, second_moments = [agent][d][d], noise and offset (θ − θ*)."
        ),
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="ε of Theorem 1 [default: K/2].")] = None,
    delta: Annotated[float, typer.Option(help="δ of Theorem 1.")] = 0.05,
    rounds: Annotated[
        int, typer.Option(min=1, max=10**6, help="n for the exact means, and the most terms of Lemma 1's sum.")
    ] = 1000,
    as_json: AsJson = False,
) -> None:
    """Print what the theory says of a network: v, lambda_max, gap, Lemma 1, and with a model K and Theorem 1."""
    from consilience.command import theory as told
    from consilience.network.turn_files import is_turns_file

    given = {
        "edges": edges,
        "trust": trust,
        "agents": agents,
        "rows": rows,
        "columns": columns,
        "neighbours": neighbours,
        "probability": probability,
        "directed": directed,
        "weights": weights,
        "laziness": laziness,
        "seed": seed,
    }
    options = {name: value for name, value in given.items() if value is not None}
    with working("working out what the theory says …"):  # of a large network it takes minutes
        if is_turns_file(network) and not options:
            facts = told.describe_turns(network, model)
        else:
            built = told.network_from(network, options)
            facts = told.describe(built, rounds)
            if model is not None:
                facts |= told.describe_model(built, model, facts, epsilon, delta, rounds)
    if as_json:
        print_json(facts)
    else:
        for part in told.as_tables(facts):
            show(part)


app.command()(reproduce)
app.command()(new)
app.command()(predict)
app.command()(coefficients)
app.command()(export)
app.command()(compare)


@app.command()
def version(as_json: AsJson = False) -> None:
    """Print the version."""
    if as_json:
        print_json({"consilience": __version__})
    else:
        say(__version__)
