"""What columns may mean, proposed from what is in them, and where agents differ: for a person to read and correct."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import reduce
from typing import NamedTuple

from consilience.data.cells import ABSENT, meaning
from consilience.data.labels import told_apart, unfit
from consilience.data.owners import in_order
from consilience.data.survey import Found, Moments
from consilience.errors import InputError, brief
from consilience.task.columns import AnyColumn, Category, Ignore, Label, Number, Target, listed
from consilience.task.differences import called_otherwise, differences

MOST_LEVELS = 100
FEW = 5  # rows that are too few to tell a name of each from a category

Survey = Mapping[str, Mapping[str, Found]]  # by agent, then by column


class Answer(NamedTuple):
    """What is to be predicted."""

    column: str
    label: bool
    counts: bool = False


class Proposal(NamedTuple):
    """Columns, what a person should know of each, and those with missing values."""

    columns: dict[str, AnyColumn]
    remarks: dict[str, list[str]]
    missing: frozenset[str]

    @property
    def notes(self) -> list[str]:
        """All remarks."""
        return [f"column {brief(name)}: {said}" for name, remarks in self.remarks.items() for said in remarks]


def propose(survey: Survey, answer: Answer) -> Proposal:
    """A description of the columns of all agents."""
    names = list(dict.fromkeys(name for own in survey.values() for name in own))
    if answer.column not in names:
        raise InputError(f"{_option(answer)}: no column {brief(answer.column)}, there are {listed(names)}")
    columns: dict[str, AnyColumn] = {}
    remarks: dict[str, list[str]] = {}
    missing = set()
    for name in names:
        having = {agent: own[name] for agent, own in survey.items() if name in own}
        lacking = [agent for agent in survey if agent not in having]
        if name == answer.column:
            columns[name], said = _answer(answer, having, lacking), _without_answer(having)
        else:
            columns[name], said = _input(having, lacking)
        if lacking:
            said = [*said, *called_otherwise(name, survey)]
        if not isinstance(columns[name], Ignore):
            said = [*said, *differences(columns[name], having)]
            missing |= {name for own in having.values() if own.missing}
        if said:
            remarks[name] = said
    if all(isinstance(column, Ignore | Label | Target) for column in columns.values()):
        why = "; ".join(Proposal(columns, remarks, frozenset()).notes)[:300]
        raise InputError(f"FILE: no column is left to predict {brief(answer.column)} from; {why}")
    return Proposal(columns, remarks, frozenset(missing))


def _input(having: Mapping[str, Found], lacking: list[str]) -> tuple[AnyColumn, list[str]]:
    """What an input may mean, and remarks."""
    found = list(having.values())
    numbers = reduce(Moments.with_, (each.numbers for each in found))
    words, values = _together(found, "words"), _together(found, "values")
    absent = [word for word in words if word.strip().lower() in ABSENT]
    missing, rows = sum(each.missing for each in found), sum(each.rows for each in found)
    mixed = bool(numbers.count) and len(words) > len(absent)
    if why := _unusable(having, lacking, values):
        return Ignore(), [f"{why}: not used"]
    remarks = []
    if missing:
        remarks.append(f"{missing:,} of {rows:,} values are missing: say what they mean, or they are refused")
    if absent:
        remarks.append(f"it has {listed(absent)}: where that says that a value is missing, leave the cell empty")
    if numbers.count and not mixed:
        if not 0 < numbers.sd < math.inf:
            return Ignore(), ["its numbers are too large, or too close to each other, to be scaled: not used"]
        if rows > MOST_LEVELS and not missing and all(each.whole and each.distinct for each in found):
            remarks.append("whole numbers, all different: if they only number the rows, its kind is ignore")
        centre, scale = rounded(numbers.mean, numbers.sd)
        return Number(centre=centre, scale=scale), remarks
    if mixed:
        remarks.append(f"it has text among its numbers, {_who(having, words[0])}: taken for a category")
    if len(values) > MOST_LEVELS:
        what = f"text among its numbers, {_who(having, words[0])}" if mixed else f"over {MOST_LEVELS} different texts"
        return Ignore(), [f"it has {what}: not used as it is"]
    if rule := _no_levels(values):
        return Ignore(), [f"{rule}: not used as it is"]
    return Category(levels=values), remarks


def _unusable(having: Mapping[str, Found], lacking: list[str], values: list[str]) -> str | None:
    """Why nothing can be learnt from a column, if so."""
    found = list(having.values())
    if lacking:
        return f"{listed(lacking)} {'has' if len(lacking) == 1 else 'have'} no such column"
    if other := next((each.other for each in found if each.other), ""):
        return f"it holds {other}"
    if not values:
        return "it has no values"
    if len(values) == 1:
        return f"it is {brief(values[0])} in every row"
    texts = all(not each.numbers.count and each.distinct for each in found)
    if texts and 2 * len(values) > sum(each.rows for each in found) > FEW:
        return "every row has another text, as names of rows have"
    return None


def _no_levels(values: list[str]) -> str | None:
    """Why values cannot be levels, if they cannot."""
    try:
        told_apart(values)
    except InputError as wrong:
        return str(wrong)
    return next((f"a level {rule}, one is {brief(value)}" for value in values if (rule := unfit(value))), None)


def _answer(answer: Answer, having: Mapping[str, Found], lacking: list[str]) -> Label | Target:
    """What is predicted; what cannot be is refused."""
    option, column = _option(answer), brief(answer.column)
    found = list(having.values())
    words = _together(found, "words")
    if lacking:
        raise InputError(f"{option}: column {column} must be in every file, {listed(lacking)} has none")
    if not any(each.values for each in found):
        raise InputError(f"{option}: column {column} has no values")
    if not answer.label:
        numbers = reduce(Moments.with_, (each.numbers for each in found))
        if words:
            raise InputError(f"{option}: column {column} must hold numbers, got {_who(having, words[0])}")
        if not 0 < numbers.sd < math.inf:
            found_range = f"{numbers.low:g} to {numbers.high:g}"
            raise InputError(f"{option}: column {column} must differ and not be too large, got {found_range}")
        if not answer.counts:
            centre, scale = rounded(numbers.mean, numbers.sd)
            return Target(centre=centre, scale=scale)
        if numbers.low < 0 or not all(each.whole for each in found):
            worst = f"{numbers.low:g}" if numbers.low < 0 else "fractions"
            raise InputError(f"--counts: column {column} must hold whole numbers from 0 on, got {worst}")
        return Target(counts=True)
    values = _together(found, "values")
    if len(values) > MOST_LEVELS:
        what = f"{len(values)} or more" if any(each.many for each in found) else f"{len(values)}"
        raise InputError(
            f"--label: column {column} must have at most {MOST_LEVELS} levels, got {what}; is it a --target?"
        )
    if len(values) < 2:
        raise InputError(f"--label: column {column} must have at least 2 levels, it is {brief(values[0])} everywhere")
    if rule := _no_levels(values):
        raise InputError(f"--label: column {column}: {rule}")
    return Label(levels=values)


def _without_answer(having: Mapping[str, Found]) -> list[str]:
    """Remarks on rows that do not say what is predicted."""
    said = []
    if without := [agent for agent, own in having.items() if own.missing]:
        said.append(f"values are missing in {listed(without)}, and it is what is predicted: take these rows out")
    if absent := [word for word in _together(list(having.values()), "words") if word.strip().lower() in ABSENT]:
        said.append(f"it has {listed(absent)}: where that says that a value is missing, take the row out")
    return said


def rounded(mean: float, sd: float) -> tuple[float, float]:
    """Mean and standard deviation in as many digits as matter: a hundredth of the standard deviation.

    >>> rounded(14.127291, 3.520951), rounded(100000.512, 0.0123)
    ((14.13, 3.52), (100000.512, 0.0123))
    """
    return round(mean, 2 - math.floor(math.log10(sd))) + 0.0, float(f"{sd:.3g}")


def _together(found: list[Found], part: str) -> list[str]:
    """Values of all agents, in order; one that is written in several ways is there once."""
    written: dict[str | int | float, str] = {}
    for value in (value for each in found for value in getattr(each, part)):
        written[meaning(value)] = min(written.get(meaning(value), value), value, key=len)
    return in_order(written.values())


def _who(having: Mapping[str, Found], word: str) -> str:
    """A word, and who has it."""
    agent = next(agent for agent, own in having.items() if word in own.words)
    return f"{brief(word)} in {brief(agent)}"


def _option(answer: Answer) -> str:
    return "--label" if answer.label else "--target"
