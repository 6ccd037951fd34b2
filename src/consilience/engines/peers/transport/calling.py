"""Calling a neighbour, again and again until it answers, and again when the connection breaks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from consilience.engines.peers.transport import Frame, Id
from consilience.engines.peers.transport.certificates import fixed_name
from consilience.engines.peers.transport.connection import Broken, Connection, Link, say_loudly
from consilience.engines.peers.transport.diagnosis import found
from consilience.engines.peers.transport.quiet import METHOD, OPTIONS, WELCOME, grpc
from consilience.errors import printable
from consilience.streams import WORD, stream

SHORTEST, LONGEST = 0.2, 10.0  # seconds between two calls
PATIENCE = 10.0  # seconds for a call to be answered
FAREWELL = 1.0  # seconds at most until a neighbour has been told why it is refused
CALLER = (
    ("grpc.use_local_subchannel_pool", 1),  # a new channel is a new connection
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),  # addresses are called as they are, whatever the environment says
    ("grpc.service_config_disable_resolution", 1),
)
CLOSED = (
    "closed the connection when it saw our certificate: we are not in its roster yet, or no longer; "
    "compare epochs (consilience study show) and give it the newest bundle"
)


class Own(NamedTuple):
    """What a peer shows of itself, and the key that proves it."""

    private_pem: bytes
    certificate: str
    id: Id


def pause(own: Id, other: Id, attempt: int) -> float:
    """Seconds to wait after so many calls in vain: twice as long each time, up to a bound, and never two at one time.

    >>> [round(pause("0" * 64, "1" * 64, attempt), 1) <= LONGEST for attempt in (0, 5, 10**9)]
    [True, True, True]
    """
    longest = min(SHORTEST * 2.0 ** min(attempt, 30), LONGEST)
    seed = (int(own[:8], 16) ^ int(other[8:16], 16)) % WORD
    return longest * float(stream("back-off", seed, attempt % WORD).uniform(0.5, 1))


class Caller:
    """A thread that keeps a link connected by calling the neighbour."""

    def __init__(self, own: Own, link: Link, name_of: Callable[[Id], str | None]) -> None:
        self.own, self.link, self.name_of = own, link, name_of
        self.thread = threading.Thread(target=self._run, name=f"calling {link.member.name}", daemon=True)

    def _run(self) -> None:
        attempt = 0
        while not self.link.retired.is_set():
            if not self.link.ended(LONGEST):
                continue  # it has called us
            began = time.monotonic()
            connection = self.link.begin(PATIENCE)
            if connection is not None:
                try:
                    self.link.why = self._call(connection)
                except Exception as error:  # a mistake of our own: said, and the next call may do better
                    say_loudly(error)
                finally:
                    connection.fail("")
            attempt = 0 if time.monotonic() - began > LONGEST else attempt + 1
            self.link.retired.wait(pause(self.own.id, self.link.member.id, attempt))

    def _call(self, connection: Connection) -> str:
        """Call once, and stay on the line as long as there is one; why there is none any more."""
        member = self.link.member
        credentials = grpc.ssl_channel_credentials(
            member.certificate.encode(), self.own.private_pem, self.own.certificate.encode()
        )
        named = (("grpc.ssl_target_name_override", fixed_name(member.id)),)
        with grpc.secure_channel(member.address, credentials, (*OPTIONS, *CALLER, *named)) as channel:
            call = channel.stream_stream(METHOD)(connection.outgoing())
            connection.cancelled_by(call.cancel)
            deadline = threading.Timer(PATIENCE, call.cancel)
            deadline.daemon = True
            deadline.start()
            answered = dict(call.initial_metadata() or ())
            deadline.cancel()
            if WELCOME[0] in answered:
                connection.run(self._frames(call), lambda line: _refused(connection, call, line))
                return printable(f"{member.name}: {connection.why}")
        connection.fail("")
        return self.link.why if self.link.retired.is_set() else printable(f"{member.name}: {self._unanswered(call)}")

    def _unanswered(self, call: Any) -> str:
        """Why a call was not answered: as the neighbour says, or as far as can be seen from here."""
        if _is_said(call):
            return f"refuses our call: {call.details()}"
        if wrong := found(self.link.member, self.own.certificate, self.name_of):
            return wrong
        if call.code() == grpc.StatusCode.UNAVAILABLE:
            return CLOSED
        return f"does not answer our call ({call.code().name.lower()}); does it run the same version?"

    def _frames(self, call: Any) -> Iterator[Frame]:
        try:
            yield from call
        except grpc.RpcError:
            raise Broken(_broken(call)) from None


def _refused(connection: Connection, call: Any, line: str) -> None:
    """Have the neighbour told why nothing more of it is taken; it ends the call then, or we do."""
    ending = threading.Timer(FAREWELL, call.cancel)
    ending.daemon = True
    ending.start()
    connection.finish(f"a frame was refused: {line}", FAREWELL)
    with suppress(grpc.RpcError):
        for _ in call:
            pass
    ending.cancel()
    call.cancel()


def _is_said(call: Any) -> bool:
    """Whether the neighbour itself has answered, and not gRPC in its place."""
    return WELCOME[0] in dict(call.trailing_metadata() or ())


def _broken(call: Any) -> str:
    if _is_said(call):
        return f"it refused what we sent: {call.details()}"
    return f"the connection was lost ({call.details()})"
