"""What there is of memory, and what is refused before it is begun."""

import pytest

from consilience.described.networks import (
    Complete,
    ErdosRenyi,
    Grid,
    PathGraph,
    Ring,
    Star,
    WattsStrogatz,
)
from consilience.errors import InputError
from consilience.machine import memory
from consilience.network import complete, erdos_renyi, grid, path, ring, star, watts_strogatz

FREE = "MemTotal: 9 kB\nMemAvailable: 4000 kB\n"


def machine(folder, group, limits, version):
    """A machine with 4,000 kB left whose process is in a control group; limits are (limit, used, cached) by folder."""
    names = (
        ("memory.max", "memory.current", "inactive_file")
        if version == 2
        else ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    )
    (folder / "proc" / "self").mkdir(parents=True)
    (folder / "proc" / "meminfo").write_text(FREE)
    line = f"0::{group}" if version == 2 else f"3:cpu:/other\n7:memory:{group}"
    (folder / "proc" / "self" / "cgroup").write_text(line + "\n")
    root = folder / "groups" / ("" if version == 2 else "memory")
    for place, (limit, used, cached) in limits.items():
        (root / place).mkdir(parents=True, exist_ok=True)
        (root / place / names[0]).write_text(f"{limit}\n")
        (root / place / names[1]).write_text(f"{used}\n")
        (root / place / "memory.stat").write_text(f"anon 5\n{names[2]} {cached}\n")
    return memory.available(folder / "proc", folder / "groups")


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("limits", "left"),
    [
        ({}, 4_096_000),
        ({"a/b": ("max", 500, 0)}, 4_096_000),
        ({"a/b": (10_000, 4000, 1000)}, 7000),
        ({"a/b": ("max", 1, 0), "a": (3000, 1000, 0)}, 2000),
        ({".": (5000, 1000, 0)}, 4000),
        ({"a/b": (10, 4000, 0)}, 0),
    ],
)
def test_the_tightest_limit_counts(tmp_path, version, limits, left):
    assert machine(tmp_path, "/a/b", limits, version) == left


def test_a_machine_without_control_groups(tmp_path):
    (tmp_path / "meminfo").write_text(FREE)
    assert memory.available(tmp_path, tmp_path) == 4_096_000
    assert memory.available(tmp_path / "nothing", tmp_path) > 0


@pytest.mark.parametrize(
    ("described", "built"),
    [
        (Star(edges=40), star(40)),
        (Grid(rows=30, columns=20), grid(30, 20)),
        (Ring(agents=50), ring(50)),
        (PathGraph(agents=50), path(50)),
        (Complete(agents=30), complete(30)),
        (ErdosRenyi(agents=200, probability=0.2), erdos_renyi(200, 0.2)),
        (WattsStrogatz(agents=50, neighbours=6), watts_strogatz(50, 6)),
    ],
)
def test_links_are_estimated_before_they_are_there(described, built):
    assert described.expected_edges() == pytest.approx(built.edges, rel=0.1)


def test_what_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 24 * 10**9)
    with pytest.raises(InputError, match=r"^a: needs about 31 GB, there are 24$"):
        memory.require(31e9, "a")
    memory.require(23e9, "a")
