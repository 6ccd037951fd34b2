"""Peers without folders: identities, and rosters and bundles made of them."""

from datetime import UTC, datetime
from functools import cache

from consilience.engines.peers.bundle import Bundle
from consilience.engines.peers.card import Card
from consilience.engines.peers.identity import Identity
from consilience.engines.peers.keys import id_of_key, new_key, self_signed
from consilience.engines.peers.links import laid
from consilience.engines.peers.roster import Member, Roster
from consilience.engines.peers.study import Study

STUDY = Study.of({"name": "tumours", "task": {"seed": 0, "model": {"kind": "mlp"}, "columns": {"b": {}, "a": {}}}})


@cache
def person(name, address="localhost:9000", days=10):
    key = new_key()
    card = Card(name, id_of_key(key), self_signed(key, datetime.now(UTC), days), address)
    return Identity(card.signed(key), key)


def member(number, who):
    return Member(number, who.name, who.id, who.certificate, who.card.address)


def roster(*names, epoch=1, study=STUDY, links=None, removed=(), numbers=None):
    numbers = numbers or range(len(names))
    members = tuple(member(number, person(name)) for number, name in zip(numbers, names, strict=True))
    return Roster(study.hash, epoch, members, tuple(removed), laid("ring", list(numbers)) if links is None else links)


def bundle(*names, steward="steward", study=STUDY, **about):
    return Bundle.signed(study, roster(*names, study=study, **about), person(steward))
