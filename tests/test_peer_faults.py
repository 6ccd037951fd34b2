"""Peers in processes of their own, disturbed in every way: each run ends, evidence counts once, files stay readable."""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from children import quickly
from peer_homes import made, simulated

import consilience as cs
from consilience.learning import together
from consilience.learning.asking import status
from consilience.runs.checkpoint import check_arrays, read_header

at_length = pytest.mark.soak
PROGRAM = Path(__file__).with_name("faulty_peer.py")
NAMES = ("north", "east", "south", "west", "lake")
# Sums mix slowly.
ROUNDS = {"pooling": 120, "sites": 120, "tracking": 240, "linear": 240}
PAUSE = {"pooling": "0.3", "sites": "0.3", "tracking": "0.05", "linear": "0.1"}
EXACT = ("sites", "tracking", "linear")


class Network:
    """Peers, five where nothing else is said, and whatever happens to them."""

    def __init__(self, folder, rule, environments=None, patience=0.4, names=NAMES, rounds=None):
        self.folder, self.rule, self.rounds, self.names = folder, rule, rounds or ROUNDS[rule], names
        given = "laplace" if rule == "sites" else rule
        self.bundle, self.files, self.task = made(folder, given, self.rounds, patience, names, (300,) * len(names))
        self.environments, self.running = environments or {}, {}

    def start(self, name, *faults):
        words = [sys.executable, str(PROGRAM), str(self.folder / name), "--pause", PAUSE[self.rule], *faults]
        known = quickly(**self.environments.get(name, {}))
        with (self.folder / f"{name}.said").open("ab") as said:
            self.running[name] = subprocess.Popen(words, env=known, stdout=said, stderr=subprocess.STDOUT)

    def signal(self, name, number):
        self.running[name].send_signal(number)
        if number == signal.SIGKILL:
            self.running[name].wait(30)

    def round(self, name):
        return status(self.folder / name)["round"]

    def until(self, condition, seconds=120):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "\n".join(f"{name}: {text}" for name, text in self.said().items())
            time.sleep(0.1)

    def said(self):
        return {name: (self.folder / f"{name}.said").read_text()[-2000:] for name in self.names}

    def ended(self):
        codes = {name: process.wait(400) for name, process in self.running.items()}
        assert set(codes.values()) == {0}, self.said()
        assert not [name for name, text in self.said().items() if "Traceback" in text], self.said()

    def close(self):
        for process in self.running.values():
            process.kill()
            process.wait()


@pytest.fixture
def network(tmp_path):
    begun = []

    def beginning(rule, *faults, **named):
        begun.append(Network(tmp_path, rule, **named))
        for name in NAMES:
            begun[-1].start(name, *faults)
        begun[-1].until(lambda: all(begun[-1].round(name) >= 3 for name in NAMES))
        return begun[-1]

    yield beginning
    for one in begun:
        one.close()


def check(network, rule, exact=True):
    """Exact rules end with the posterior of all data; pooled ones predict as well as undisturbed; files can be read."""
    task = network.task if rule == "pooling" else {**network.task, "consensus": {"kind": "sites"}}
    undisturbed = simulated(network.folder / "simulated", network.bundle, network.files, task, 120)
    homes = [network.folder / name for name in NAMES]
    told = together.report(together.gathered(homes), network.folder / "together")
    expected, ended = (each["arms"]["together"]["average_pooled"] for each in (undisturbed.summary(), told))
    score = "rmse" if rule == "linear" else "accuracy"
    assert abs(ended[score] - expected[score]) <= 0.01
    for number, home in enumerate(homes):
        file = home / "run" / "checkpoint.safetensors"
        check_arrays(file, read_header(file))
        assert not [*home.rglob("*.part")]
        if exact and rule in EXACT:
            for theirs, own in zip(undisturbed.flat_belief(number), cs.load(home / "run").flat_belief(0), strict=True):
                np.testing.assert_allclose(own, theirs, rtol=1e-6, atol=1e-6 * np.abs(theirs).max())


FAULTS = ("--loss", "0.2", "--again", "0.2", "--late", "0.3")


