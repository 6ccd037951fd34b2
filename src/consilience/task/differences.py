"""Where agents differ in a column: its name, levels that only one of them has, numbers far from everybody else's."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from functools import reduce

from consilience.data.cells import meaning
from consilience.data.survey import Found, Moments
from consilience.errors import brief
from consilience.task.columns import AnyColumn, Category, Label, listed

FAR = 3.0  # standard deviations between the mean of one agent and that of the others
OTHER_SCALE = 10.0  # times the spread of the others
FEW = 5  # numbers that are too few to compare


def differences(column: AnyColumn, having: Mapping[str, Found]) -> list[str]:
    """What is worth a look, in a sentence each."""
    if isinstance(column, Category | Label):
        return _levels(column.levels, having)
    return _numbers({agent: own.numbers for agent, own in having.items() if own.numbers.count >= FEW})


def called_otherwise(name: str, survey: Mapping[str, Mapping[str, Found]]) -> list[str]:
    """What those who lack a column may call it, where most have it.

    >>> found = Found()
    >>> called_otherwise("bmi", {"a": {"bmi": found}, "b": {"BMI ": found}})
    ["'b' has 'BMI ': if that is the same, give it one name"]
    """
    having = [agent for agent, own in survey.items() if name in own]
    lacking = [agent for agent in survey if agent not in having]
    common = {other for agent in having for other in survey[agent]}
    if len(lacking) > len(having):
        return []
    theirs = {agent: {_plain(other): other for other in survey[agent] if other not in common} for agent in lacking}
    return [
        f"{brief(agent)} has {brief(names[near])}: if that is the same, give it one name"
        for agent, names in theirs.items()
        for near in difflib.get_close_matches(_plain(name), names, n=1, cutoff=0.8)
    ]


def _plain(name: str) -> str:
    """A name without what people write differently."""
    return "".join(filter(str.isalnum, name.casefold())) or name


def _levels(levels: list[str], having: Mapping[str, Found]) -> list[str]:
    """The levels that only one agent has."""
    theirs = {agent: {meaning(value) for value in own.values} for agent, own in having.items()}
    said = []
    for agent, own in theirs.items():
        others = set().union(*(values for other, values in theirs.items() if other != agent))
        if others and (only := [level for level in levels if meaning(level) in own - others]):
            said.append(f"only {brief(agent)} has {listed(only)}")
    return said


def _numbers(agents: Mapping[str, Moments]) -> list[str]:
    """The agents whose numbers are far from the others', the farthest first; each is then left out of the others."""
    left, said = dict(agents), []
    while len(left) > 1:
        rest = {agent: _rest(left, agent) for agent in left}
        agent = max(left, key=lambda agent: _distance(left[agent], rest[agent]))
        own, others = left.pop(agent), rest[agent]
        if not _far(own, others):
            break
        here, there = (f"{part.mean:.3g} ± {part.sd:.2g}" for part in (own, others))
        said.append(f"{brief(agent)} has {here}, the others {there}: another unit?")
    return said


def _rest(agents: Mapping[str, Moments], agent: str) -> Moments:
    return reduce(Moments.with_, (numbers for name, numbers in agents.items() if name != agent))


def _far(own: Moments, others: Moments) -> bool:
    """Whether an agent's numbers are far from those of the others, or spread quite otherwise."""
    if abs(own.mean - others.mean) > FAR * max(own.sd, others.sd):
        return True
    return min(own.sd, others.sd) > 0 and not 1 / OTHER_SCALE < own.sd / others.sd < OTHER_SCALE


def _distance(own: Moments, others: Moments) -> float:
    """How much of a stranger an agent is: its mean in the others' units, and how much wider or narrower it is."""
    if not others.sd:
        return math.inf if own.mean != others.mean else 0.0
    wider = abs(math.log(own.sd / others.sd)) if own.sd else 0.0
    return abs(own.mean - others.mean) / others.sd + wider
