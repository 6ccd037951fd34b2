"""Peers on 127.0.0.1 for tests: keys and certificates, free ports, and a line that can be cut."""

from __future__ import annotations

import hashlib
import socket
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from ends import Recorded

from consilience.engines.peers.transport.grpc import GrpcTransport, Own
from consilience.engines.peers.transport.ports import free_port

USES = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "key_cert_sign", "crl_sign")
USES += ("encipher_only", "decipher_only")  # none of these: the key signs, and is nobody's authority
BOTH_ENDS = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)


class Somebody(NamedTuple):
    """A member, as a roster has it."""

    number: int
    name: str
    id: str
    certificate: str
    address: str


class Peer(NamedTuple):
    own: Own
    member: Somebody

    @property
    def id(self) -> str:
        return self.own.id

    @property
    def pair(self) -> tuple[bytes, bytes]:
        return self.own.private_pem, self.own.certificate.encode()


def free_address() -> str:
    return f"127.0.0.1:{free_port()}"


def peer(number: int, name: str, address: str = "", begins: float = -1, ends: float = 3650) -> Peer:
    """Somebody with a new key; its certificate is valid from and to so many days from now."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    ID = hashlib.sha256(public).hexdigest()
    fixed = f"{ID[:32]}.consilience"
    called = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, fixed)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(called)
        .issuer_name(called)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + timedelta(days=begins))
        .not_valid_after(now + timedelta(days=ends))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(fixed)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(digital_signature=True, **dict.fromkeys(USES, False)), critical=True)
        .add_extension(x509.ExtendedKeyUsage(BOTH_ENDS), critical=False)
        .sign(key, hashes.SHA256())
        .public_bytes(Encoding.PEM)
        .decode()
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Peer(Own(private, certificate, ID), Somebody(number, name, ID, certificate, address))


def roster(*peers: Peer) -> dict[str, Somebody]:
    return {one.id: one.member for one in peers}


class Host:
    """A peer that runs: its transport, and its ends by whom they are for."""

    def __init__(self, own: Peer, listen: str | None = None) -> None:
        self.own = own
        self.ends: dict[str, Recorded] = {}
        self.transport = GrpcTransport(own.own, own.member.address if listen is None else listen)

    def admit(self, peers: list[Peer], linked: list[Peer] | None = None) -> Host:
        """With a link to all of them but itself, or to these; ends are kept."""
        others = [one for one in (peers if linked is None else linked) if one.id != self.own.id]
        for one in others:
            self.ends.setdefault(one.id, Recorded())
        self.transport.admit(roster(*peers), {one.id: self.ends[one.id] for one in others})
        return self

    def end(self, other: Peer) -> Recorded:
        return self.ends[other.id]

    def state(self, other: Peer) -> str:
        return self.transport.states().get(other.id, "unknown")


class Line:
    """A TCP line to an address, at a port of its own, that can be cut and mended."""

    def __init__(self, to: str) -> None:
        self.to = to.rpartition(":")[0], int(to.rpartition(":")[2])
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.whole, self.connections = True, 0
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self.whole = False
        for one in self._sockets:
            _end(one)
        self._sockets = []

    def mend(self) -> None:
        self.whole = True

    def remove(self) -> None:
        self.cut()
        _end(self.listener)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self.listener.accept()
                if not self.whole:
                    caller.close()
                    continue
                self.connections += 1
                answerer = socket.create_connection(self.to)
                self._sockets += [caller, answerer]
                for one, other in ((caller, answerer), (answerer, caller)):
                    threading.Thread(target=_pump, args=(one, other), daemon=True).start()


def _pump(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while content := one.recv(1 << 16):
            other.sendall(content)
    for each in (one, other):
        _end(each)


def _end(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
