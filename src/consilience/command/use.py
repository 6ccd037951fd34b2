"""The verbs that use what was learnt: predict, export, coefficients, compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from consilience.command.ends import paths_given
from consilience.command.play import prepare
from consilience.command.shared import AsJson, Quiet, print_json, say, show, working
from consilience.errors import InputError, brief
from consilience.machine.stopping import unwinding

SHOWN_ROWS = 10  # of predictions, on a terminal
SHOWN_ALONE = 6  # agents beside each other, on a terminal
AT_REST = 0.01  # of a standard deviation: what the next round may move a mean by
BELIEFS = ("pooled", "own")

Run = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
Agent = Annotated[str, typer.Option(metavar="NUMBER_OR_NAME", help="Whose belief: a name, or a number from 0.")]
Force = Annotated[bool, typer.Option("--force", help="Write over a file that is there.")]


def predict(
    folder: Run,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="New rows: .csv, .parquet, or .npz with an array x.")],
    agent: Agent = "0",
    level: Annotated[float, typer.Option(help="Share that intervals hold.")] = 0.9,
    belief: Annotated[
        str, typer.Option(metavar="pooled|own|FILE", help="Pooled, own, or one that `consilience export` wrote.")
    ] = "pooled",
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a .csv or .parquet file.")] = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Predict new rows with what an agent learnt: each with its probabilities or interval, and its doubt in two.

    Aleatoric doubt is what noise leaves open; epistemic doubt is what more data would tell.
    """
    prepare()
    with unwinding(), paths_given(), working("predicting …"):
        from consilience.learning import export as exported
        from consilience.learning.fit import Fit
        from consilience.learning.written import TABLES, check_out, write_columns
        from consilience.models.likelihoods.likelihood import require_level

        require_level(level)
        if out is not None:
            check_out(out, TABLES, force)
            if out.exists() and file.exists() and out.samefile(file):
                raise InputError(f"--out: '{out}' is what is read")
        fit = Fit(folder)
        missing, number = missing_data(fit.folder), fit.number(agent)
        given: Any = belief if belief in BELIEFS else exported.read(_belief_file(belief), "--belief")
        found = fit.predict(fit.read_inputs(file, "FILE"), number, level, given)
        if out is not None:
            write_columns(out, found.named())
    who = fit.agents[number] if belief in BELIEFS else str(given.about["agent"])
    if as_json:
        told: dict[str, Any] = {"run": str(folder), "agent": who, "level": level, "rows": len(found)}
        if out is not None:
            print_json(told | {"wrote": str(out)})
        else:
            columns = {name: values.tolist() for name, values in found.named().items()}
            rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
            print_json(told | {"predictions": rows})
    elif not quiet:
        _show_predictions(found, who, out)
        if fit.of_points and belief in BELIEFS:
            say("weights are points by this run's rule, without doubt of their own: epistemic is 0, up to rounding")
        say_each(missing)


def missing_data(folder: Path) -> tuple[str, ...]:
    """Whose data is not in what a peer has learnt, where there is anybody; read before anything is shown or written."""
    from consilience.runs.heard import participants

    taking_part = participants(folder)
    return (taking_part.note,) if taking_part is not None and taking_part.note else ()


def say_each(lines: tuple[str, ...]) -> None:
    """A line each, if there are any."""
    for line in lines:
        say(line)


def _belief_file(belief: str) -> Path:
    if not Path(belief).suffix:
        raise InputError(f"--belief: must be pooled, own or a .safetensors file, got {brief(belief)}")
    return Path(belief)


def _show_predictions(found: Any, who: str, out: Path | None) -> None:
    from consilience.report.tables import table

    first = zip(*(values[:SHOWN_ROWS].tolist() for values in found.named().values()), strict=True)
    ends = "" if found.label_names else f"; low to high holds {100 * found.level:g} %"
    rows = [[number + 1, *row] for number, row in enumerate(first)]
    show(table(["row", *found.columns], rows, f"What {who} predicts{ends}"))
    rows_in_all = "1 row" if len(found) == 1 else f"{len(found):,} rows"
    if out is not None:
        say(f"wrote {out}: {rows_in_all}")
    elif len(found) > SHOWN_ROWS:
        say(f"the first {SHOWN_ROWS} of {rows_in_all}; --out FILE writes all")


