"""Every rule on four tasks: tuned alike on held-out training data, then three seeds on the test set.

    python benchmarks/rules.py tune|play|table [--json] [--out runs/rules] [--told results/rules]
        [--tasks STAR-M,…] [--rules sites,…] [--seeds 3]

`tune` plays, for every rule, the same number of trials (`CHOICES`) with one seed, judged by held-out training images:
a grid of four for `GRID_ROUNDS`, the `FINALISTS` best of them for as long as what they choose for (short trials alone
chose what is quick at first), then as long one beyond every end of the grid that the best lies at (`further`), and
keeps the best of the long ones; all stars take what was chosen on STAR-F, and `alone` what was chosen for the paper's
rule. `play` plays what was chosen with three seeds and judges it by the test set: one seed of everything, then
the next. Runs are played one on each core, in processes of their own. What is finished is not played again, unless
something else was chosen since, and what was stopped is carried on (runs are in OUT). What they tell is gathered in
TOLD/tuned.json and TOLD/played.json, from which `table` makes the table (`rules_table.py`), and which are all that
another machine needs to go on.
All numbers are of what an agent predicts with: what it has pooled (q).
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import queue
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

from consilience.files.strict_json import strict_json
from consilience.files.whole import write_atomically

HELD_OUT = 10_000
GRID_ROUNDS = 20
FINALISTS = 2
SEEDS = 3


class Compared(NamedTuple):
    """A task: an experiment with settings, for so many rounds, and an accuracy to be reached."""

    experiment: str
    rounds: int
    target: float | None = None
    settings: tuple[str, ...] = ()
    tuned_like: str | None = None
    held_out: int = HELD_OUT


# What is judged often is where a round is looked for; 16 draws of nine agents cost as much as ten rounds.
SAMPLES = "samples=16"
STAR = ("record_every=20", "record_also=[5,10,30,50]", SAMPLES)
TASKS = {
    "STAR-M": Compared(
        "star-mnist",
        60,
        0.975,
        (*STAR, "networks.cooperating.trust=0.5", "strangers=fashion-mnist"),
        tuned_like="STAR-F",
    ),
    "STAR-F": Compared("star-fmnist", 60, 0.87, (*STAR, "networks.cooperating.trust=0.7")),
    "AMB-F": Compared("ambiguous-fmnist", 60, settings=("record_every=20", SAMPLES), tuned_like="STAR-F"),
    "SKEW-F": Compared("skewed-fmnist", 50, settings=("record_every=25", SAMPLES)),
}
LEFT = 0.05  # of a step's size at the end of a run, whatever its length: everybody's steps shrink alike
# Four trials for everybody: four step sizes, or two and two values of what else matters most to the rule.
STEPS, FOUR_STEPS = ("learner.learning_rate", (0.02, 0.05)), ("learner.learning_rate", (0.01, 0.02, 0.05, 0.1))
SLOW = ("learner.curvature_decay", (0.9998, 0.99998))  # how slowly what an agent is given to say follows its data
CHOICES: dict[str, tuple[tuple[str, tuple[Any, ...]], ...]] = {
    "sites": (STEPS, SLOW),
    "sites-corrected": (("learner.learning_rate", (0.05, 0.1)), ("learner.correction", (0.5, 1.5))),
    "fedavg": (FOUR_STEPS,),
    "paper": (("learner.learning_rate", (0.001, 0.002)), ("learner.kl_weight", (0.1, 1.0))),
    "natural": (STEPS, ("learner.prior_sd", (0.05, 0.2))),
    "tracking": (STEPS, ("consensus.damping", (0.1, 0.3))),
    "gossip": (FOUR_STEPS,),
    "fedprox": (STEPS, ("learner.proximal", (0.01, 0.1))),
    # One agent with all data makes nine times as many steps in a round: the paper's longest are too long for it.
    "central": (("learner.learning_rate", (0.0005, 0.001)), ("learner.kl_weight", (0.1, 1.0))),
    "gradient-tracking": (("learner.learning_rate", (0.02, 0.05, 0.1, 0.2)),),  # without momentum, so longer steps
}


TUNED_LIKE = {"alone": "paper"}  # whose learner is theirs
RULES = (*CHOICES, *TUNED_LIKE)
QUICK = ("learner.estimator=weights",)  # for the paper's learner: half the time of drawing outputs


def settings_of(rule: str, chosen: Mapping[str, Any], rounds: int) -> list[str]:
    """Of a run by a rule: what was chosen, steps that shrink, and what is always so."""
    decay = f"learner.decay={LEFT ** (1 / rounds):.4f}"
    return [f"rounds={rounds}", decay, *(f"{name}={value}" for name, value in chosen.items()), *always(rule)]


def always(rule: str) -> tuple[str, ...]:
    """The estimator that all rules with the paper's learner share."""
    return QUICK if TUNED_LIKE.get(rule, rule) in ("paper", "central") else ()


def trials(rule: str) -> Iterator[dict[str, Any]]:
    """All settings that are tried for a rule."""
    names = [name for name, _ in CHOICES[rule]]
    for values in itertools.product(*(values for _, values in CHOICES[rule])):
        yield dict(zip(names, values, strict=True))


