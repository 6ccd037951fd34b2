"""Runs side by side: what differs in their descriptions, and their final scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from consilience import experiments
from consilience.errors import InputError
from consilience.report.tables import as_text
from consilience.runs import run
from consilience.runs.description import RunConfig
from consilience.runs.record import HELD_OUT_ROWS, Record, average_score, standard_error

NOT_COMPARED = {"files"}  # checksums: told where a file differs whose name does not


class Score(NamedTuple):
    """An average over agents at the end; its standard error where several seeds have rows."""

    value: float
    standard_error: float | None = None


class Comparison(NamedTuple):
    """Of runs, in the order given: values by field where they differ (None: there is none), and scores by arm."""

    runs: tuple[str, ...]
    rounds: tuple[int, ...]
    differences: dict[str, list[Any]]
    scores: dict[str, dict[str, list[Score | None]]]

    def __repr__(self) -> str:
        told = [(f"{arm}: {name}", row) for arm, rows in self.scores.items() for name, row in rows.items()]
        by_run = zip(*([None if each is None else each.value for each in row] for _, row in told), strict=True)
        scores = dict(zip(self.runs, by_run, strict=True))
        return as_text({"at the last recorded round": [name for name, _ in told], **scores}, most=len(told))

    def as_values(self) -> dict[str, Any]:
        """The same for JSON."""
        told = {
            arm: {name: [None if each is None else each._asdict() for each in row] for name, row in rows.items()}
            for arm, rows in self.scores.items()
        }
        return {"runs": self.runs, "rounds": self.rounds, "differences": self.differences, "scores": told}


def compare(folders: Sequence[str | Path]) -> Comparison:
    """Compare finished runs, or what others have recorded so far."""
    if len(folders) < 2:
        raise InputError(f"RUN: two or more runs are compared, got {len(folders)}")
    if len(set(map(str, folders))) < len(folders):
        raise InputError("RUN: a run is there twice")
    read = [run.recorded(Path(folder)) for folder in folders]
    names = tuple(map(str, folders))
    rounds = [max(int(record.rounds(arm)[-1]) for arm in record.arms()) for _, record in read]
    differing = differences([config for config, _ in read])
    if any(last != config.rounds for last, (config, _) in zip(rounds, read, strict=True)):  # not finished
        differing["last recorded round"] = list(rounds)
    scores = [_scores(config, record, name) for name, (config, record) in zip(names, read, strict=True)]
    return Comparison(names, tuple(rounds), differing, _beside(names, scores))


def differences(configs: Sequence[RunConfig]) -> dict[str, list[Any]]:
    """The fields, with dots, in which descriptions differ, and what each has there."""
    flat = [dict(_dotted(config.model_dump(mode="json", exclude_none=True))) for config in configs]
    fields = dict.fromkeys(field for each in flat for field in each)
    rows = {field: [each.get(field) for each in flat] for field in fields}
    found = {field: row for field, row in rows.items() if any(value != row[0] for value in row)}
    by_name = {field for field in found if field.partition(".")[0] not in NOT_COMPARED}
    # A file of another name is told by its name; only of one that was changed the checksum is of interest.
    return {
        field: row if field in by_name else [None if value is None else f"sha256 {value[:12]}…" for value in row]
        for field, row in found.items()
        if field in by_name or field.partition(".")[2] not in by_name
    }


def _dotted(values: Any, inside: str = "") -> Any:
    """Each field with its place; a list is one value."""
    for key, value in values.items():
        place = f"{inside}{key}"
        if isinstance(value, Mapping) and value:
            yield from _dotted(value, f"{place}.")
        else:
            yield place, value


def _scores(config: RunConfig, record: Record, name: str) -> dict[str, dict[str, Score]]:
    """The final scores of every arm."""
    compared, told_over = experiments.compared(config, record), getattr(config, "told_over", 1)
    if not compared:
        raise InputError(f"run: '{name}' cannot be compared: {config.experiment} has no scores of predictions")
    return {
        arm: {shown: _final(record, arm, metric, told_over) for shown, metric in compared.items()}
        for arm in record.arms()
    }


def _final(record: Record, arm: str, metric: str, told_over: int) -> Score:
    """As a run's own summary has it: agents count by the rows that they held out, where these judge them."""
    each = record.last(arm, metric, told_over)  # seeds, agents
    counts = record.each(arm, HELD_OUT_ROWS)[-1] if "held_out_" in metric else np.ones(each.shape)
    score = metric.rpartition("_")[2]
    averages = np.array([average_score(score, *row) for row in zip(each, counts, strict=True)], float)
    return Score(float(averages.mean()), standard_error(averages))


def _beside(
    names: Sequence[str], scores: Sequence[dict[str, dict[str, Score]]]
) -> dict[str, dict[str, list[Score | None]]]:
    """Arms and scores that any run has; refused where two runs have no score in common."""
    told = [{score for rows in each.values() for score in rows} for each in scores]
    for name, own in zip(names, told, strict=True):
        if not own & told[0]:
            raise InputError(f"run: '{name}' cannot be compared with '{names[0]}': they have no score in common")
    arms = dict.fromkeys(arm for each in scores for arm in each)
    kept = dict.fromkeys(score for each in scores for rows in each.values() for score in rows)
    return {arm: {score: [each.get(arm, {}).get(score) for each in scores] for score in kept} for arm in arms}
