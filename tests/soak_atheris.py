"""Look for bytes that a link should refuse and does not, guided by the code they reach (libFuzzer, by atheris).

    PYTHONPATH=src python tests/soak_atheris.py -runs=1000000 -seed=1      (options of libFuzzer)
    PYTHONPATH=src python tests/soak_atheris.py FILE                       (one case again)

A case is what one neighbour sends in a row: bytes as they come, honest headers with a field changed, and whole messages
with any numbers in them, whose checksums are right. Whatever comes of it but a refusal is a finding, and so is anything
taken that is not as it was agreed. Ends with code 77 where something was found.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

import atheris

with atheris.instrument_imports(include=["consilience.engines.peers"]):
    from consilience.engines.peers.link import Link
    from consilience.engines.peers.wire import Entry, Expected, Kind, Refused, about, encoded, frame, sealed
    from consilience.engines.peers.wire.messages import About

import numpy as np
from noting_desk import MEMBERS, SITE, Reception

NEIGHBOUR, ME = MEMBERS[0], MEMBERS[1]
MOST_FRAMES = 12


def play(data: bytes) -> None:
    """What a neighbour sends, and what may have come of it."""
    drawn = atheris.FuzzedDataProvider(data)
    desk = Reception(1, several=drawn.ConsumeBool())
    link = Link(NEIGHBOUR, ME.id, desk)
    link.opened()
    if drawn.ConsumeBool():
        link.receive(greeting(desk))
    for _ in range(MOST_FRAMES):
        if not drawn.remaining_bytes():
            break
        with suppress(Refused):
            link.receive(sent(drawn, desk))
    for said in desk.said:
        check(said, desk)


def greeting(desk: Reception, **changed: Any) -> bytes:
    """What an honest neighbour says first, but for this."""
    return frame(Kind.HELLO, {**desk.greeting()._asdict(), **changed})


def sent(drawn: Any, desk: Reception) -> bytes:
    """The next frame."""
    how = drawn.ConsumeIntInRange(0, 4)
    if how == 0:
        return bytes(drawn.ConsumeBytes(drawn.ConsumeIntInRange(0, 400)))
    if how == 1:
        return greeting(desk, **changed(drawn, list(desk.greeting()._asdict())))
    if how == 2:
        receipt = {"round": 1, "held": {NEIGHBOUR.id: 5}}
        return frame(Kind.RECEIPT, {**receipt, **changed(drawn, list(receipt))})
    if how == 3:
        kind = drawn.PickValueInList([Kind.ROSTER, Kind.GOODBYE, Kind.BELIEF])
        return frame(kind, changed(drawn, ["why", "at", "checksum"]), drawn.ConsumeBytes(60))
    return message(drawn, desk)


def message(drawn: Any, desk: Reception) -> bytes:
    """A whole message: honest, with other numbers, or with a field of its header changed, checksums being right."""
    agreed = desk.agreed()
    expected = Expected(agreed.study, agreed.epoch, NEIGHBOUR.id, agreed.schema, several=agreed.several)
    owners = [member.number for member in MEMBERS[: drawn.ConsumeIntInRange(1, 3)]] if agreed.several else []
    entries = tuple(Entry(MEMBERS[k].id, drawn.ConsumeIntInRange(0, 9), f"by {k}") for k in owners)
    schema = agreed.schema.of_each([entry.owner for entry in entries]) if owners else agreed.schema
    arrays = {leaf.name: SITE[leaf.name.rpartition("/")[2]] for leaf in schema.leaves}
    body = bytearray(encoded(arrays, schema))
    for _ in range(drawn.ConsumeIntInRange(0, 3)):
        at = drawn.ConsumeIntInRange(0, len(body) - 8)
        body[at : at + 8] = drawn.ConsumeBytes(8).ljust(8, b"\0")
    honest = about(expected, 1, drawn.ConsumeIntInRange(0, 120), bytes(body), entries=entries)
    said = sealed(honest, body).header()
    if drawn.ConsumeBool():
        said |= changed(drawn, list(About._fields))
    return frame(Kind.BELIEF, said, bytes(body))


def changed(drawn: Any, fields: list[str]) -> dict[str, Any]:
    """Some field with a value of any kind."""
    if drawn.ConsumeBool():
        return {}
    values = (
        drawn.ConsumeInt(9), drawn.ConsumeUnicodeNoSurrogates(70), None, [], {}, True, 0.5, -1, 2**70,
        [[NEIGHBOUR.id, 1, "by 0"]], {drawn.ConsumeUnicodeNoSurrogates(8): drawn.ConsumeInt(4)},
    )  # fmt: skip
    return {drawn.PickValueInList(fields): drawn.PickValueInList(list(values))}


def check(said: Any, desk: Reception) -> None:
    """What was taken is what was agreed on: of this neighbour, of a round there is, finite, within bounds."""
    assert said.sender == NEIGHBOUR.number
    assert 1 <= said.round <= desk.agreed().rounds
    assert said.entries
    for entry in said.entries:
        assert entry.owner in {member.number for member in MEMBERS}
        assert not desk.agreed().several or entry.signature == f"by {entry.owner}"
        assert set(entry.arrays) == set(SITE)
        assert all(array.shape == SITE[name].shape and np.isfinite(array).all() for name, array in entry.arrays.items())
        low, high = entry.arrays["precision"].min(), entry.arrays["precision"].max()
        assert desk.agreed().bounds.least <= low <= high <= desk.agreed().bounds.most


if __name__ == "__main__":
    atheris.Setup(sys.argv, play)
    atheris.Fuzz()