def further(rule: str, best: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """One step beyond every end of the grid that the best trial lies at, for every rule alike.

    >>> [list(further("fedavg", {"learner.learning_rate": rate})) for rate in (0.1, 0.05)]
    [[{'learner.learning_rate': 0.2}], []]
    >>> list(further("sites", {"learner.learning_rate": 0.03, "learner.curvature_decay": 0.99998}))
    [{'learner.learning_rate': 0.03, 'learner.curvature_decay': 0.999998}]
    """
    for name, values in CHOICES[rule]:
        ordered = sorted(values)
        ends = {ordered[0]: ordered[1], ordered[-1]: ordered[-2]}
        if best[name] in ends:
            yield {**best, name: beyond(name, best[name], ends[best[name]])}


def beyond(name: str, end: float, before: float) -> float:
    """As much again as from the last value but one to the last; of a decay, in its distance from 1."""
    if name.endswith("curvature_decay"):
        return 1 - float(f"{(1 - end) ** 2 / (1 - before):.3g}")
    return float(f"{end**2 / before:.3g}")


def best_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What was chosen in the best of some trials."""
    best: dict[str, Any] = max(rows, key=accuracy_of)["chosen"]
    return best


def accuracy_of(row: dict[str, Any]) -> float:
    """Of a trial; nothing is worse than one that failed."""
    return row["accuracy"] or 0.0


def told_by(folder: Path, experiment: str, rule: str, settings: list[str]) -> dict[str, Any]:
    """Play a run, or what is left of it; its first arm at the end, and how it got there."""
    from consilience.experiments import load
    from consilience.runs import run
    from consilience.runs.folder import facts

    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        run.begin(load(experiment, settings, rule), folder)
    summary = run.carry_on(folder)
    _, record = run.recorded(folder)
    arm = record.arms()[0]
    return {
        "end": summary["arms"][arm],
        "rounds": record.rounds(arm).tolist(),
        "pooled_accuracy": record.each(arm, "pooled_accuracy").mean(axis=(1, 2)).round(6).tolist(),
        "hours": facts(folder).get("hours"),
    }


class Kept:
    """What runs told, in a file: by task, rule and whatever tells their runs apart."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.rows: list[dict[str, Any]] = json.loads(file.read_text()) if file.exists() else []

    def find(self, **what: Any) -> list[dict[str, Any]]:
        """The rows of this task, rule, …"""
        return [row for row in self.rows if all(row.get(name) == value for name, value in what.items())]

    def drop(self, **what: Any) -> None:
        """Forget the rows of this task, rule, …, if there are any, as soon as something is written down."""
        gone = self.find(**what)
        self.rows = [row for row in self.rows if row not in gone]

    def add(self, **row: Any) -> None:
        """One more, written down at once."""
        self.rows.append(row)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.file, f"{strict_json(self.rows, indent=1)}\n".encode())


class Case(NamedTuple):
    """A run that is wanted: what tells its row apart from others, and what to type for it."""

    row: dict[str, Any]
    folder: Path
    experiment: str
    rule: str
    settings: list[str]


def in_a_process(case: Case, core: int) -> dict[str, Any] | None:
    """What the run of a case tells, played on one core; None where beliefs were no numbers any more."""
    words = [str(case.folder), case.experiment, case.rule, *case.settings]
    done = subprocess.run(
        [sys.executable, __file__, "--case", str(core), *words], stdout=subprocess.PIPE, text=True, check=True
    )
    told: dict[str, Any] | None = json.loads(done.stdout.splitlines()[-1])
    return told


def of_a_case(core: str, folder: str, experiment: str, rule: str, *settings: str) -> None:
    """The process of one case: its last line is what the run tells."""
    os.sched_setaffinity(0, [int(core)])
    from consilience.machine.runtime import keep_compiled_programs, use_all_cores
    from consilience.runs.play import RunFailed

    use_all_cores()
    keep_compiled_programs()
    try:
        told = told_by(Path(folder), experiment, rule, list(settings))
    except RunFailed:  # the worst there is
        told = None
    print(strict_json(told, indent=None))


def play_all(cases: list[Case], keep: Callable[[Case, dict[str, Any] | None], None]) -> None:
    """Play one case on every core at a time, in their order, and keep what each tells as soon as it has ended."""
    cores: queue.Queue[int] = queue.Queue()
    for core in sorted(os.sched_getaffinity(0)):
        cores.put(core)

    def one(case: Case) -> tuple[Case, dict[str, Any] | None]:
        core = cores.get()
        try:
            return case, in_a_process(case, core)
        finally:
            cores.put(core)

    with ThreadPoolExecutor(cores.qsize()) as pool:
        played = [pool.submit(one, case) for case in cases]
        try:
            for done in as_completed(played):
                keep(*done.result())
        finally:
            pool.shutdown(cancel_futures=True)


