"""Look for mistakes in what is taken from neighbours: many thousands of spoilt messages, each by (seed, number).

    PYTHONPATH=src python tests/soak_wire.py --cases 100000 --seed 1
    PYTHONPATH=src python tests/soak_wire.py --seed 1 --case 1234       (one case again)

Ends with code 1 where anything but a refusal came of one, anything was taken that was not sent, or memory grew.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np
from wire_cases import LARGE, SMALL, SPOILT, play

GROWTH = 64 << 20  # bytes that may be taken after the first tenth of the cases: none of it grows with their number
LARGE_EVERY = 20  # one in so many cases is about messages of several frames, which take longer


def main() -> int:
    """Play the cases and tell what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="only this one")
    given = parser.parse_args()
    began, found, reasons, held = time.monotonic(), 0, Counter(), 0
    for number in range(given.cases) if given.case is None else [given.case]:
        rng = np.random.default_rng(np.random.SeedSequence(given.seed, spawn_key=(number,)))
        spoil = SPOILT[rng.integers(len(SPOILT))]
        honest = LARGE if rng.integers(LARGE_EVERY) == 0 else SMALL
        try:
            reasons.update(play(spoil, honest, rng))
        except Exception:  # whatever comes of a case is what is looked for
            found += 1
            _say(f"FOUND in {spoil.__name__}: --seed {given.seed} --case {number}\n{traceback.format_exc()}")
        if number == given.cases // 10:
            held = _memory()
    if held and _memory() - held > GROWTH:
        found += 1
        _say(f"FOUND: memory grew from {held >> 20} to {_memory() >> 20} MiB")
    spent = time.monotonic() - began
    listed = ", ".join(f"{reason} {count}" for reason, count in reasons.most_common())
    _say(f"{given.cases} cases in {spent:.0f} s, seed {given.seed}; refused: {listed}")
    _say(f"{found} findings" if found else "nothing was found")
    return 1 if found else 0


def _memory() -> int:
    """What this process holds in memory, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
