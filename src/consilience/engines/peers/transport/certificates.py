"""What a transport reads in a certificate: whose key it is, and when it is valid."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from consilience.engines.peers.transport import Id


def id_of(certificate: str | bytes) -> Id:
    """The SHA-256 of a certificate's public key (of PEM or DER): the same for all certificates of one key."""
    key = _read(certificate).public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(key).hexdigest()


def fixed_name(key: Id) -> str:
    """The one host name in a certificate, wherever its owner is.

    >>> fixed_name("0123456789abcdef" * 4)
    '0123456789abcdef0123456789abcdef.consilience'
    """
    return f"{key[:32]}.consilience"


def outdated(certificate: str | bytes, now: datetime | None = None) -> str | None:
    """In what way a certificate is not valid by this host's clock, if it is not."""
    read, now = _read(certificate), now or datetime.now(UTC)
    begin, end = read.not_valid_before_utc, read.not_valid_after_utc
    if begin <= now <= end:
        return None
    said = f"expired on {end:%Y-%m-%d %H:%M}" if now > end else f"is not valid before {begin:%Y-%m-%d %H:%M}"
    return f"{said} UTC, and this host's clock says {now:%Y-%m-%d %H:%M}"


def _read(certificate: str | bytes) -> x509.Certificate:
    content = certificate.encode() if isinstance(certificate, str) else certificate
    load = x509.load_pem_x509_certificate if content.startswith(b"-----") else x509.load_der_x509_certificate
    return load(content)
