"""What the study of rules says: one table, and curves of every rule on every task.

    python benchmarks/rules_table.py [--told results/rules] [--figure FILE] [--json | --short]

Means over seeds with standard errors, of what agents predict with, on the test set. Seconds to a target are its rounds
times the seconds that a round takes on a quiet machine, which `time_to_accuracy.py --json` has measured
(TOLD/seconds-TASK.json).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from rules import RULES, TASKS, Kept

COLUMNS = {
    "average": "pooled_accuracy",
    "centre": "pooled_center_accuracy",
    "worst": "pooled_worst_accuracy",
    "NLL": "pooled_nll",
    "ECE": "pooled_ece",
    "AUROC": "pooled_stranger_auroc",
}


def rounds_to(target: float, rounds: list[int], accuracy: list[float]) -> int | None:
    """The first recorded round at which an accuracy is reached."""
    return next((number for number, reached in zip(rounds, accuracy, strict=True) if reached >= target), None)


def row_of(name: str, rule: str, runs: list[dict[str, Any]], seconds: float | None) -> dict[str, Any]:
    """Means and standard errors over seeds."""
    told: dict[str, Any] = {"task": name, "rule": rule, "seeds": len(runs), "chosen": runs[0]["chosen"]}
    for column, key in COLUMNS.items():
        if key not in runs[0]["end"]:
            continue
        values = np.array([run["end"][key] for run in runs], float)
        told[column] = float(values.mean())
        told[f"{column}_se"] = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
    told["MB a round"] = runs[0]["end"].get("bytes_a_round", 0) / 1e6
    target = TASKS[name].target
    if target is not None:
        reached = [rounds_to(target, run["rounds"], run["pooled_accuracy"]) for run in runs]
        told |= {"target": target, "rounds to it": reached, "seconds a round": seconds}
    return told


def seconds_of(told: Path, name: str) -> dict[str, float]:
    """The seconds that a round takes by every rule, where they have been measured."""
    file = told / f"seconds-{name}.json"
    rows = json.loads(file.read_text())["rules"] if file.exists() else []
    return {row["rule"]: row["seconds_a_round"] for row in rows}


def table(told: Path, tasks: list[str], rules: list[str]) -> list[dict[str, Any]]:
    """Every task and rule that has been played."""
    kept = Kept(told / "played.json")
    rows: list[dict[str, Any]] = []
    for name in tasks:
        seconds = seconds_of(told, name)
        played = ((rule, kept.find(task=name, rule=rule)) for rule in rules)
        rows += [row_of(name, rule, runs, seconds.get(rule)) for rule, runs in played if runs]
    return rows


def markdown(rows: list[dict[str, Any]]) -> str:
    """A table for people."""
    heads = ("task", "rule", "seeds", "average", "centre", "worst", "NLL", "ECE", "AUROC", "rounds", "s", "MB a round")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in rows:
        shares = [_with_error(row, column, ".2%") for column in ("average", "centre", "worst")]
        scores = [_with_error(row, "NLL", ".3f"), _with_error(row, "ECE", ".4f"), _with_error(row, "AUROC", ".3f")]
        reached = row.get("rounds to it", [])
        rounds = ", ".join("–" if each is None else str(each) for each in reached)
        sums = "" if not reached or None in reached else np.mean(reached) * (row["seconds a round"] or np.nan)
        seconds = "" if sums == "" or not np.isfinite(sums) else f"{sums:.0f}"
        sent = f"{row['MB a round']:.1f}"
        cells = [row["task"], row["rule"], str(row["seeds"]), *shares, *scores, rounds, seconds, sent]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _with_error(row: dict[str, Any], column: str, form: str) -> str:
    if column not in row:
        return ""
    error = row[f"{column}_se"]
    return f"{row[column]:{form}}" + ("" if error is None else f" ± {error:{form}}")


SHORT = {  # what is told of every task in a table with one row for a rule
    "STAR-M": {"average": ".2%", "NLL": ".3f", "AUROC": ".3f"},
    "STAR-F": {"average": ".2%", "NLL": ".3f"},
    "AMB-F": {"average": ".2%", "NLL": ".3f"},
    "SKEW-F": {"average": ".2%", "NLL": ".3f", "ECE": ".3f"},
}


def short(rows: list[dict[str, Any]]) -> str:
    """One row for a rule: averages with their standard errors, and a little more."""
    told = [(name, column, form) for name, columns in SHORT.items() for column, form in columns.items()]
    heads = ["rule", *(name if column == "average" else column for name, column, _ in told)]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for rule in dict.fromkeys(row["rule"] for row in rows):
        of_rule = {row["task"]: row for row in rows if row["rule"] == rule}
        cells = [
            _with_error(of_rule.get(name, {}), column, form)
            if column == "average"
            else f"{of_rule[name][column]:{form}}"
            if name in of_rule
            else ""
            for name, column, form in told
        ]
        lines.append(f"| `{rule}` | {' | '.join(cells)} |")
    return "\n".join(lines)


STYLES = {  # who counts data once is blue, who pools by trust is orange, points are dashed
    "sites": ("#0072B2", "-"),
    "sites-corrected": ("#003F66", "-"),
    "tracking": ("#56B4E9", "-"),
    "natural": ("#E69F00", "-"),
    "paper": ("#D55E00", "-"),
    "fedavg": ("#000000", "--"),
    "fedprox": ("#777777", "--"),
    "gossip": ("#009E73", "--"),
    "gradient-tracking": ("#CC79A7", "--"),
    "central": ("#BBBBBB", ":"),
}


def figure(told: Path, file: Path) -> None:
    """Curves of every rule on every task; those who are alone stay where they are."""
    from consilience.report.style import accuracy_axis, canvas, finish

    kept = Kept(told / "played.json")
    drawn, panels = canvas(1, len(TASKS), 3.4 * len(TASKS), 4.6)
    for axes, name in zip(panels, TASKS, strict=True):
        ends = []
        for rule, (colour, line) in STYLES.items():
            runs = kept.find(task=name, rule=rule)
            if not runs:
                continue
            curves = [dict(zip(run["rounds"], run["pooled_accuracy"], strict=True)) for run in runs]
            rounds = sorted(set.intersection(*map(set, curves)))  # not all were looked at equally often
            average = [np.mean([curve[number] for curve in curves]) for number in rounds]
            label = rule if axes is panels[0] else None
            axes.plot(rounds, average, line, color=colour, label=label, lw=1.4)
            ends += [average[min(1, len(average) - 1)], average[-1]]
        axes.set(title=name, xlabel="round")
        if ends:
            accuracy_axis(axes, max(min(ends) - 0.02, 0.5), max(ends))
    panels[0].set_ylabel("average accuracy on the test set")
    drawn.legend(loc="outside upper center", ncols=5)
    finish(drawn, "Solid: beliefs; dashed: points; dotted: all data in one place. What agents predict with (q).", file)


def main() -> None:
    """Print the table, and draw the figure where it is wished."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--told", type=Path, default=Path("results/rules"))
    parser.add_argument("--figure", type=Path)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true")
    form.add_argument("--short", action="store_true", help="one row for a rule")
    options = parser.parse_args()
    rows = table(options.told, list(TASKS), list(RULES))
    print(json.dumps(rows, indent=2) if options.json else short(rows) if options.short else markdown(rows))
    if options.figure is not None:
        figure(options.told, options.figure)


if __name__ == "__main__":
    main()
