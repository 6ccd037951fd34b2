"""One stream between two ends, whichever of them opened it; and a link, which has at most one at a time."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator

from consilience.engines.peers.transport import CONNECTED, End, Frame, Member
from consilience.engines.peers.wire import Refused
from consilience.engines.peers.wire.frames import Turned

WAIT = 0.2  # seconds after which a sender looks up whether there is still somebody to send to
STOPPED = "we have stopped"


class Broken(Exception):
    """The stream ended otherwise than it should; says why."""


class Traffic:
    """What went over a link, over all its connections."""

    def __init__(self) -> None:
        self.sent = self.received = 0
        self.refused: Counter[str] = Counter()


class Connection:
    """A stream's life: opened, frames both ways by two threads, closed. Nothing of it reaches the end afterwards."""

    def __init__(self, end: End, traffic: Traffic) -> None:
        self.end, self.traffic, self.why = end, traffic, ""
        self.opened, self.done = False, threading.Event()
        self._cancel: Callable[[], object] = lambda: None
        self._lock, self._taking = threading.Lock(), threading.Lock()
        self._ready, self._closing, self._last = threading.Event(), threading.Event(), threading.Event()
        self._last_words = ""
        self._sender_left = threading.Event()

    def cancelled_by(self, cancel: Callable[[], object]) -> None:
        """How to end the stream at once; done so if it has been closed already."""
        with self._lock:
            self._cancel = cancel
            if self._closing.is_set():
                cancel()

    def close(self, why: str, at_once: bool = True) -> None:
        """End it, for this reason unless there was one before; or send no more and let the stream end by itself."""
        with self._lock:
            if not self._closing.is_set():
                self.why = self._last_words or why
                self._closing.set()
            self._ready.set()
            if at_once:
                self._cancel()

    def finish(self, why: str = STOPPED, within: float = 0.0) -> None:
        """Send what the end still has to send, and then no more; wait so long for it."""
        self._last_words = why
        self._last.set()
        self._sender_left.wait(within)

    def fail(self, why: str) -> None:
        """Close what was never opened; nothing where it has ended by itself."""
        self.close(why)
        self.done.set()

    def run(self, frames: Iterator[Frame], refuse: Callable[[str], object] = lambda line: None) -> None:
        """Hand over what comes, until it ends, is refused or is closed; `refuse` is told before the stream ends."""
        told = False
        try:
            self.end.opened()
            self.opened = told = True
            self._ready.set()
            for frame in frames:
                if self._closing.is_set():
                    break
                self.traffic.received += len(frame)
                self.end.receive(frame)
            self.close("the other end closed the connection", at_once=False)
        except Refused as refused:
            self.traffic.refused[refused.reason] += 1
            refuse(str(refused))
            self.close(f"a frame was refused: {refused}", at_once=False)
        except (Broken, Turned) as ended:
            self.close(str(ended), at_once=False)
        except Exception as error:  # a mistake of our own: said loudly, and the link goes on with the next connection
            say_loudly(error)
            self.close(f"failed here: {type(error).__name__}", at_once=False)
        finally:
            self.opened = False
            with self._taking:  # whoever takes has left, and finds it closed
                if told:
                    self._tell_closed()
            if not self._sender_left.wait(2 * WAIT):
                self.close(self.why)  # it is stuck in sending
            self.done.set()

    def _tell_closed(self) -> None:
        try:
            self.end.closed(self.why)
        except Exception as error:
            say_loudly(error)

    def outgoing(self) -> Iterator[Frame]:
        """What to send. A frame is taken when the last one has gone, so nobody's slowness is anybody else's."""
        try:
            self._ready.wait()
            while (frame := self._taken()) is not None:
                self.traffic.sent += len(frame)
                yield frame
        except Exception as error:
            say_loudly(error)
            self.close(f"failed here: {type(error).__name__}")
        finally:
            self._sender_left.set()

    def _taken(self) -> Frame | None:
        """The next frame, or nothing when there will be none."""
        while True:
            with self._taking:
                if self._closing.is_set():
                    return None
                last = self._last.is_set()
                frame = self.end.take(0.0 if last else WAIT)
            if frame is not None or last:
                return frame


class Link:
    """A neighbour, our end of the link with it, and the connection that there is."""

    def __init__(self, member: Member, end: End, traffic: Traffic, why: str) -> None:
        self.member, self.end, self.traffic, self.why = member, end, traffic, why
        self.retired = threading.Event()
        self._current: Connection | None = None
        self._lock, self._turn = threading.Lock(), threading.Lock()

    @property
    def state(self) -> str:
        """Connected, or why not."""
        current = self._current
        return CONNECTED if current is not None and current.opened else self.why

    def begin(self, patience: float) -> Connection | None:
        """A new connection, in the place of the last one, which has ended by then; none where it does not end."""
        with self._turn:
            last = self._current
            if last is not None:
                last.close("a newer connection took its place")
                if not last.done.wait(patience):
                    return None
            with self._lock:
                if self.retired.is_set():
                    return None
                self._current = Connection(self.end, self.traffic)
                return self._current

    def finish(self) -> None:
        """Send what is left to send, and begin no other connection."""
        with self._lock:
            self.retired.set()
            if self._current is not None:
                self._current.finish()

    def retire(self, why: str) -> None:
        """End it for good; does not wait."""
        with self._lock:
            self.retired.set()
            if self._current is not None:
                self._current.close(why)

    def ended(self, within: float) -> bool:
        """Whether there is no connection any more, or none within so many seconds."""
        current = self._current
        return current is None or current.done.wait(max(within, 0))


def say_loudly(error: Exception) -> None:
    """Show a mistake of our own as any other thread's, and go on."""
    where = threading.current_thread()
    threading.excepthook(threading.ExceptHookArgs((type(error), error, error.__traceback__, where)))
