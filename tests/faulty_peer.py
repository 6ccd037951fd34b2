"""A peer in a process of its own whose messages suffer: they are lost, repeated, late, out of order.

    python tests/faulty_peer.py HOME --loss 0.2 --again 0.2 --late 0.5 --pause 0.1

--pause: seconds that learning takes at least, so that there is time for things to happen. Names in the file `cut`
beside its home are those whom it does not reach and who do not reach it.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

CUT = "cut"


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("home", type=Path)
    for name in ("loss", "again", "late", "pause"):
        given.add_argument(f"--{name}", type=float, default=0.0)
    asked = given.parse_args()

    from consilience.engines.peers import life, node
    from consilience.learning.peer import Peer

    rng, lock = random.Random(os.getpid()), threading.Lock()
    send, learn, receive = node.Node.send, life.Life._learn, life.Life.receive

    def away(own: str, other: str) -> bool:
        """Whether a partition lies between the two: one half is named in the file."""
        try:
            half = (asked.home.parent / CUT).read_text().split()
        except OSError:
            return False
        return bool(half) and (own in half) != (other in half)

    def sending(self, neighbour, said):
        with lock:
            lost, again, late = (rng.random() for _ in range(3))
        if (
            neighbour not in self.neighbourhood.place.linked
            or away(self.identity.name, self.neighbourhood.place.members[neighbour].name)
            or lost < asked.loss
        ):
            return
        if asked.late:
            threading.Timer(late * asked.late, send, (self, neighbour, said)).start()
        else:
            send(self, neighbour, said)
        if again < asked.again:
            threading.Timer(2 * late * (asked.late or 0.2), send, (self, neighbour, said)).start()

    def receiving(self, said):
        known = self.around.neighbourhood.place.members
        if said.sender in known and away(self.around.identity.name, known[said.sender].name):
            return False
        return receive(self, said)

    def learning(self, number):
        time.sleep(asked.pause)
        learn(self, number)

    node.Node.send, life.Life.receive, life.Life._learn = sending, receiving, learning
    peer = Peer(asked.home, health_port=0)
    signal.signal(signal.SIGTERM, lambda *_: peer.stop())
    peer.run()
    sys.exit(0 if peer.node.round >= peer.node.life.rounds else 1)


if __name__ == "__main__":
    main()