def export(
    folder: Run,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The .safetensors file that is written.")],
    agent: Agent = "0",
    belief: Annotated[
        str, typer.Option(metavar="pooled|own", help="What it holds having heard the others, or published.")
    ] = "pooled",
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write an agent's belief to a file for other programs: means and sds by parameter, with what they are about."""
    prepare()
    with unwinding(), paths_given():
        from consilience.learning.export import ENDING
        from consilience.learning.fit import Fit
        from consilience.learning.written import check_out

        check_out(out, (ENDING,), force)
        if belief not in BELIEFS:
            raise InputError(f"--belief: must be pooled or own, got {brief(belief)}")
        fit = Fit(folder)
        which: Any = belief
        fit.export(out, agent, which, force)
    size = fit.learnt.model.size
    who = fit.agents[fit.number(agent)]
    if as_json:
        print_json({"run": str(folder), "agent": who, "belief": belief, "parameters": size, "wrote": str(out)})
    elif not quiet:
        say(f"wrote {out}: what {who} believes of {size:,} parameters, means and sds")


def coefficients(
    folder: Run,
    agent: Annotated[
        str | None,
        typer.Option(metavar="NUMBER_OR_NAME", help="Whose belief [default: the first's, and everybody alone]."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the coefficients of a model without hidden layers in the units of the data, with 95 % intervals.

    Where the run also let agents learn alone (--set alone=true), what each then found is beside it. Intervals are the
    belief's: by the rule `laplace` those of a regression on all data; by the paper's, weights are independent in it,
    and data used again in every round counts again.
    """
    prepare()
    with unwinding(), paths_given():
        from consilience.learning.fit import Fit
        from consilience.runs.heard import participants
        from consilience.task.consensus import ALONE

        fit = Fit(folder)
        together = fit.coefficients(agent or 0)
        asked = range(len(fit.agents)) if agent is None else [fit.number(agent)]
        has_alone = ALONE in fit.arms
        of_peer, missing = participants(fit.folder) is not None, missing_data(fit.folder)
        alone = {fit.agents[k]: fit.coefficients(k, arm=ALONE) for k in asked} if has_alone else {}
    who = fit.agents[fit.number(agent or 0)]
    if as_json:
        told = {"run": str(folder), "agent": who, "of": together.of, "level": together.level}
        told["together"] = _lines(together)
        told["alone"] = {name: _lines(own) for name, own in alone.items()} if has_alone else None
        print_json(told)
    else:
        _show_coefficients(together, alone, who, fit.of_points)
        say(_of_intervals(fit, agent))
        say_each(missing)
        if not alone and not of_peer:
            say("what agents find alone is not there; `consilience run … --set alone=true` adds it")
        elif len(alone) > SHOWN_ALONE:
            say(f"the first {SHOWN_ALONE} of {len(alone)} agents alone; --agent NAME shows another one, --json all")


def _lines(found: Any) -> list[dict[str, Any]]:
    columns = {name: list(map(_plain, values)) for name, values in found.columns.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _of_intervals(fit: Any, agent: Any = None) -> str:
    """What kind of intervals these are."""
    from consilience.runs.heard import listed, participants

    if fit.of_points:
        return "weights are points by this run's rule, which do not say how sure they are"
    if fit.config.learner.kind == "laplace" and fit.config.consensus.kind in ("sites", "tracking"):
        agent = fit.number(agent or 0)
        if (moves := fit.unsettled(agent)) > AT_REST:
            return (
                f"not at rest yet: the next round would move a mean by {moves:.2g} of its standard deviations, so this "
                "is no regression on everybody's data; play more rounds"
            )
        held_out = sum(fit.record.shares.get("held_out_rows") or ())
        if (taking_part := participants(fit.folder)) is not None:
            rows = f"the data of {listed(taking_part.present)}"
            rows += " (each without the rows that it holds out)" if held_out else ""
        elif held_out:
            rows = f"all rows but the {held_out:,} held out (none are with a test file)"
        else:
            rows = "everybody's data"
        return f"means and intervals are those of a regression on {rows}, with the run's prior"
    return (
        "intervals are the belief's own; as a rule they are narrower than a regression on all the data would give, "
        "which `consilience run … --rule laplace` does"
    )


def _show_coefficients(found: Any, alone: dict[str, Any], who: str, of_points: bool) -> None:
    from consilience.report.tables import shown, table

    def interval(low: float, high: float) -> str:
        return f"{shown(float(low))} to {shown(float(high))}"

    cells = found.columns
    has_unit = any(cells["unit"])
    level = [] if of_points else [f"{100 * found.level:g} % interval"]
    heads = ["", *(["unit"] if has_unit else []), *(["value"] if of_points else ["mean", "sd"]), *level]
    heads += [found.ratio_name, *level] if found.ratio_name else []
    beside = dict(list(alone.items())[:SHOWN_ALONE])
    heads += [f"{name} alone" for name in beside]
    rows = []
    for k, name in enumerate(found.names()):
        row = [name, *([cells["unit"][k]] if has_unit else []), float(cells["mean"][k])]
        row += [] if of_points else [float(cells["sd"][k]), interval(cells["low"][k], cells["high"][k])]
        if found.ratio_name:
            row += [float(cells["ratio"][k])]
            row += [] if of_points else [interval(cells["ratio_low"][k], cells["ratio_high"][k])]
        for own in beside.values():
            sd = "" if of_points else f" ± {own.columns['sd'][k]:.2g}"
            row += [f"{own.columns['mean'][k]:.3g}{sd}"]
        rows.append(row)
    show(table(heads, rows, f"What {who} holds, having heard the others, of the {found.of}"), whole=True)


def compare(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN", help="The folders of two or more runs.")],
    as_json: AsJson = False,
) -> None:
    """Put runs side by side: what differs in their descriptions, and final scores with standard errors over seeds."""
    with unwinding(), paths_given():
        from consilience.learning.comparison import compare as compared

        found = compared(folders)
    if as_json:
        print_json(found.as_values())
        return
    from consilience.report.tables import shown, table

    def told(score: Any) -> Any:
        if score is None or score.standard_error is None:
            return None if score is None else score.value
        return f"{shown(score.value)} ± {score.standard_error:.2g}"

    rows = [
        [field, *(value if value is None or isinstance(value, bool | int | float) else _short(value) for value in row)]
        for field, row in found.differences.items()
    ]
    heads = list(found.runs)
    if rows:
        show(table(["", *heads], rows, "What differs"))
    else:
        say("their descriptions are the same")
    scores = [
        [f"{arm}: {name}", *map(told, row)]
        for arm, by_name in found.scores.items()
        for name, row in by_name.items()
        if any(score is not None for score in row)
    ]
    errors = any(score is not None and score.standard_error for rows in found.scores.values() for row in rows.values()
                 for score in row)  # fmt: skip
    with_errors = " ± standard errors over seeds" if errors else ""
    show(table(["", *heads], scores, f"At the last recorded round, averages over agents{with_errors}"))


def _short(value: Any) -> str:
    """A value of a description, in a cell."""
    return value if isinstance(value, str) else brief(value)
