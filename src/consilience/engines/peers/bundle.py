"""A bundle: the study, its roster and its steward's card in one file, which everybody gets and nobody can change.

Each part vouches for itself: the card is signed by its own key, the roster by the steward's, and the study's hash is in
the roster. So a newer roster, which travels alone, can take the place of an older one without the steward.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from consilience.engines.peers.card import Card, read_card
from consilience.engines.peers.identity import Identity
from consilience.engines.peers.keys import sign
from consilience.engines.peers.roster import ROSTER, Roster
from consilience.engines.peers.signed import (
    SIGNATURE,
    VERSION,
    canonical,
    content,
    opened,
    parsed,
    read_text,
    text_of,
    with_signature,
)
from consilience.engines.peers.study import Study, name_of
from consilience.errors import InputError, brief, printable
from consilience.files.whole import write_atomically

BUNDLE = "bundle"


class Bundle(NamedTuple):
    """What a peer needs to know of everybody; `signature` is the steward's, of the roster."""

    study: Study
    roster: Roster
    steward: Card
    signature: str

    @classmethod
    def signed(cls, study: Study, roster: Roster, steward: Identity) -> Bundle:
        """A roster, signed."""
        return cls(study, roster, steward.card, sign(steward.key, content(ROSTER, roster.values())))

    @classmethod
    def read(cls, source: Path | str, what: str = BUNDLE) -> Bundle:
        """A bundle from its file, or from its text, in which no byte was changed."""
        if isinstance(source, Path):
            what, source = f"bundle '{printable(str(source))}'", read_text(source, BUNDLE)
        values = parsed(BUNDLE, source, what)
        lines = values.get("study")
        if set(values) != {"kind", "version", "steward", "study", "roster"} or not (
            isinstance(values["steward"], dict)
            and isinstance(values["roster"], dict)
            and isinstance(lines, list)
            and all(isinstance(line, str) and "\n" not in line for line in lines)
        ):
            raise InputError(f"{what}: is not as a bundle is written")
        text = "".join(f"{line}\n" for line in lines)
        if name_of(text) != values["roster"].get("study"):
            raise InputError(f"{what}: was changed: its study is not the one that its roster is of")
        steward = read_card(canonical(values["steward"]), f"{what}: the steward's card")
        roster, signature = _opened(canonical(values["roster"]), steward, what)
        return cls(Study.read(text, f"{what}: the study"), roster, steward, signature)

    @property
    def text(self) -> str:
        """The bundle as it is written to a file."""
        values = {
            "steward": self.steward.values(),
            "study": self.study.text.removesuffix("\n").split("\n"),
            "roster": {"kind": ROSTER, "version": VERSION, **self.roster.values(), SIGNATURE: self.signature},
        }
        return text_of(BUNDLE, values)

    @property
    def offer(self) -> str:
        """The signed roster alone, for those who have the study."""
        return with_signature(ROSTER, self.roster.values(), self.signature)

    def write(self, file: Path) -> None:
        """Write it, as a whole."""
        write_atomically(file, self.text.encode())


def newer(held: Bundle, offered: str, what: str = ROSTER) -> Bundle:
    """What is held, with a newer roster that somebody offers; `what` says whose offer it is.

    It must be signed by the same steward for the same study, in a later epoch; and nobody whom we know may have
    vanished from it without a tombstone, or come back after one.
    """
    roster, signature = _opened(offered, held.steward, what)
    known = held.roster
    if roster.study != known.study:
        raise InputError(f"{what}: is of another study, {roster.study[:12]}…, not {known.study[:12]}…")
    if roster.epoch <= known.epoch:
        word = "held already" if roster.epoch == known.epoch else f"older than the one that is held, {known.epoch}"
        raise InputError(f"{what}: epoch {roster.epoch} is {word}")
    for gone in known.removed:
        if roster.member(gone.id) is not None:
            raise InputError(f"{what}: {brief(gone.name)} was removed in epoch {gone.epoch} and cannot come back")
        if gone not in roster.removed:
            raise InputError(f"{what}: forgets that {brief(gone.name)} was removed in epoch {gone.epoch}")
        if gone.number in roster.numbers and gone.number not in known.numbers:
            raise InputError(f"{what}: gives the number of {brief(gone.name)}, who was removed, to somebody else")
    for member in known.members:
        now = roster.member(member.id)
        if now is None and roster.tombstone(member.id) is None:
            raise InputError(f"{what}: {brief(member.name)} vanished without being removed")
        if now is not None and (now.number, now.name) != (member.number, member.name):
            raise InputError(f"{what}: {brief(member.name)} has another number or name than in epoch {known.epoch}")
    return held._replace(roster=roster, signature=signature)


def _opened(text: str, steward: Card, what: str) -> tuple[Roster, str]:
    """A roster that this steward has signed, and the signature."""
    values = opened(ROSTER, text, steward.certificate, what)
    signature = str(values.pop(SIGNATURE))
    roster = Roster.of(values, what)
    if roster.epoch < 1:
        raise InputError(f"{what}: is not as a roster is written (epoch)")
    return roster, signature
