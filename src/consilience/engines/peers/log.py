"""A peer's log: what has changed, a JSON line each; what happens again and again is counted, not written.

In a day it stays far below a megabyte, however long a neighbour is down or a link comes and goes: the same words are
written once in ten minutes at most, with how often they were said since, and of rounds only whom they missed. The file
is begun anew when it is large; the one before is kept.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from consilience.files.strict_json import strict_json

SELDOM = 600.0  # seconds between two lines that say the same
LARGEST = 1 << 20  # bytes of the file
OLDER = ".1"  # the end of the name of the one before
KINDS = 1000  # different words that are remembered


class Log:
    """Writes to a file; a disk that is full costs lines, never the peer.

    `now` is a clock that never goes back, `wall` tells the date.
    """

    def __init__(
        self,
        file: Path,
        now: Callable[[], float] = time.monotonic,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.file, self._now, self._wall = file, now, wall
        self._lock = threading.Lock()
        self._written: dict[str, float] = {}  # when which words were written last
        self._again: dict[str, int] = {}  # and how often they were said since

    def __call__(self, what: str, **facts: Any) -> None:
        """Something has happened; any thread may say so."""
        with self._lock:
            said = (str(facts[key]) for key in ("name", "why", "names", "missed") if key in facts)
            self._write(" ".join([what, *said]), {"what": what, **facts})

    def _write(self, same: str, facts: dict[str, Any]) -> None:
        before, now = self._written.get(same), self._now()
        if before is not None and now - before < SELDOM:
            self._again[same] = self._again.get(same, 0) + 1
            return
        if len(self._written) >= KINDS:
            self._written.clear()
            self._again.clear()
        self._written[same] = now
        if again := self._again.pop(same, 0):
            facts = {**facts, "also": again}
        line = {"time": self._wall().isoformat(timespec="seconds"), **facts}
        try:
            if self.file.exists() and self.file.stat().st_size >= LARGEST:
                self.file.replace(self.file.with_name(self.file.name + OLDER))
            with self.file.open("a", encoding="utf-8") as stream:
                stream.write(strict_json(line, indent=None) + "\n")
        except OSError:
            return
