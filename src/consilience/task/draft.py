"""The first draft of a description, with comments, for a person to read, correct and run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w

from consilience.errors import brief, printable
from consilience.task.columns import AnyColumn, Target, predicted
from consilience.task.proposal import Proposal

HINTS = {  # said once, where a field first occurs
    "centre": "values are used as (value − centre) / scale, the same for everybody",
    "levels": 'a feature, 0 or 1, for each but the first; reference = "…" for another',
}
ANSWERS = {"label": "what is predicted", "target": "what is predicted; it is told in the units of the file"}
FIELDS = ("kind", "centre", "scale", "levels", "counts")


class Shares(NamedTuple):
    """Whose data is where: a file for each agent by name, or one table with a column that names the owners."""

    agents: Mapping[str, Path]
    owner: str | None = None


def drafted(name: str, shares: Shares, proposal: Proposal) -> str:
    """The text of NAME.toml."""
    agents = len(shares.agents)
    alone = "" if agents > 1 else "; with one agent there is nobody to hear"
    kind, why = _likelihood(proposal.columns)
    parts = [
        f"# What is learnt from what. Read it, correct it, then: consilience run {printable(name)}.toml",
        'experiment = "learn"\nrounds = 60\nseed = 0\n',
        _shares(shares),
        f"[network]           # who hears whom: ring, star, complete, grid, … "
        f"(consilience theory ring --agents {agents}){alone}\n"
        f'kind = "ring"\nagents = {agents}\n',
        '[model]             # no hidden layers: logistic, linear or Poisson regression\nkind = "mlp"\nhidden = []\n',
        f'[likelihood]        # {why}\nkind = "{kind}"\n',
        *_columns(proposal),
    ]
    return "\n".join(parts)


def _shares(shares: Shares) -> str:
    if shares.owner is not None:
        lines = ["[shares]            # one table; a column of it says whose a row is; only beliefs leave an agent"]
        lines += ['kind = "table"', f"file = {value(str(next(iter(shares.agents.values()))))}"]
        lines += [f"owner = {value(shares.owner)}       # {len(shares.agents)} agents: {_some(list(shares.agents))}"]
        return "\n".join([*lines, ""])
    lines = ["[shares]            # one file an agent; only beliefs leave an agent", 'kind = "files"', "[shares.files]"]
    lines += [f"{value(agent)} = {value(str(file))}" for agent, file in shares.agents.items()]
    lines[3] += "   # an agent's name = its file"
    return "\n".join([*lines, ""])


def _likelihood(columns: Mapping[str, AnyColumn]) -> tuple[str, str]:
    """Its kind, and why."""
    _, answer = predicted(columns)
    if not isinstance(answer, Target):
        return "categorical", "a class is predicted, with a probability for each level"
    if answer.counts:
        return "poisson", "a count is predicted"
    return "gaussian", "a number is predicted; its noise is learnt"


def _columns(proposal: Proposal) -> list[str]:
    """A table for each column: inputs, then what is predicted, then what is not used."""
    order = {"label": 1, "target": 1, "ignore": 2}
    hints = dict(HINTS)
    parts = []
    for name, column in sorted(proposal.columns.items(), key=lambda each: order.get(each[1].kind, 0)):
        lines = [*(f"# {printable(said)}" for said in proposal.remarks.get(name, [])), f"[columns.{key(name)}]"]
        given = column.model_dump(exclude_defaults=True) | {"kind": column.kind}
        for field in FIELDS:
            if field in given:
                hint = ANSWERS.get(column.kind, "") if field == "kind" else ""
                if column.kind in ("number", "category"):
                    hint = hints.pop(field, "")
                lines.append(f"{field} = {value(given[field])}" + (f"   # {hint}" if hint else ""))
        if name in proposal.missing and column.kind in ("number", "category"):
            meant, which = ("centre", "") if "levels" not in given else (given["levels"][0], ": a level, or a new one")
            lines.append(f"# missing = {value(meant)}   # what a missing value means{which}")
        parts.append("\n".join([*lines, ""]))
    return parts


def key(name: str) -> str:
    """A name as a key of TOML.

    >>> key("age"), key("mean radius")
    ('age', '"mean radius"')
    """
    return tomli_w.dumps({name: 0}).removesuffix(" = 0\n")


def value(given: Any) -> str:
    """A value as TOML writes it, a list in one line.

    >>> value(["a", 'b"'])
    '["a", "b\\\\""]'
    """
    if isinstance(given, list):
        return f"[{', '.join(map(value, given))}]"
    return tomli_w.dumps({"a": given}).removeprefix("a = ").removesuffix("\n")


def _some(names: list[str], most: int = 6) -> str:
    return ", ".join(map(brief, names[:most])) + (", …" if len(names) > most else "")
