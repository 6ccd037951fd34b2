"""The walk-through of two hosts runs as it is written: on hosts with a network of their own, or at two addresses."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from children import quickly

import consilience
from consilience.engines.peers.transport.ports import free_port

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")
SECTION = TEXT.partition("## Two hosts, word for word")[2].partition("\n## ")[0]
BLOCKS = re.findall(r"^```sh\n# (north|south)([^\n]*)\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
WHERE = {"north": "10.77.0.1", "south": "10.77.0.2"}


class Host(NamedTuple):
    """A folder, how to run something there, and what others find it at."""

    folder: Path
    within: tuple[str, ...]
    address: str


def done(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True)


@contextmanager
def namespaces(folder):
    """Two network namespaces with a cable between them, and names for both; nothing else can be reached."""
    made = [f"consilience-{name}-{os.getpid()}" for name in WHERE]
    hosts = [Path("/etc/netns") / name for name in made]
    try:
        for name, host in zip(made, hosts, strict=True):
            done("ip", "netns", "add", name)
            host.mkdir(parents=True)
            (host / "hosts").write_text("".join(f"{at} {who}.example.org\n" for who, at in WHERE.items()))
        ends = [f"cs{os.getpid() % 100_000}{k}" for k in (0, 1)]
        done("ip", "link", "add", ends[0], "netns", made[0], "type", "veth", "peer", "name", ends[1], "netns", made[1])
        for name, end, at in zip(made, ends, WHERE.values(), strict=True):
            done("ip", "-n", name, "addr", "add", f"{at}/24", "dev", end)
            done("ip", "-n", name, "link", "set", end, "up")
            done("ip", "-n", name, "link", "set", "lo", "up")
        yield {
            who: Host(folder / who, ("ip", "netns", "exec", name), f"{who}.example.org:7600")
            for who, name in zip(WHERE, made, strict=True)
        }
    finally:
        for name, host in zip(made, hosts, strict=True):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
            shutil.rmtree(host, ignore_errors=True)


@contextmanager
def loopback(folder):
    yield {who: Host(folder / who, (), f"127.0.0.{k}:{free_port()}") for k, who in enumerate(WHERE, 1)}


def can_have_namespaces():
    try:
        done("ip", "netns", "add", f"consilience-try-{os.getpid()}")
        done("ip", "netns", "del", f"consilience-try-{os.getpid()}")
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


@pytest.fixture(
    params=[pytest.param("namespaces", marks=pytest.mark.soak), pytest.param("loopback", marks=pytest.mark.soak)]
)
def hosts(request, tmp_path):
    if request.param == "namespaces" and not can_have_namespaces():
        pytest.skip("this machine makes no network namespaces")
    rng = np.random.default_rng(0)
    with {"namespaces": namespaces, "loopback": loopback}[request.param](tmp_path) as made:
        for host in made.values():
            host.folder.mkdir()
            x = rng.normal(size=(60, 2)).round(3)
            y = np.where(rng.random(60) < 1 / (1 + np.exp(-x @ [2, -1])), "ill", "well")
            rows = [f"{a},{b},{label}" for (a, b), label in zip(x, y, strict=True)]
            (host.folder / "mine.csv").write_text("\n".join(["age,dose,outcome", *rows]) + "\n")
        yield made


@pytest.fixture
def tools(tmp_path):
    """`consilience`, and an `scp` that knows the folders."""
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "consilience").write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -c "from consilience.command.main import main; main()" "$@"\n'
    )
    (folder / "scp").write_text(f'#!/bin/sh\ncp "$1" "{tmp_path}/${{2%%.*}}/"\n')
    for file in folder.iterdir():
        file.chmod(0o755)
    return folder


def test_the_walk_through(hosts, tools):
    known = quickly(PATH=f"{tools}:{os.environ['PATH']}", PYTHONPATH=str(Path(consilience.__file__).parent.parent))
    assert {name for name, _, _ in BLOCKS} == {"north", "south"}
    running = []
    try:
        for name, how, text in BLOCKS:
            for who, host in hosts.items():
                text = text.replace(f"--listen {who}.example.org:7600", f"--listen {host.address}")
            words = [*hosts[name].within, "sh", "-e", "-c", text]
            if "goes on" in how:
                running.append(subprocess.Popen(words, cwd=hosts[name].folder, env=known))
                until(lambda name=name: (hosts[name].folder / "peer" / "health.json").exists())
                continue
            ran = subprocess.run(
                words, cwd=hosts[name].folder, env=known, capture_output=True, text=True, check=False, timeout=300
            )
            assert ran.returncode == 0, f"{name}: {text}\n{ran.stdout}\n{ran.stderr}"
            if "peer start" in text:
                assert [process.wait(120) for process in running] == [0]
    finally:
        for process in running:
            process.kill()
    assert "dose" in ran.stdout
    told = [json.loads(coefficients(host, known)) for host in hosts.values()]
    north, south = ([(one["mean"], one["sd"]) for one in each["together"]] for each in told)
    np.testing.assert_allclose(north, south, rtol=1e-4)  # in float32


def coefficients(host, known):
    words = ["consilience", "coefficients", "peer/run", "--json"]
    return subprocess.run(words, cwd=host.folder, env=known, capture_output=True, text=True, check=True).stdout


def until(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)
