"""A peer in a process of its own that sends back whatever it receives. On standard input: who it is, and the roster.

    python tests/echoing_peer.py [--forgets]

It says "ready", and runs until it is told to stop; one that forgets ends without having stopped its transport.
"""

from __future__ import annotations

import json
import queue
import signal
import sys
import threading

from consilience.engines.peers.transport.grpc import GrpcTransport, Own
from consilience.engines.peers.wire import Kind, frame


class Echo:
    """An end that sends back what comes."""

    def __init__(self) -> None:
        self.frames: queue.Queue[bytes] = queue.Queue()

    def opened(self) -> None:
        """Nothing to say."""

    def closed(self, why: str) -> None:
        """Nothing to do."""

    def receive(self, content: bytes) -> None:
        self.frames.put(content)

    def take(self, wait: float) -> bytes | None:
        try:
            return self.frames.get(timeout=wait) if wait else self.frames.get_nowait()
        except queue.Empty:
            return None


def main() -> None:
    from peers_rig import Somebody

    said = json.load(sys.stdin)
    own = Own(said["private_pem"].encode(), said["certificate"], said["id"])
    members = {one[2]: Somebody(*one) for one in said["members"]}
    ends = {key: Echo() for key in members if key != own.id}
    transport = GrpcTransport(own, said["listen"])
    transport.admit(members, ends)
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    transport.start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while not stopped.wait(0.2):  # a signal that another thread gets does not wake this one
        pass
    if "--forgets" not in sys.argv:
        for end in ends.values():
            end.frames.put(frame(Kind.GOODBYE, {}))
        transport.stop()


if __name__ == "__main__":
    main()
