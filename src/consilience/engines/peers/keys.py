"""Keys, what is signed with them, and names that follow from them: a key says who somebody is, and no authority."""

from __future__ import annotations

import base64
import binascii
import hashlib
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TypeAlias

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from consilience.errors import InputError

Id: TypeAlias = str  # SHA-256, in lower-case hexadecimal digits, of a public key
Key: TypeAlias = ec.EllipticCurvePrivateKey
CURVE = ec.SECP256R1
EARLIER = timedelta(days=1)  # certificates are valid from a day before: clocks differ
IN_A_NAME = 32  # digits of the ID: a part of a host's name has at most 63 letters


def new_key() -> Key:
    """A key that nobody else has."""
    return ec.generate_private_key(CURVE())


def id_of_key(key: Key) -> Id:
    """The ID of whoever has this key."""
    return _hashed(key.public_key())


def id_of(certificate: str | bytes, what: str = "certificate") -> Id:
    """The ID of whom a certificate is of: the hash of its public key, which stays when it is issued again."""
    return _hashed(_public(certificate, what))


def fixed_name(id: Id) -> str:
    """The only host name that a certificate has: who somebody is does not depend on where it is.

    >>> fixed_name("ab" * 32)
    'abababababababababababababababab.consilience'
    """
    return f"{id[:IN_A_NAME]}.consilience"


def sign(key: Key, content: bytes) -> str:
    """A signature (ECDSA with SHA-256), in base64."""
    return base64.b64encode(key.sign(content, ec.ECDSA(SHA256()))).decode()


def check_signature(certificate: str | bytes, content: bytes, signature: str) -> bool:
    """Whether the key of a certificate has signed exactly this; the signature, too, may be written in one way only."""
    public = _public(certificate, "certificate")
    try:
        signed = base64.b64decode(signature, validate=True)
        if base64.b64encode(signed).decode() != signature or not isinstance(public, ec.EllipticCurvePublicKey):
            return False
        public.verify(signed, content, ec.ECDSA(SHA256()))
    except (InvalidSignature, binascii.Error, ValueError):
        return False
    return True


def self_signed(key: Key, now: datetime, days: int) -> str:
    """A certificate in which a key says who it is itself, for both ends of a connection, and for nobody else."""
    id = id_of_key(key)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, fixed_name(id))])
    usage = dict.fromkeys(
        ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "key_cert_sign", "crl_sign"),
        False,
    )
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLIER)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(fixed_name(id))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(
            x509.KeyUsage(digital_signature=True, encipher_only=False, decipher_only=False, **usage), critical=True
        )
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        .sign(key, SHA256())
    )
    return made.public_bytes(Encoding.PEM).decode()


def check_certificate(certificate: str, id: Id, what: str) -> None:
    """Refuse a certificate that is not of this key, by this key, and for its fixed name only."""
    read, public = _read(certificate, what), _public(certificate, what)
    if (found := _hashed(public)) != id:
        raise InputError(f"{what}: its certificate is of another key, {found[:12]}…, not {id[:12]}…")
    try:
        alone = read.public_bytes(Encoding.PEM).decode() == certificate
        named = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        fits = list(named) == [x509.DNSName(fixed_name(id))] and read.subject.rfc4514_string() == f"CN={fixed_name(id)}"
        authority = read.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        read.verify_directly_issued_by(read)
    except Exception:  # extensions that are lacking or odd, signatures by others: each fails in its own way
        alone = fits = authority = False
    on_curve = isinstance(public, ec.EllipticCurvePublicKey) and isinstance(public.curve, CURVE)
    if not (alone and fits and on_curve) or authority:
        raise InputError(f"{what}: its certificate is not one that `consilience peer init` makes")


def check_dates(certificate: str, now: datetime, what: str = "certificate") -> None:
    """Refuse a certificate that is not valid at a moment (one with a time zone)."""
    begins, ends = valid(certificate, what)
    here = f"the clock here says {now.astimezone(begins.tzinfo):%Y-%m-%d %H:%M} UTC"
    if now < begins:
        raise InputError(f"{what}: its certificate is valid from {begins:%Y-%m-%d %H:%M} UTC on; {here}")
    if now > ends:
        raise InputError(f"{what}: its certificate expired at {ends:%Y-%m-%d %H:%M} UTC; {here}")


def valid(certificate: str, what: str = "certificate") -> tuple[datetime, datetime]:
    """From when to when a certificate is valid."""
    read = _read(certificate, what)
    return read.not_valid_before_utc, read.not_valid_after_utc


def _hashed(public: CertificatePublicKeyTypes) -> Id:
    return hashlib.sha256(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


@lru_cache(maxsize=1024)  # every part of every message is checked with one of a few
def _public(certificate: str | bytes, what: str) -> CertificatePublicKeyTypes:
    try:
        return _read(certificate, what).public_key()
    except (ValueError, UnsupportedAlgorithm):  # a point that is not on the curve, or no key that is known
        raise InputError(f"{what}: its certificate cannot be read") from None


def _read(certificate: str | bytes, what: str) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(certificate.encode() if isinstance(certificate, str) else certificate)
    except Exception:  # damaged ones fail in many ways
        raise InputError(f"{what}: its certificate cannot be read") from None
