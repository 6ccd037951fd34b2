"""What a link carries: beliefs from arrays to arrays over gRPC with mutual TLS, beside the same bytes sent bare.

    python benchmarks/wire.py [--seconds 3] [--repeat 3] [--json]

One process sends, another receives, on 127.0.0.1.
link    arrays encoded, hashed, cut into frames, sent by the transport, put together, hashed, checked, read as arrays
ready   the same frames again and again, of which only headers are read: the transport alone
half    beliefs in half the bytes
bare    a gRPC stream with the same TLS and chunks of the same size, of which nothing is read
socket  the same chunks over TCP without TLS: the loopback's own limit
Every belief is acknowledged; time ends with the last receipt. Rates are the best of some, CPU (of both processes) the
least, which a busy machine changes less. Goal: link at least 60 % of bare.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import NameOID

from consilience.engines.peers.transport.answering import Threads
from consilience.engines.peers.transport.certificates import fixed_name
from consilience.engines.peers.transport.grpc import GrpcTransport, Own
from consilience.engines.peers.transport.ports import free_port
from consilience.engines.peers.transport.quiet import OPTIONS, grpc
from consilience.engines.peers.wire import (
    Assembler,
    Bounds,
    Expected,
    Kind,
    Schema,
    about,
    chunks,
    decoded,
    frame,
    laid_out,
    parsed,
)
from consilience.engines.peers.wire.frames import LONGEST_PAYLOAD

SIZES = {"1.6 MB": 200_000, "16 MB": 2_000_000}  # weights of a mean-field belief in float32
STUDY = "0" * 64
AHEAD = 4  # beliefs that may be on their way before the first is acknowledged
METHOD = "/bench/Bare"


class Somebody(NamedTuple):
    """A member of the roster."""

    number: int
    name: str
    id: str
    certificate: str
    address: str


class Way(NamedTuple):
    """How beliefs are sent: what the other process does, and what this one does with so many seconds."""

    receive: Callable[[Any, Any, str, int, Connection], None]
    send: Callable[[Any, Any, str, int, float], tuple[int, float]]


def main() -> None:
    """Measure and print."""
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--seconds", type=float, default=3.0)
    words.add_argument("--repeat", type=int, default=3)
    words.add_argument("--json", action="store_true")
    given = words.parse_args()
    ways = {
        "link": Way(receive_link, send_link),
        "ready": Way(receive_ready, send_ready),
        "half": Way(receive_half, send_half),
        "bare": Way(receive_bare, send_bare),
        "socket": Way(receive_socket, send_socket),
    }
    told: dict[str, dict[str, float]] = {}
    for size, weights in SIZES.items():
        measured: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for _ in range(given.repeat):  # in turn, so that none has a better machine
            for name, way in ways.items():
                measured[name].append(_measured(way, weights, given.seconds))
        best = {name: max(rate for rate, _ in all_of) for name, all_of in measured.items()}
        work = {name: min(cpu for _, cpu in all_of) for name, all_of in measured.items()}
        told[size] = {
            **{f"{name}: beliefs a second": round(rate, 1) for name, rate in best.items()},
            **{f"{name}: MB a second": round(rate * 8 * weights / 1e6, 1) for name, rate in best.items()},
            **{f"{name}: ms of CPU a belief": round(1000 * cpu, 2) for name, cpu in work.items()},
            "link over bare": round(best["link"] / best["bare"], 3),
            "link over bare, by CPU": round(work["bare"] / work["link"], 3),
            "ready over bare, by CPU": round(work["bare"] / work["ready"], 3),
        }
    if given.json:
        print(json.dumps(told, indent=2))
        return
    print(f"{'':28}" + "".join(f"{size:>12}" for size in told))
    for row in next(iter(told.values())):
        print(f"{row:28}" + "".join(f"{told[size][row]:12}" for size in told))


def _measured(way: Way, weights: int, seconds: float) -> tuple[float, float]:
    """Beliefs a second, and seconds of CPU a belief, of both processes."""
    sender, receiver = _identity(), _identity()
    processes = multiprocessing.get_context("spawn")
    here, there = processes.Pipe()
    address = f"127.0.0.1:{free_port()}"
    other = processes.Process(target=way.receive, args=(receiver, sender, address, weights, there), daemon=True)
    other.start()
    there_began, here_began = here.recv(), time.process_time()
    count, spent = way.send(sender, receiver, address, weights, seconds)
    here.send("over")
    work = time.process_time() - here_began + here.recv() - there_began
    other.join(10)
    return count / spent, work / count


def _wait(pipe: Connection) -> None:
    """Say that it can begin, wait until it is over, and say how much CPU was spent before and after."""
    pipe.send(time.process_time())
    pipe.recv()
    pipe.send(time.process_time())


def _counted(begin: Callable[[int], None], receipts: queue.Queue[Any], seconds: float) -> tuple[int, float]:
    """Begin to send belief after belief, a few ahead of their receipts; how many there were, in how many seconds."""
    begin(0)
    receipts.get()  # the first warms up
    began, sent, heard = time.perf_counter(), 0, 0
    while heard < sent or time.perf_counter() - began < seconds:
        while sent < heard + AHEAD and time.perf_counter() - began < seconds:
            sent += 1
            begin(sent)
        receipts.get()
        heard += 1
    return heard, time.perf_counter() - began


# A link between peers.


class Sending:
    """The end that sends beliefs; `begin` makes the frames, as a peer does once a round for all its links."""

    def __init__(self, expected: Expected, weights: int) -> None:
        self.expected, self.belief = expected, _belief(weights)
        self.receipts: queue.Queue[int] = queue.Queue()
        self.frames: queue.Queue[bytes] = queue.Queue()

    def begin(self, number: int) -> None:
        """Send the belief of this round."""
        body = laid_out(self.belief, self.expected.schema, self.expected.form)
        for content in chunks(about(self.expected, 1, number, *body), *body):
            self.frames.put(content)

    def opened(self) -> None:
        """Nothing to say."""

    def closed(self, why: str) -> None:
        """Nothing to do."""

    def receive(self, content: bytes) -> None:
        """A receipt."""
        self.receipts.put(parsed(content)[1]["round"])

    def take(self, wait: float) -> bytes | None:
        """The next chunk."""
        try:
            return self.frames.get(timeout=wait) if wait else self.frames.get_nowait()
        except queue.Empty:
            return None


class Repeating(Sending):
    """The same, with frames that were made once."""

    def __init__(self, expected: Expected, weights: int) -> None:
        super().__init__(expected, weights)
        body = laid_out(self.belief, expected.schema)
        self._ready = list(chunks(about(expected, 1, 1, *body), *body))

    def begin(self, number: int) -> None:
        """Send it once more."""
        for content in self._ready:
            self.frames.put(content)


class Receiving:
    """The end that takes beliefs: all is checked before a receipt is sent."""

    def __init__(self, expected: Expected) -> None:
        self.expected = expected
        self.receipts: queue.Queue[bytes] = queue.Queue()
        self._assembler = Assembler(self._length)

    def _length(self, heard: Any) -> int:
        self.expected.check(heard)
        return int(heard.length)

    def opened(self) -> None:
        """Nothing to say."""

    def closed(self, why: str) -> None:
        """Nothing to do."""

    def receive(self, content: bytes) -> None:
        """A chunk."""
        whole = self._assembler.add(*parsed(content)[1:])
        if whole is not None:
            heard, body = whole
            decoded(body, self.expected.schema, Bounds(1e-6, 1e9), heard.form)
            self.expected = self.expected._replace(newest=(heard.incarnation, heard.round))
            self.receipts.put(frame(Kind.RECEIPT, {"round": heard.round}))

    def take(self, wait: float) -> bytes | None:
        """The next receipt."""
        try:
            return self.receipts.get(timeout=wait) if wait else self.receipts.get_nowait()
        except queue.Empty:
            return None


class Counting(Receiving):
    """The same, of which nothing but the headers is read."""

    _left = 0

    def receive(self, content: bytes) -> None:
        """A chunk."""
        self._left = (self._left or self.expected.schema.bytes) - len(parsed(content)[2])
        if self._left == 0:
            self.receipts.put(frame(Kind.RECEIPT, {"round": 1}))


def _expected(sender: Own, weights: int, form: str) -> Expected:
    return Expected(STUDY, 1, sender.id, Schema.of(_belief(weights)), form)


def _roster(sender: Own, receiver: Own, address: str) -> dict[str, Somebody]:
    members = (
        Somebody(0, "receiver", receiver.id, receiver.certificate, address),
        Somebody(1, "sender", sender.id, sender.certificate, ""),
    )
    return {member.id: member for member in members}


def receive_link(own: Own, other: Own, address: str, weights: int, pipe: Connection) -> None:
    """Take beliefs until it is over."""
    _receive(own, other, address, pipe, Receiving(_expected(other, weights, "exact")))


def receive_half(own: Own, other: Own, address: str, weights: int, pipe: Connection) -> None:
    """The same in half the bytes."""
    _receive(own, other, address, pipe, Receiving(_expected(other, weights, "half")))


def receive_ready(own: Own, other: Own, address: str, weights: int, pipe: Connection) -> None:
    """Count chunks."""
    _receive(own, other, address, pipe, Counting(_expected(other, weights, "exact")))


def _receive(own: Own, other: Own, address: str, pipe: Connection, end: Receiving) -> None:
    transport = GrpcTransport(own, address)
    transport.admit(_roster(other, own, address), {other.id: end})
    transport.start()
    _wait(pipe)
    transport.stop()


def send_link(own: Own, other: Own, address: str, weights: int, seconds: float) -> tuple[int, float]:
    """Send beliefs for so many seconds."""
    return _send(own, other, address, seconds, Sending(_expected(own, weights, "exact"), weights))


def send_half(own: Own, other: Own, address: str, weights: int, seconds: float) -> tuple[int, float]:
    """The same in half the bytes."""
    return _send(own, other, address, seconds, Sending(_expected(own, weights, "half"), weights))


def send_ready(own: Own, other: Own, address: str, weights: int, seconds: float) -> tuple[int, float]:
    """Send the same frames for so many seconds."""
    return _send(own, other, address, seconds, Repeating(_expected(own, weights, "exact"), weights))


def _send(own: Own, other: Own, address: str, seconds: float, end: Sending) -> tuple[int, float]:
    transport = GrpcTransport(own)
    transport.admit(_roster(own, other, address), {other.id: end})
    transport.start()
    try:
        return _counted(end.begin, end.receipts, seconds)
    finally:
        transport.stop()


# The same bytes, and nothing else.


def _pieces(weights: int) -> list[bytes]:
    body = bytes(8 * weights)
    return [body[at : at + LONGEST_PAYLOAD] for at in range(0, len(body), LONGEST_PAYLOAD)]


def receive_bare(own: Own, other: Own, address: str, weights: int, pipe: Connection) -> None:
    """Count chunks, and say when there are as many as a belief has."""

    def answer(requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        for number, _ in enumerate(requests, 1):
            if number % count == 0:
                yield b"receipt"

    count = len(_pieces(weights))
    server = grpc.server(Threads(), options=OPTIONS)
    handlers = {"Bare": grpc.stream_stream_rpc_method_handler(answer)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bench", handlers),))
    pair = (own.private_pem, own.certificate.encode())
    credentials = grpc.ssl_server_credentials([pair], other.certificate.encode(), require_client_auth=True)
    server.add_secure_port(address, credentials)
    server.start()
    _wait(pipe)
    server.stop(0).wait()


def send_bare(own: Own, other: Own, address: str, weights: int, seconds: float) -> tuple[int, float]:
    """Send the chunks of beliefs for so many seconds."""
    pieces, rounds, receipts = _pieces(weights), queue.Queue[int | None](), queue.Queue[bytes]()

    def sent() -> Iterator[bytes]:
        while rounds.get() is not None:
            yield from pieces

    credentials = grpc.ssl_channel_credentials(other.certificate.encode(), own.private_pem, own.certificate.encode())
    options = (*OPTIONS, ("grpc.ssl_target_name_override", fixed_name(other.id)))
    with grpc.secure_channel(address, credentials, options) as channel:
        call = channel.stream_stream(METHOD)(sent())

        def hear() -> None:
            for receipt in call:
                receipts.put(receipt)

        hearing = threading.Thread(target=hear, daemon=True)
        hearing.start()
        counted = _counted(rounds.put, receipts, seconds)
        rounds.put(None)
        hearing.join()
        return counted


def receive_socket(own: Own, other: Own, address: str, weights: int, pipe: Connection) -> None:
    """Count bytes, and say when there are as many as a belief has."""
    host, _, port = address.rpartition(":")
    room = memoryview(bytearray(LONGEST_PAYLOAD))

    def serve(server: socket.socket) -> None:
        caller, _ = server.accept()
        left = 8 * weights
        with caller:
            while got := caller.recv_into(room[: min(left, len(room))]):
                left -= got
                if left == 0:
                    left = 8 * weights
                    caller.sendall(b"r")

    with socket.create_server((host, int(port))) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        _wait(pipe)


def send_socket(own: Own, other: Own, address: str, weights: int, seconds: float) -> tuple[int, float]:
    """Send the chunks of beliefs for so many seconds."""
    pieces, rounds, receipts = _pieces(weights), queue.Queue[int | None](), queue.Queue[bytes]()
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port))) as line:

        def send() -> None:
            while rounds.get() is not None:
                for piece in pieces:
                    line.sendall(piece)

        def hear() -> None:
            while got := line.recv(1):
                receipts.put(got)

        threads = [threading.Thread(target=work, daemon=True) for work in (send, hear)]
        for thread in threads:
            thread.start()
        counted = _counted(rounds.put, receipts, seconds)
        rounds.put(None)
        threads[0].join()
        line.shutdown(socket.SHUT_RDWR)
        threads[1].join()
        return counted


def _belief(weights: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    precision = rng.uniform(25, 1e6, weights).astype(np.float32)
    return {".precision": precision, ".precision_mean": precision * rng.uniform(-2, 2, weights).astype(np.float32)}


def _identity() -> Own:
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    own = hashlib.sha256(public).hexdigest()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, fixed_name(own))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - timedelta(days=1))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(fixed_name(own))]), critical=False)
        .sign(key, hashes.SHA256())
        .public_bytes(Encoding.PEM)
        .decode()
    )
    return Own(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), certificate, own)


if __name__ == "__main__":
    main()
