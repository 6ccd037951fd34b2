"""Look for mistakes: thousands of odd cases, each a pure function of (seed, number).

    PYTHONPATH=src python tests/soak_fuzz.py --cases 20000 --seed 1 --jobs 2
    PYTHONPATH=src python tests/soak_fuzz.py --seed 1 --case 1234       (one case again, all of it shown)

Ends with code 1 where something was found.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

STUCK = 180  # seconds after which a worker that says nothing is given up
MEMORY = 4 << 30  # bytes a worker may ask for beyond what it has at its start


def main() -> int:
    """Hand the cases to workers, restart those that die, and tell what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--kinds", default="", help="only these, separated by commas")
    parser.add_argument("--case", type=int, help="only this one, shown in full")
    parser.add_argument("--keep", type=Path, help="with --case: leave its files in this folder")
    parser.add_argument("--out", type=Path, help="findings as JSON lines")
    parser.add_argument("--worker", nargs=2, type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case is not None:
        return _show(given)
    if given.worker:
        return _work(given)
    return _lead(given)


def _lead(given: argparse.Namespace) -> int:
    began = time.monotonic()
    workers = [_Worker(given, job) for job in range(given.jobs)]
    kinds: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    found: dict[str, list[dict[str, Any]]] = {}
    told = time.monotonic()
    while any(worker.alive for worker in workers):
        for worker in workers:
            for line in worker.lines():
                if "kind" in line:
                    kinds[line["kind"]] += 1
                    seconds[line["kind"]] += line["seconds"]
                for what in line.get("found", ()):
                    if what["what"] not in found:
                        _say(f"FOUND {what['what']}\n  --seed {given.seed} --case {line['number']}")
                    found.setdefault(what["what"], []).append({**what, "number": line["number"]})
        if time.monotonic() - told > 30:
            told = time.monotonic()
            pace = sum(kinds.values()) / (told - began) * 60
            _say(f"{sum(kinds.values())} of {given.cases} cases, {pace:.0f} a minute, {len(found)} findings")
        time.sleep(0.2)
    if given.out:
        given.out.write_text(
            "".join(json.dumps({"what": what, "cases": cases}) + "\n" for what, cases in found.items())
        )
    spent = time.monotonic() - began
    done = sum(kinds.values())
    _say(f"\n{done} cases in {spent:.0f} s ({done / spent * 60:.0f} a minute), seed {given.seed}")
    for kind, count in kinds.most_common():
        _say(f"  {count:6d}  {kind}  ({1000 * seconds[kind] / count:.0f} ms each)")
    for what, cases in sorted(found.items(), key=lambda item: -len(item[1])):
        shortest = min(cases, key=lambda case: len(case["text"]))
        _say(f"\n{len(cases)} × {what}\n  --seed {given.seed} --case {shortest['number']}\n{shortest['text'][:2000]}")
        _say(f"  → {shortest['details'][-1500:]}")
    _say(f"\n{len(found)} distinct findings" if found else "\nnothing was found")
    return 1 if found else 0


class _Worker:
    """A process that does every n-th case; when it dies or is stuck, the case is a finding and another one goes on."""

    def __init__(self, given: argparse.Namespace, job: int) -> None:
        self.given, self.job, self.next = given, job, given.first + job
        self.log = Path(tempfile.mkdtemp(prefix="fuzz-log-"))
        self.alive, self.started = True, 0
        self._begin()

    def _begin(self) -> None:
        self.started += 1
        self.out, self.place = self.log / f"{self.started}.jsonl", 0
        self.out.touch()
        command = [sys.executable, __file__, "--seed", str(self.given.seed), "--jobs", str(self.given.jobs)]
        command += ["--first", str(self.given.first), "--cases", str(self.given.cases), "--kinds", self.given.kinds]
        command += ["--worker", str(self.job), str(self.next)]
        with self.out.open("w") as stream, (self.log / f"{self.started}.err").open("w") as errors:
            self.process = subprocess.Popen(command, stdout=stream, stderr=errors, stdin=subprocess.DEVNULL)
        self.heard = time.monotonic()

    def lines(self) -> list[dict[str, Any]]:
        """What the worker has said since."""
        if not self.alive:
            return []
        ended = self.process.poll()
        with self.out.open() as stream:
            stream.seek(self.place)
            whole = [line for line in stream.readlines() if line.endswith("\n")]
        self.place += sum(len(line.encode()) for line in whole)
        said = [json.loads(line) for line in whole]
        for line in said:
            self.next = line["number"] + self.given.jobs if "kind" in line else self.next
            self.heard = time.monotonic()
        stuck = time.monotonic() - self.heard > STUCK
        if stuck:
            self.process.kill()
            ended = self.process.wait()
        if ended is None:
            return said
        if ended == 0:
            self.alive = False
        else:
            why = "stuck" if stuck else f"died with {ended}"
            last = (self.log / f"{self.started}.err").read_text(errors="replace")[-1500:]
            said.append(self._lost(why, last))
            self.next += self.given.jobs
            if self.next >= self.given.first + self.given.cases or self.started > 50:
                self.alive = False
            else:
                self._begin()
        return said

    def _lost(self, why: str, last: str) -> dict[str, Any]:
        finding = {"what": f"the process {why}: {last.strip().splitlines()[-1][:80] if last.strip() else ''}"}
        return {"number": self.next, "found": [{**finding, "details": last, "text": "(see --case)"}]}


def _prepare() -> Path:
    """JAX on one device, with programs kept, and a folder for the cases whose name has always the same length."""
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=1"
    os.environ.setdefault("COLUMNS", "80")
    for name in ("CONSILIENCE_DATA", "FORCE_COLOR", "NO_COLOR", "SLURM_JOB_ID"):
        os.environ.pop(name, None)
    sys.path.insert(0, str(Path(__file__).parent))
    home = Path(tempfile.gettempdir()) / f"fuzz-{os.getpid():08d}"
    home.mkdir()
    os.environ["CONSILIENCE_CACHE"] = str(home / "cache")
    from consilience.machine.runtime import keep_compiled_programs, use_all_cores

    use_all_cores()
    keep_compiled_programs(Path(tempfile.gettempdir()) / "fuzz-programs")
    from fuzz import templates

    templates.WHERE.append(home / "case")
    return home


def _work(given: argparse.Namespace) -> int:
    import shutil

    home = _prepare()
    from fuzz.cases import KINDS, case
    from fuzz.homes import homes
    from fuzz.invariants import judge
    from fuzz.templates import RUNS, STATES, template

    wanted = given.kinds.split(",") if given.kinds else list(KINDS)
    for name in RUNS:
        for state in STATES:
            template(name, state)
    homes()  # peers have threads of their own
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    _, number = given.worker
    try:
        while number < given.first + given.cases:
            made = case(given.seed, number)
            if made.kind in wanted:
                began = time.monotonic()
                found = judge(made, home / "case")
                line = {"number": number, "kind": made.kind, "seconds": round(time.monotonic() - began, 3)}
                line["found"] = [{"what": f.what, "details": f.details[-3000:], "text": made.text()} for f in found]
                sys.stdout.write(json.dumps(line) + "\n")
                sys.stdout.flush()
            number += given.jobs
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return 0


def _show(given: argparse.Namespace) -> int:
    import shutil

    home = _prepare()
    from fuzz.cases import case
    from fuzz.invariants import _fill, judge

    made = case(given.seed, given.case)
    _say(made.text())
    if given.keep:
        _fill(given.keep, made.files)
    found = judge(made, home / "case")
    shutil.rmtree(home, ignore_errors=True)
    for finding in found:
        _say(f"FOUND {finding.what}\n{finding.details}")
    return 1 if found else 0


def _say(text: str) -> None:
    sys.stdout.write(text.encode("utf-8", "backslashreplace").decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
