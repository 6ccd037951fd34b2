"""A card: a participant's public half, signed by its own key; it may be mailed, nothing in it is secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from consilience.engines.peers.keys import Id, Key, check_certificate, check_signature, id_of, sign
from consilience.engines.peers.names import peer_address, peer_name
from consilience.engines.peers.signed import SIGNATURE, VERSION, content, opened, read_text, with_signature
from consilience.errors import InputError, printable

CARD, REPLACEMENT = "card", "replacement"  # kinds of signed texts
ENDING = ".card"
REPLACES = "replaces"


class Replaced(NamedTuple):
    """The key that a new one takes the place of, and that key's signature under it."""

    id: Id
    signature: str


class Card(NamedTuple):
    """Who somebody is and where it is reached: `address` is "host:port", or nothing where it only dials."""

    name: str
    id: Id
    certificate: str
    address: str
    signature: str = ""
    replaces: Replaced | None = None

    @property
    def text(self) -> str:
        """The card as it is written to a file."""
        return with_signature(CARD, _said(self), self.signature)

    def values(self) -> dict[str, Any]:
        """The card inside another text."""
        return {"kind": CARD, "version": VERSION, **_said(self), SIGNATURE: self.signature}

    def signed(self, key: Key) -> Card:
        """The card with the signature of its key."""
        return self._replace(signature=sign(key, content(CARD, _said(self))))

    def replacing(self, id: Id, key: Key) -> Card:
        """The card with the word of an older key that this one takes its place."""
        return self._replace(replaces=Replaced(id, sign(key, _replacement(id, self.id))))

    def countersigned_by(self, certificate: str) -> bool:
        """Whether the key of a certificate has said that this card's key takes its place."""
        said = self.replaces
        return (
            said is not None
            and said.id == id_of(certificate)
            and check_signature(certificate, _replacement(said.id, self.id), said.signature)
        )


def read_card(source: Path | str, what: str = CARD) -> Card:
    """A card from its file, or from its text, in which no byte was changed."""
    if isinstance(source, Path):
        what, source = f"card '{printable(str(source))}'", read_text(source, CARD)
    values = opened(CARD, source, None, what)
    replaced = values.pop(REPLACES, None)
    try:
        card = Card(**values, replaces=None if replaced is None else Replaced(**replaced))
        written = all(isinstance(text, str) for text in (*card[:5], *(card.replaces or ()))) and card.text == source
    except TypeError:  # fields that are lacking, or that no card has
        written = False
    if not written:
        raise InputError(f"{what}: is not as a card is written")
    check_person(card.name, card.id, card.certificate, card.address, what)
    return card


def check_person(name: str, id: Id, certificate: str, address: str, what: str) -> None:
    """Refuse a name, an address or a certificate that nobody can have."""
    try:
        peer_name(name)
        peer_address(address)
    except InputError as wrong:
        raise InputError(f"{what}: {wrong}") from None
    check_certificate(certificate, id, what)


def _said(card: Card) -> dict[str, Any]:
    """What is signed of a card; nothing of `replaces` where it replaces no key."""
    values = {"name": card.name, "id": card.id, "certificate": card.certificate, "address": card.address}
    return values if card.replaces is None else {**values, REPLACES: card.replaces._asdict()}


def _replacement(old: Id, new: Id) -> bytes:
    """What an old key signs where a new one takes its place."""
    return content(REPLACEMENT, {"old": old, "new": new})
