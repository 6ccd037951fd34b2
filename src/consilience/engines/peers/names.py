"""What a peer may be called, and where it may be reached."""

from __future__ import annotations

import ipaddress
import re
import unicodedata

from consilience.errors import InputError, brief

NAME = re.compile(r"[^\W_][\w.-]{0,59}")
LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,62})"
HOST = re.compile(rf"(?=.{{1,253}}$){LABEL}(\.{LABEL})*")
PORTS = 2**16


def peer_name(name: str) -> str:
    """A name that can be shown, read out, and that a file may have.

    >>> peer_name("north-2")
    'north-2'
    """
    if not NAME.fullmatch(name) or unicodedata.normalize("NFC", name) != name or name.endswith("."):
        raise InputError(
            f"name: must be 1 to 60 letters, digits or _ . -, with a letter or digit first, got {brief(name)}"
        )
    return name


def told_apart(name: str) -> str:
    """What must differ between two names so that nobody takes one for the other.

    >>> told_apart("North") == told_apart("north")
    True
    """
    return unicodedata.normalize("NFKC", name).casefold()


def peer_address(address: str) -> str:
    """Where others reach a peer: a host's name or number and a port; nothing, where it only dials.

    >>> peer_address("north.example.org:9000"), peer_address("[::1]:9000"), peer_address("")
    ('north.example.org:9000', '[::1]:9000', '')
    """
    host, _, port = address.rpartition(":")
    digits = port.isascii() and port.isdecimal() and not port.startswith("0") and len(port) < 6
    if address and not (digits and int(port) < PORTS and _is_host(host)):
        raise InputError(f"address: must be HOST:PORT, where others reach this one, got {brief(address)}")
    return address


def _is_host(host: str) -> bool:
    """Whether a host can be dialled; what stands for all addresses of a machine cannot."""
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        number = ipaddress.ip_address(bare)
    except ValueError:
        return HOST.fullmatch(host) is not None and not host.rpartition(".")[2].isdecimal()
    return not number.is_unspecified and (number.version == 6) == (bare != host) and "%" not in bare
