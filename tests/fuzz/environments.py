"""What is around a command: files that odd words may name, variables of the environment, streams."""

from __future__ import annotations

from .invariants import FOLDER, Case, Content, Link
from .templates import data_files
from .wild import Rng, chance, pick

SMALL = ("rounds=5", "replicates=2")


def surroundings(rng: Rng) -> dict[str, Content]:
    """Files that odd words may name."""
    return {
        "own.csv": data_files()["own.csv"],
        "W.csv": b"0.5,0.5\n0.25,0.75\n",
        "W.toml": b"W = [[0.5, 0.5], [0.25, 0.75]]\n",
        "owners.txt": b"0\n1\n" * 24,
        "file": b"",
        "folder": FOLDER,
        "folder.csv": FOLDER,
        "folder/inside": b"x",
        "link": Link("nowhere"),
    }


def environment(rng: Rng) -> Case:
    """The command with odd variables of the environment, in this process."""
    files = surroundings(rng) | {"mnist/train-images-idx3-ubyte": b"\x00\x00\x08\x03" + b"\x00" * 20}
    variables = {}
    for name in ("CONSILIENCE_DATA", "CONSILIENCE_CACHE", "HOME", "XDG_CACHE_HOME", "COLUMNS", "TERM", "NO_COLOR"):
        if chance(rng, 0.35):
            variables[name] = pick(
                rng, (".", "", "folder", "file", "nowhere", "link", "é", "0", "-1", "x" * 300, "file/x")
            )
    for name in ("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", "FORCE_COLOR"):
        if chance(rng, 0.25):
            variables[name] = pick(rng, ("1", "0", "-1", "2", "x", "", "9" * 30, "١"))
    words = pick(
        rng,
        (
            ["data", "list"],
            ["data", "list", "--json"],
            ["data", "fetch", "mnist"],
            ["data", "partition", "star-mnist"],
            ["run", "star-mnist"],
            ["run", "linear-regression", *(word for text in SMALL for word in ("--set", text))],
        ),
    )
    return Case("", list(words), files, variables, only_begin=True)


def process(rng: Rng) -> Case:
    """The command in a process of its own, in an odd environment."""
    environment = {}
    for name, options in {
        "COLUMNS": ("0", "1", "-5", "x", "99999"),
        "TERM": ("dumb", "", "x"),
        "FORCE_COLOR": ("1", "0"),
        "PYTHONIOENCODING": ("ascii", "latin1", "utf-16"),
        "LC_ALL": ("C", "POSIX", "nowhere"),
        "TMPDIR": ("nowhere", "file"),
        "CONSILIENCE_CACHE": ("file", "nowhere", "/proc/x", "é"),
        "HOME": ("", "nowhere", "file"),
        "MPLBACKEND": ("x",),
        "JAX_PLATFORMS": ("x", "cpu", ""),
        "JAX_ENABLE_X64": ("1", "x"),
        "JAX_COMPILATION_CACHE_DIR": ("file", "nowhere", "/proc/x"),
        "XLA_FLAGS": (
            "",
            "--nonsense",
            "x",
            "--xla_force_host_platform_device_count=0",
            "--xla_force_host_platform_device_count=x",
            "--xla_force_host_platform_device_count=1 --xla_dump_to=",
        ),
        "OMP_NUM_THREADS": ("0", "x"),
        "GLIBC_TUNABLES": ("x",),
    }.items():
        if chance(rng, 0.12):
            environment[name] = pick(rng, options)
    small = [word for text in ("rounds=2", "replicates=1", "test_samples=5") for word in ("--set", text)]
    words = pick(
        rng,
        (
            ["theory", "star"],
            ["theory", "star", "--json"],
            ["config", "star-digits"],
            ["experiments"],
            ["run", "linear-regression", *small],
            ["run", "linear-regression", "--json", *small],
            ["data", "partition", "star-digits"],
            ["theory", "漢字"],
        ),
    )
    return Case(
        "", list(words), surroundings(rng), environment, process=pick(rng, ("", "", "full", "closed", "no stdin"))
    )
