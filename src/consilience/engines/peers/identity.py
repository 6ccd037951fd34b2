"""Who a peer is: a key that never leaves its host, and a card with what others may know.

A home is a folder that only its owner can look into, with `key.pem`, `certificate.pem` and `NAME.card`. A key is never
written over: one that was replaced silently would be somebody else to all others.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from consilience.engines.peers.card import ENDING, Card, read_card
from consilience.engines.peers.keys import (
    CURVE,
    Id,
    Key,
    check_dates,
    check_signature,
    fixed_name,
    id_of,
    id_of_key,
    new_key,
    self_signed,
    sign,
)
from consilience.engines.peers.names import peer_address, peer_name
from consilience.engines.peers.signed import read_text
from consilience.engines.peers.words import words
from consilience.errors import InputError, brief, printable
from consilience.files.reading import reading
from consilience.files.whole import write_atomically

__all__ = [
    "Card",
    "Id",
    "Identity",
    "Key",
    "card_file",
    "check_dates",
    "check_signature",
    "copied",
    "create",
    "fixed_name",
    "id_of",
    "load",
    "moved",
    "read_card",
    "sign",
    "words",
]
KEY, CERTIFICATE = "key.pem", "certificate.pem"
DAYS = 3650
OTHERS = 0o077  # what others may do with a file
LONGEST = 1 << 16  # bytes of a key's file


class Identity(NamedTuple):
    """A peer with its key."""

    card: Card
    key: Key

    @property
    def id(self) -> Id:
        """The hash of its public key."""
        return self.card.id

    @property
    def name(self) -> str:
        """What it calls itself."""
        return self.card.name

    @property
    def certificate(self) -> str:
        """Its certificate, as PEM."""
        return self.card.certificate

    def private_pem(self) -> bytes:
        """Its key, as PEM: for its own end of connections, never to be sent."""
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def create(
    folder: Path,
    name: str,
    address: str = "",
    days: int = DAYS,
    now: datetime | None = None,
    replaces: Identity | None = None,
) -> Identity:
    """A new key in a home of its own; `replaces`: who it was before, where an older key is given up."""
    peer_name(name), peer_address(address)
    if replaces is not None and replaces.name != name:
        raise InputError(f"--replaces: the key is that of {brief(replaces.name)}; give the new one the same name")
    _refuse_used(folder)
    key = new_key()
    card = Card(name, id_of_key(key), self_signed(key, now or datetime.now(UTC), days), address)
    if replaces is not None:
        card = card.replacing(replaces.id, replaces.key)
    return _laid(Identity(card.signed(key), key), folder)


def copied(folder: Path, known: Identity, address: str = "") -> Identity:
    """The same peer in another home, for another study; reached at the same address where none is said."""
    _refuse_used(folder)
    card = known.card._replace(address=peer_address(address or known.card.address), replaces=None)
    return _laid(Identity(card.signed(known.key), known.key), folder)


def _laid(made: Identity, folder: Path) -> Identity:
    """A peer whose home this is from now on."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_mode & OTHERS:
        raise InputError(f"home: others can look into '{printable(str(folder))}'; name a folder that is not there yet")
    _write_new(folder / KEY, made.private_pem(), 0o600)
    _write_new(folder / CERTIFICATE, made.certificate.encode(), 0o644)
    _write_new(card_file(folder, made.name), made.card.text.encode(), 0o644)
    return made


def _refuse_used(folder: Path) -> None:
    for there in (folder / KEY, folder / CERTIFICATE, *_cards(folder)):
        if there.exists():
            raise InputError(
                f"home: '{printable(str(there))}' is there already, and is never written over; with --same-key it is "
                "kept, for another --listen"
            )


def load(folder: Path) -> Identity:
    """The peer whose home this is; its key must be its owner's alone, and card and certificate those of the key."""
    where = printable(str(folder))
    if not (folder / KEY).exists():
        raise InputError(f"home: '{where}' has no key; consilience peer init NAME makes one there")
    key, cards = _read_key(folder / KEY), _cards(folder)
    if len(cards) != 1:
        raise InputError(f"home: '{where}' must have one file NAME{ENDING}, has {len(cards)}")
    card = read_card(cards[0])
    if card.id != id_of_key(key):
        raise InputError(f"home: '{printable(cards[0].name)}' in '{where}' is not the card of its '{KEY}'")
    if card.certificate != read_text(folder / CERTIFICATE, "home"):
        raise InputError(f"home: '{CERTIFICATE}' in '{where}' was changed: it is not the one in the card")
    return Identity(card, key)


def moved(folder: Path, address: str) -> Identity:
    """The same peer, reached elsewhere: a new card by the same key."""
    known = load(folder)
    card = known.card._replace(address=peer_address(address)).signed(known.key)
    write_atomically(card_file(folder, card.name), card.text.encode())
    return Identity(card, known.key)


def card_file(folder: Path, name: str) -> Path:
    """Where the card of somebody lies."""
    return folder / f"{name}{ENDING}"


def _cards(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*{ENDING}"))


def _write_new(file: Path, content: bytes, mode: int) -> None:
    """A file that was not there before, open to nobody else at any moment, and on disk when this returns."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
        os.fchmod(stream.fileno(), mode)


def _read_key(file: Path) -> Key:
    with reading("home", file), file.open("rb") as stream:
        mode = os.fstat(stream.fileno()).st_mode & 0o777
        if mode & OTHERS:
            raise InputError(f"others can read this key (mode {mode:o}): chmod 600, and a new key if somebody has")
        key = load_pem_private_key(stream.read(LONGEST), None)
        if not (isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, CURVE)):
            raise InputError("it is not a key that `consilience peer init` makes")
        return key
