"""Why a neighbour cannot be reached, in one line: what failed, and what to do about it.

gRPC says little more than "Socket closed". So when a call has failed, the way to the neighbour is gone once more, step
by step: its name, its port, TLS, its key, its dates. What is left when all of these are right is that it refuses us.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable

from consilience.engines.peers.transport import Id, Member
from consilience.engines.peers.transport.certificates import fixed_name, id_of, outdated

PATIENCE = 1.5  # seconds for each step
RENEW = "who owns it needs a new one (consilience peer init), or one of the clocks is wrong"


def found(member: Member, own_certificate: str, name_of: Callable[[Id], str | None]) -> str | None:
    """What is wrong on the way to a member that should answer at its address, as far as can be seen from here."""
    return _at_the_address(member, name_of) or _of_our_own(own_certificate)


def place(address: str) -> tuple[str, int]:
    """Host and port of an address, HOST:PORT or [IPv6]:PORT.

    >>> place("[::1]:7000")
    ('::1', 7000)
    """
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _at_the_address(member: Member, name_of: Callable[[Id], str | None]) -> str | None:
    try:
        with socket.create_connection(place(member.address), PATIENCE) as connection:
            shown = _shown(connection, fixed_name(member.id))
    except (socket.gaierror, UnicodeError, ValueError):
        return f"the name in its address {member.address} is not known here; is the address in its card right?"
    except TimeoutError:
        return f"{member.address} does not answer; is it stopped, or a firewall in between?"
    except ConnectionRefusedError:
        return f"nobody listens at {member.address}; is it running (consilience peer start), and is the port open?"
    except OSError as error:
        return f"{member.address} cannot be reached ({error.strerror or error}); is there a network?"
    if shown is None:
        return f"what listens at {member.address} does not speak TLS; is the address in its card right?"
    if (key := _key(shown)) != member.id:
        whose = name_of(key)
        who = f"that of {whose}" if whose else f"ID {key[:16]}"
        return (
            f"{member.address} shows another key ({who}); if its key has changed take the newest bundle "
            "(consilience peer join), else the address is wrong or somebody is in between"
        )
    wrong = outdated(shown)
    return f"its certificate {wrong}; {RENEW}" if wrong else None


def _key(certificate: bytes) -> Id:
    try:
        return id_of(certificate)
    except Exception:  # no certificate that can be read, for whatever reason, so nobody's
        return "unknown"


def _of_our_own(certificate: str) -> str | None:
    wrong = outdated(certificate)
    return f"refuses our certificate, which {wrong}; {RENEW}" if wrong else None


def _shown(connection: socket.socket, name: str) -> bytes | None:
    """The certificate that is shown at the other end of a connection, whoever's it is; none where no TLS is spoken."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # nothing is sent: it is only looked at
    context.set_alpn_protocols(["h2"])
    try:
        with context.wrap_socket(connection, server_hostname=name) as tls:
            return tls.getpeercert(binary_form=True)
    except TimeoutError:
        raise
    except OSError:  # ssl.SSLError is one
        return None
