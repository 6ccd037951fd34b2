"""A run's folder: what lies in it, and whether it is as it was written.

`run.json` says how the run came about and how it stands, and holds the checksums of the files beside it and its own.
A record is checked against the checkpoint, or where that is gone against `run.json`.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from consilience.errors import InputError
from consilience.files.sealed import sealed, unsealed
from consilience.files.whole import clear_unfinished, sha256_of, write_atomically
from consilience.runs import checkpoint
from consilience.runs.appended import NOTHING, Extent

CONFIG, RUN, RECORD, CHECKPOINT, SUMMARY, SHARES = (
    "config.toml",
    "run.json",
    "record.csv",
    "checkpoint.safetensors",
    "summary.json",
    "shares.json",
)
FIGURES = "figures"


def new_folder(experiment: str, parent: Path = Path("runs")) -> Path:
    """Make the first free folder for a run, runs/NAME-1, runs/NAME-2, …; two runs begun at once get different ones."""
    parent.mkdir(parents=True, exist_ok=True)
    for n in count(1):
        folder = parent / f"{experiment}-{n}"
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise AssertionError("unreachable")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a run's folder alone: two processes on one run would destroy its record."""
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"run: '{folder}' is being carried on by another process") from None
        clear_unfinished(folder)
        yield


def facts(folder: Path) -> dict[str, Any]:
    """What run.json says; nothing where there is none, because a run can be carried on without it."""
    try:
        text = (folder / RUN).read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError):
        text = ""
    known = unsealed(text)
    if known is None:
        raise InputError(
            f"run: '{folder / RUN}' is damaged; remove it to go on without what it says (command, hours, versions)"
        )
    return known


def note(folder: Path, **new: Any) -> None:
    """Add facts to run.json."""
    known = {**facts(folder), **new}
    write_atomically(folder / RUN, (json.dumps(sealed(known), indent=2) + "\n").encode())


def write_shares(folder: Path, kept: dict[str, Any]) -> None:
    """Write who held what; it has a checksum of its own, because run.json may be removed."""
    write(folder, SHARES, json.dumps(sealed(kept)).encode())


def shares(folder: Path) -> dict[str, Any]:
    """Who held what."""
    known = unsealed(read(folder, SHARES))
    if known is None:
        raise InputError(f"run: '{folder / SHARES}' is damaged")
    return known


def write(folder: Path, name: str, content: bytes) -> None:
    """Write a file and note its checksum; a crash between the two leaves either the old or the new file as good."""
    known = facts(folder).get("files", {})
    note(folder, files={**known, name: [*known.get(name, []), sha256_of(content)]})
    write_atomically(folder / name, content)
    note(folder, files={**known, name: [sha256_of(content)]})


def read(folder: Path, name: str) -> bytes:
    """The content of a file, as it was written."""
    try:
        content = (folder / name).read_bytes()
    except OSError as error:
        raise InputError(f"run: cannot read '{folder / name}': {error.strerror}") from None
    known = facts(folder).get("files", {})
    if name in known and sha256_of(content) not in known[name]:
        raise InputError(
            f"run: '{folder / name}' was changed since the run wrote it, or is damaged: {RUN} has another checksum"
        )
    return content


def check(folder: Path) -> None:
    """Refuse a folder in which a file that the run wrote once and for all is gone, or not as it was written."""
    check_place(folder)
    for name in facts(folder).get("files", {}):
        read(folder, name)


def check_place(folder: Path) -> None:
    """Refuse a folder in which a summary and figures could not be written, before anything is played for them."""
    figures, summary = folder / FIGURES, folder / SUMMARY
    if (figures.exists() or figures.is_symlink()) and not figures.is_dir():
        raise InputError(f"run: '{figures}' must be a folder, figures are drawn there")
    if summary.is_dir():
        raise InputError(f"run: '{summary}' must be a file, got a folder")


def check_beside(file: Path) -> None:
    """Refuse a file that lies in a run's folder and is not as the run wrote it; any other file is nobody's."""
    if (file.parent / RUN).is_file() and (file.parent / CONFIG).is_file():
        read(file.parent, file.name)


def latest_checkpoint(folder: Path) -> Path | None:
    """The checkpoint to carry on from: the last one, or the one before where the last was removed."""
    last = folder / CHECKPOINT
    return next((file for file in (last, checkpoint.before(last)) if file.exists()), None)


def played(folder: Path) -> int:
    """The rounds that a run's last checkpoint knows of, without one in which a peer still waited for others."""
    file = latest_checkpoint(folder)
    position = checkpoint.read_header(file).position if file else {}
    return int(position.get("round", 0)) - bool(position.get("peer", {}).get("published", False))


def extent(folder: Path, name: str = RECORD) -> Extent:
    """How much of a file that grows is known to be right: by the checkpoint or run.json, whichever knows more."""
    checkpointed, what = latest_checkpoint(folder), Path(name).stem
    saved = checkpoint.read_header(checkpointed).position.get(what) if checkpointed else None
    try:
        known = max(Extent(*one) for one in (saved, facts(folder).get(what), NOTHING) if one is not None)
    except TypeError:
        raise InputError(f"checkpoint: '{checkpointed}' does not say how long '{name}' was") from None
    file = folder / name
    if known == NOTHING and file.exists() and file.stat().st_size:
        raise InputError(f"record: nothing says how '{file}' should be, no checkpoint and no run.json")
    return known


def way_out(folder: Path) -> str:
    """From where a run can be carried on that cannot be from its last checkpoint and record as they are."""
    last = folder / CHECKPOINT
    older = checkpoint.before(last)
    if last.exists() and older.exists():
        try:
            header = checkpoint.read_header(older)
            checkpoint.check_arrays(older, header)
            Extent(*header.position["record"]).check(folder / RECORD)
            return f"remove {CHECKPOINT} to carry on from round {header.position['round']}"
        except (InputError, KeyError, TypeError):
            pass
    names = [file.name for file in (last, older) if file.exists()]
    return f"remove {' and '.join(names)} to play it again from the start" if names else "begin it anew"
