"""Who takes part in a study, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from consilience.command.shared import say, show
from consilience.engines.peers.bundle import Bundle
from consilience.engines.peers.card import Card
from consilience.engines.peers.keys import valid
from consilience.engines.peers.roster import Member, Roster
from consilience.engines.peers.study import Study
from consilience.engines.peers.words import words
from consilience.report.tables import table

Person = Card | Member


def told_person(person: Person) -> dict[str, Any]:
    """Who somebody is, with words to read out."""
    until = valid(person.certificate)[1]
    told = {"name": person.name, "id": person.id, "words": words(person.id), "address": person.address}
    return {**told, "valid_until": f"{until:%Y-%m-%d}"}


def told_roster(study: Study, roster: Roster) -> dict[str, Any]:
    """A study and who takes part in it."""
    return {
        "study": {"hash": study.hash, **study.model_dump(mode="json", exclude_none=True)},
        "epoch": roster.epoch,
        "members": [{"number": member.number, **told_person(member)} for member in roster.members],
        "removed": [gone._asdict() for gone in roster.removed],
        "weights": {str(number): _row(roster, number) for number in roster.numbers},
    }


def told_bundle(bundle: Bundle) -> dict[str, Any]:
    """All that is in a bundle."""
    return {**told_roster(bundle.study, bundle.roster), "steward": told_person(bundle.steward)}


def show_people(people: Sequence[Person]) -> None:
    """Who somebody is, with words to read out."""
    rows = [[each.name, words(each.id), each.address or "only dials", _until(each)] for each in people]
    show(table(["name", "words", "address", "valid until"], rows), whole=True)


def show_weights(roster: Roster) -> None:
    """Whom everybody hears, how much."""
    names = {member.number: member.name for member in roster.members}
    rows = []
    for number in roster.numbers:
        row = roster.row(number)
        heard = ", ".join(f"{names[other]} {weight:.3g}" for other, weight in row.items() if other != number)
        rows.append([names[number], heard or "nobody", row.get(number, 0.0)])
    show(table(["member", "hears", "itself"], rows))


def show_roster(study: Study, roster: Roster) -> None:
    """A study and who takes part in it."""
    task, policy = study.task, study.policy
    say(
        f"study {study.name}, {study.hash[:12]}…: {task['learner']['kind']}, {task['consensus']['kind']}, "
        f"{policy.kind}, {policy.rounds} rounds; epoch {roster.epoch}"
    )
    if roster.members:
        show_people(sorted(roster.members))
        show_weights(roster)
    for gone in roster.removed:
        kept = "its key was replaced" if gone.number in roster.numbers else "removed"
        say(f"{gone.name}: {kept} in epoch {gone.epoch} ({words(gone.id)})")


def show_bundle(bundle: Bundle) -> None:
    """All that is in a bundle; the steward's words are those to ask for."""
    show_roster(bundle.study, bundle.roster)
    say(f"signed by {bundle.steward.name}: {words(bundle.steward.id)}")


def _row(roster: Roster, number: int) -> dict[str, float]:
    return {str(other): weight for other, weight in roster.row(number).items()}


def _until(person: Person) -> str:
    return f"{valid(person.certificate)[1]:%Y-%m-%d}"
