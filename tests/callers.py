"""Programs that call a peer and are none: strangers, and members that do not keep to what was agreed."""

from contextlib import suppress

from ends import numbered

from consilience.engines.peers.transport.certificates import fixed_name
from consilience.engines.peers.transport.quiet import METHOD, grpc
from consilience.engines.peers.wire import LONGEST_FRAME


def call(to, own=None, root=None, frames=(), address=None):
    """What a program of its own gets that calls a peer: what it received, the code and the words of the end."""
    key, certificate = own.pair if own else (None, None)
    credentials = grpc.ssl_channel_credentials((root or to).own.certificate.encode(), key, certificate)
    options = (("grpc.ssl_target_name_override", fixed_name(to.id)), ("grpc.max_send_message_length", -1))
    with grpc.secure_channel(address or to.member.address, credentials, options) as channel:
        return called(channel, frames)


def called(channel, frames=()):
    stream = channel.stream_stream(METHOD)(iter(frames), timeout=10)
    received = []
    with suppress(grpc.RpcError):
        received.extend(stream)
    return received, stream.code(), stream.details()


def trouble(to, member, stranger, times):
    """What a program does that a peer has to refuse; the words it gets for frames that are not what was agreed."""
    words = {call(to, member, frames=[numbered(0, 1 << 20)])[2] for _ in range(times)}
    for _ in range(5):
        call(to, stranger)
        call(to, member, frames=[bytes(LONGEST_FRAME + 1)])
    return words