def test_those_who_disturb_are_no_mistake_of_their_own(tmp_path):
    """Two peers under all faults for a few rounds: what the long tests stand on."""
    names = ("north", "south")
    world = Network(tmp_path, "sites", names=names, rounds=12)
    try:
        for name in names:
            world.start(name, "--loss", "0.2", "--again", "0.5", "--late", "0.1")
        world.ended()
    finally:
        world.close()
    for name, other in (names, names[::-1]):
        heard = [line.split(",")[1] for line in (tmp_path / name / "run" / "heard.csv").read_text().splitlines()[1:]]
        assert 1 <= heard.count(other) <= 12


@at_length
@pytest.mark.parametrize("rule", ["pooling", "sites", "linear"])
def test_everybody_is_killed_in_turn_while_a_fifth_of_all_messages_is_lost(network, rule):
    rng = np.random.default_rng(1)
    world = network(rule, *FAULTS)
    for name in NAMES:
        time.sleep(rng.uniform(0, 1.0))
        world.signal(name, signal.SIGKILL)
        before = max(world.round(other) for other in NAMES if other != name)
        time.sleep(rng.uniform(0, 1.5))
        world.start(name, *FAULTS)
        world.until(lambda name=name, before=before: world.round(name) >= min(before, world.rounds))
    world.ended()
    check(world, rule)


@at_length
def test_who_comes_back_when_all_others_have_played_their_rounds_is_waited_for(network):
    world = network("sites", patience=4.0)  # and so they stay for 40 s
    world.signal("south", signal.SIGKILL)
    neighbours = ("east", "west")  # on the ring
    world.until(lambda: all(world.round(name) == world.rounds for name in neighbours))
    world.start("south")
    world.until(lambda: all(process.poll() is not None for process in world.running.values()), seconds=60)
    assert all('"staying"' in (world.folder / name / "log.jsonl").read_text() for name in neighbours)
    world.ended()
    check(world, "sites", exact=False)  # the others have its site as it was early on


@at_length
@pytest.mark.parametrize("rule", ["pooling", "sites"])
def test_a_frozen_peer_costs_its_weight_and_comes_back(network, rule):
    world = network(rule)
    world.signal("south", signal.SIGSTOP)
    before = world.round("north")
    world.until(lambda: world.round("north") >= before + 10)
    world.signal("south", signal.SIGCONT)
    world.until(lambda: world.round("south") >= before + 10)
    world.ended()
    check(world, rule)


@at_length
@pytest.mark.parametrize("rule", ["pooling", "tracking"])
def test_halves_that_do_not_hear_each_other_come_together_again(network, rule):
    world = network(rule)
    (world.folder / "cut").write_text("north east")
    before = world.round("north")
    world.until(lambda: min(map(world.round, NAMES)) >= before + 10)
    (world.folder / "cut").unlink()
    world.ended()
    check(world, rule)


@at_length
def test_a_slow_link_is_waited_for_and_no_more(network):
    world = network("sites", "--late", "0.8")
    world.ended()
    check(world, "sites")


@at_length
@pytest.mark.skipif(shutil.which("gcc") is None, reason="a clock is turned by a small library in C")
@pytest.mark.parametrize("hours", [-23, 23])
def test_a_clock_that_is_a_day_off_changes_nothing(network, tmp_path, hours):
    """Certificates count from a day before they were made, and nothing else asks what time it is."""
    source, library = tmp_path / "clock.c", tmp_path / "clock.so"
    source.write_text(CLOCK.replace("OFFSET", str(hours * 3600)))
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    world = network("sites", environments={"south": {"LD_PRELOAD": str(library)}})
    world.ended()
    check(world, "sites")
    assert '"south"' in (world.folder / "east" / "log.jsonl").read_text()  # its neighbour


CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
int clock_gettime(clockid_t which, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int done = real(which, now);
    if (!done && which == CLOCK_REALTIME) now->tv_sec += OFFSET;
    return done;
}
int gettimeofday(struct timeval *now, void *zone) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *kept) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (kept) *kept = found.tv_sec;
    return found.tv_sec;
}
"""
