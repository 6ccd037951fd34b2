"""No module reaches backwards along the way of the data, and the exports are what they say."""

import ast
import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import consilience

ROOT = Path(consilience.__file__).parent
MATHEMATICS = ("beliefs", "learners", "consensus", "network", "theory", "agent.py")
ENGINES = ("engines",)


def imported(file: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def files(*parts: str) -> list[Path]:
    return [f for part in parts for f in ((ROOT / part).rglob("*.py") if (ROOT / part).is_dir() else [ROOT / part])]


def offenders(where: list[Path], banned: tuple[str, ...]) -> list[str]:
    return [
        f"{file.relative_to(ROOT)} imports {name}"
        for file in where
        for name in imported(file)
        if any(name == ban or name.startswith(ban + ".") for ban in banned)
    ]


def test_mathematics_knows_no_engine_report_or_command():
    later = (
        "engines",
        "experiments",
        "report",
        "runs",
        "command",
        "paper",
        "task",
    )
    assert not offenders(files(*MATHEMATICS), tuple(f"consilience.{name}" for name in later))


def test_engines_know_no_experiment_or_report():
    later = ("experiments", "report", "runs.run", "command", "paper")
    assert not offenders(files(*ENGINES), tuple(f"consilience.{name}" for name in later))


@pytest.mark.parametrize(
    ("library", "homes"),
    [
        ("matplotlib", ("report",)),
        ("typer", ("command",)),
        ("socket", ("engines/peers", "engines/hosts.py")),
        ("grpc", ("engines/peers",)),
        ("cryptography", ("engines/peers",)),
    ],
)
def test_libraries_stay_at_home(library, homes):
    outside = [f for f in ROOT.rglob("*.py") if not str(f.relative_to(ROOT)).startswith(homes)]
    assert not offenders(outside, (library,))


@pytest.mark.parametrize("library", ["pickle", "cloudpickle", "marshal", "shelve"])
def test_nothing_unpickles(library):
    assert not offenders(list(ROOT.rglob("*.py")), (library,))


@pytest.mark.parametrize("name", consilience.__all__)
def test_everything_that_is_offered_has_a_runnable_example(name):
    offered = getattr(consilience, name)
    examples = doctest.DocTestFinder(recurse=False).find(offered, name)
    assert sum(len(test.examples) for test in examples), f"{name} has no example"


def test_the_readme_lists_everything_that_is_offered():
    lines = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8").splitlines()
    listed = {name for line in lines if line.startswith("| `") for name in re.findall(r"`(\w+)`", line.split("|")[1])}
    assert listed == set(consilience.__all__)


@pytest.mark.parametrize("name", [m.name for m in pkgutil.walk_packages([str(ROOT)], "consilience.")])
def test_exports_exist_and_are_sorted(name):
    module = importlib.import_module(name)
    exported = getattr(module, "__all__", [])
    assert all(hasattr(module, item) for item in exported)
    assert list(exported) == sorted(exported)
