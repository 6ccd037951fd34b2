"""Answering calls: a server that lets in nobody but the admitted, and hands the calls of neighbours to their links."""

from __future__ import annotations

import socket
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import Any, NoReturn

from consilience.engines.peers.transport import Frame, Id
from consilience.engines.peers.transport.calling import Own
from consilience.engines.peers.transport.certificates import id_of
from consilience.engines.peers.transport.connection import WAIT, Broken, Connection, Link
from consilience.engines.peers.transport.diagnosis import place
from consilience.engines.peers.transport.quiet import NAME, OPTIONS, SERVICE, WELCOME, grpc
from consilience.errors import InputError, printable

MOST_CALLS = 512  # at a time
MOVE = "; end what has it, or move (consilience peer init NAME --same-key --listen HOST:PORT) and send the new card"
PATIENCE = 5.0  # seconds that a new call waits for the end of the one before
INTRODUCTION = 3.0  # seconds after which somebody who has connected must have called
ANSWERER = (
    ("grpc.so_reuseport", 0),  # or two peers could listen at one port
    ("grpc.max_concurrent_streams", 8),
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
)


class Threads(Executor):
    """A thread for every call, which ends with the program also where nobody stops it: a pool would be waited for."""

    def submit(self, work: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        """Begin to do it."""
        future: Future[Any] = Future()

        def do() -> None:
            try:
                future.set_result(work(*given, **named))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=do, name="answering", daemon=True).start()
        return future


class Knocks:
    """Connections that were begun and came to no call: whoever made them could not show who it is."""

    def __init__(self) -> None:
        self.strangers, self.last = 0, -float("inf")
        self._begun: deque[float] = deque(maxlen=1000)
        self._known: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    def begun(self) -> None:
        """Somebody has connected."""
        with self._lock:
            self._settle()
            self._begun.append(time.monotonic())

    def called(self, peer: str) -> None:
        """Somebody at this address and port has proved who it is."""
        with self._lock:
            if peer not in self._known and self._begun:
                self._begun.popleft()
            self._known[peer] = None
            if len(self._known) > 1000:
                self._known.popitem(last=False)

    def since(self) -> tuple[int, float]:
        """How many strangers there were, and how many seconds ago the last one was."""
        with self._lock:
            self._settle()
            return self.strangers, time.monotonic() - self.last

    def _settle(self) -> None:
        while self._begun and time.monotonic() - self._begun[0] > INTRODUCTION:
            self.strangers, self.last = self.strangers + 1, self._begun.popleft()


class Answerer:
    """A listening port. `link_of(id)` gives the link of a caller, or in words why it has none; asked at every call."""

    def __init__(self, own: Own, listen: str, link_of: Callable[[Id], Link | str]) -> None:
        self.own, self.listen, self.link_of, self.knocks = own, listen, link_of, Knocks()
        self._certificates: Any = None
        self._given: Any = None
        self._server: Any = None
        self.admit(())

    def admit(self, certificates: Iterable[str]) -> None:
        """Let nobody through the handshake but the owners of these."""
        pair = (self.own.private_pem, self.own.certificate.encode())
        roots = "\n".join(certificates) or self.own.certificate
        self._certificates = grpc.ssl_server_certificate_configuration([pair], roots.encode())

    def start(self) -> None:
        """Listen."""
        server = grpc.server(Threads(), options=(*OPTIONS, *ANSWERER), maximum_concurrent_rpcs=MOST_CALLS)
        handler = grpc.stream_stream_rpc_method_handler(self._answer)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {NAME: handler}),))
        credentials = grpc.dynamic_ssl_server_credentials(
            self._certificates, self._renewed, require_client_authentication=True
        )
        try:
            server.add_secure_port(self.listen, credentials)
        except RuntimeError:
            raise InputError(f"listen: cannot listen at {self.listen}: {_why_not(self.listen)}{MOVE}") from None
        server.start()
        self._server = server

    def stop(self, within: float) -> None:
        """End all calls and close the port."""
        if self._server is not None:
            self._server.stop(0).wait(max(within, 0))

    def _renewed(self) -> Any:
        """The certificates as they are now; gRPC asks before every handshake."""
        self.knocks.begun()
        given, self._given = self._given, self._certificates
        return None if given is self._given else self._given

    def _answer(self, frames: Iterator[Frame], context: Any) -> Iterator[Frame]:
        self.knocks.called(context.peer())
        link = self.link_of(id_of(context.auth_context()["x509_pem_cert"][0]))
        context.set_trailing_metadata((WELCOME,))
        if isinstance(link, str):
            _turn_away(context, link)
        connection = link.begin(PATIENCE)
        if connection is None:
            _turn_away(context, "the connection before has not ended yet")
        try:
            connection.cancelled_by(context.cancel)
            context.send_initial_metadata((WELCOME,))
            read = (link, connection, frames, context)
            threading.Thread(target=self._read, args=read, name=f"hearing {link.member.name}", daemon=True).start()
        except BaseException:  # the caller has gone already
            connection.fail("the connection was lost")
            raise
        return connection.outgoing()

    def _read(self, link: Link, connection: Connection, frames: Iterator[Frame], context: Any) -> None:
        def refuse(line: str) -> None:
            context.set_code(grpc.StatusCode.FAILED_PRECONDITION)
            context.set_details(line)

        connection.run(_until_lost(frames, context), refuse)
        link.why = printable(f"{link.member.name}: {connection.why}")


def _turn_away(context: Any, line: str) -> NoReturn:
    context.abort(grpc.StatusCode.PERMISSION_DENIED, line)
    raise AssertionError  # abort raises


def _until_lost(frames: Iterator[Frame], context: Any) -> Iterator[Frame]:
    """The frames of a call. When it ends, the caller waits for our end of it, or there is no caller any more."""
    over = threading.Event()
    context.add_callback(over.set)
    with suppress(grpc.RpcError):
        yield from frames
        if not over.wait(WAIT):
            return
    raise Broken("the connection was lost")


def _why_not(address: str) -> str:
    """gRPC does not say why a port cannot be used; the system does."""
    try:
        host, port = place(address)
        family, kind, _, _, where = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as test:
            test.bind(where)
    except (OSError, ValueError, OverflowError) as error:
        return str(getattr(error, "strerror", None) or error)
    return "it is in use"
