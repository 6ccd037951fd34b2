"""Files that are whole or not there: atomic writing, and checksums that tell a damaged file from a good one."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from consilience.errors import InputError

UNFINISHED = ".part"
PIECE = 1 << 22


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Whatever goes wrong with an open file says which one it is: a full disk does not."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(file)
        raise


@contextmanager
def replacing(file: Path, keep: Path | None = None) -> Iterator[IO[bytes]]:
    """A stream whose content takes the file's place as a whole when all of it is on disk, or never.

    What was there before can be kept under another name.
    """
    beside = file.with_name(f".{file.name}.{os.getpid()}{UNFINISHED}")
    try:
        with naming(file), beside.open("w+b") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if keep is not None and file.exists():
            _keep(file, keep)
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)


def _keep(file: Path, keep: Path) -> None:
    """Keep a file under another name, too: there is no moment at which it is gone, where links can be made."""
    linked = keep.with_name(f".{keep.name}.{os.getpid()}{UNFINISHED}")
    try:
        os.link(file, linked)
        linked.replace(keep)
    except OSError:
        file.replace(keep)
    finally:
        linked.unlink(missing_ok=True)


def write_atomically(file: Path, content: bytes) -> None:
    """Replace a file as a whole: after a crash it holds either what it held before or all of the new content."""
    with replacing(file) as stream:
        stream.write(content)


def clear_unfinished(folder: Path) -> None:
    """Remove what killed processes were writing; only for who holds the folder alone."""
    for file in folder.glob(f".*{UNFINISHED}"):
        file.unlink(missing_ok=True)


def sha256_of(content: bytes) -> str:
    """The checksum of some bytes."""
    return hashlib.sha256(content).hexdigest()


def sha256_of_file(file: Path, length: int | None = None) -> Any:
    """The hash of a file's content, or of its first bytes, as it stands: more can be added."""
    total, left = hashlib.sha256(), length
    with file.open("rb") as stream:
        while piece := stream.read(PIECE if left is None else min(PIECE, left)):
            total.update(piece)
            left = None if left is None else left - len(piece)
    return total


def checksum(field: str, file: Path) -> str:
    """The checksum of a file that a description names."""
    try:
        return str(sha256_of_file(file).hexdigest())
    except OSError as error:
        raise InputError(f"{field}: cannot read '{file}': {error.strerror}") from None