def tune(options: argparse.Namespace) -> None:
    """Every trial of every rule, on held-out training images."""
    kept = Kept(options.told / "tuned.json")

    def keep(case: Case, told: dict[str, Any] | None) -> None:
        accuracy = None if told is None else told["end"]["pooled_accuracy"]
        kept.add(**case.row, accuracy=accuracy)
        words = "failed" if accuracy is None else f"{accuracy:.2%}"
        print(*case.row.values(), words, flush=True)

    for _ in ("the grid", "its best for longer", "beyond it"):
        cases = [
            trial(options, name, rule, rounds, chosen)
            for name, rule in itertools.product(options.tasks, CHOICES)
            if TASKS[name].tuned_like is None and rule in options.rules
            for rounds, chosen in all_trials(kept, name, rule)
        ]
        play_all([case for case in cases if not kept.find(**case.row)], keep)


def all_trials(tuned: Kept, name: str, rule: str) -> list[tuple[int, dict[str, Any]]]:
    """What to try for how many rounds, as far as it is known: what comes next follows from what has been played."""

    def played(wanted: list[tuple[int, dict[str, Any]]]) -> list[dict[str, Any]]:
        found = [tuned.find(task=name, rule=rule, rounds=rounds, chosen=chosen) for rounds, chosen in wanted]
        return [rows[0] for rows in found if rows]

    rounds = TASKS[name].rounds
    grid = [(GRID_ROUNDS, chosen) for chosen in trials(rule)]
    if len(told := played(grid)) < len(grid):
        return grid
    finals = [(rounds, row["chosen"]) for row in sorted(told, key=accuracy_of, reverse=True)[:FINALISTS]]
    if len(told := played(finals)) < len(finals):
        return grid + finals
    return grid + finals + [(rounds, chosen) for chosen in further(rule, best_of(told))]


def trial(options: argparse.Namespace, name: str, rule: str, rounds: int, chosen: dict[str, Any]) -> Case:
    """One trial of a rule on a task."""
    task = TASKS[name]
    short = [f"record_every={rounds}", "record_also=[]", "told_over=1", "checkpoint_every=10"]
    settings = [*task.settings, f"validation={task.held_out}", *short, *settings_of(rule, chosen, rounds)]
    folder = options.out / "tuning" / name / rule / f"{rounds}_{words_of(chosen)}"
    return Case(
        {"task": name, "rule": rule, "rounds": rounds, "chosen": chosen},
        folder,
        task.experiment,
        rule,
        settings,
    )


def words_of(chosen: Mapping[str, Any]) -> str:
    """What was chosen, as part of a folder's name: a run is only carried on with the constants that it began with."""
    return "_".join(map(str, chosen.values()))


def chosen_for(tuned: Kept, name: str, rule: str) -> dict[str, Any]:
    """The best of a rule's trials on a task, or of the task or rule that it takes its settings from."""
    rule = TUNED_LIKE.get(rule, rule)
    name = TASKS[name].tuned_like or name
    wanted = all_trials(tuned, name, rule)
    rows = [tuned.find(task=name, rule=rule, rounds=rounds, chosen=chosen) for rounds, chosen in wanted]
    if not all(rows):
        raise SystemExit(f"{rule} has not been tuned on {name}; type: python benchmarks/rules.py tune")
    return best_of([row for (row, *_), (rounds, _) in zip(rows, wanted, strict=True) if rounds == TASKS[name].rounds])


def play(options: argparse.Namespace) -> None:
    """What was chosen, with several seeds, on the test set."""
    tuned, kept = Kept(options.told / "tuned.json"), Kept(options.told / "played.json")
    cases = []
    for seed, (name, rule) in itertools.product(range(options.seeds), itertools.product(options.tasks, options.rules)):
        task, row = TASKS[name], {"task": name, "rule": rule, "seed": seed}
        chosen = chosen_for(tuned, name, rule)
        if not kept.find(**row, chosen=chosen):
            settings = [*task.settings, f"seed={seed}", *settings_of(rule, chosen, task.rounds)]
            folder = options.out / "played" / name / rule / f"{seed}_{words_of(chosen)}"
            kept.drop(**row)  # something else was chosen then
            cases.append(Case({**row, "chosen": chosen}, folder, task.experiment, rule, settings))

    def keep(case: Case, told: dict[str, Any] | None) -> None:
        if told is None:
            print(*case.row.values(), "failed", flush=True)
            return
        kept.add(**case.row, **told)
        print(*case.row.values(), f"{told['end']['pooled_accuracy']:.2%}", flush=True)

    play_all(cases, keep)


def main() -> None:
    """Tune, play or tell."""
    if sys.argv[1:2] == ["--case"]:
        of_a_case(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", nargs="?", choices=("tune", "play", "table"), default="table")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("runs/rules"))
    parser.add_argument("--told", type=Path, default=Path("results/rules"))
    parser.add_argument("--tasks", type=lambda text: text.split(","), default=list(TASKS))
    parser.add_argument("--rules", type=lambda text: text.split(","), default=list(RULES))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args()
    if options.what != "table":
        (tune if options.what == "tune" else play)(options)
    from rules_table import markdown, table

    rows = table(options.told, options.tasks, options.rules)
    print(json.dumps(rows, indent=2) if options.json else markdown(rows))


if __name__ == "__main__":
    main()
