"""The claims as the table of a document: `python -m consilience.paper.document results/paper docs/paper.md`.

It replaces what stands between two marks in the document with what the runs kept in the folder tell, and writes the
same claims for machines beside the folder (`results/paper.json`); plays nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from consilience.errors import InputError
from consilience.files.reading import reading
from consilience.files.whole import write_atomically
from consilience.paper.claims import Claim, as_markdown
from consilience.paper.parts import PARTS
from consilience.paper.reproduce import claims_of, due, kept, missing_of, write_claims

BEGIN, END = "<!-- claims: begin -->", "<!-- claims: end -->"


def claims_in(out: Path) -> tuple[list[Claim], str]:
    """Every claim whose runs are finished in a folder; from how many runs, and which are missing for the others."""
    planned = due(PARTS, out)
    runs = {one.play.name: kept(one) for one in planned if one.finished}
    missing = missing_of(PARTS, runs)
    claims = claims_of([part for part in PARTS if part.name not in missing], runs)
    hours = sum(float(run.facts.get("hours", 0)) for run in runs.values())
    waiting = "".join(f"- {name}: {', '.join(f'`{play}`' for play in plays)}\n" for name, plays in missing.items())
    source = f"From {len(runs)} of {len(planned)} runs, {hours:.2f} hours from begin to end (with the pauses of some)."
    return claims, source + (f" Not told yet, for want of a run:\n\n{waiting}" if missing else "\n")


def table(out: Path) -> str:
    """The claims as a table, and what it was made from."""
    claims, source = claims_in(out)
    return f"{as_markdown(claims)}\n{source}"


def filled(text: str, block: str) -> str:
    """The text with a block between its marks, in the place of what stood there.

    >>> filled(f"Above.\\n{BEGIN}\\nold\\n{END}\\nBelow.", "new\\n") == f"Above.\\n{BEGIN}\\nnew\\n{END}\\nBelow."
    True
    """
    above, begin, rest = text.partition(BEGIN)
    _, end, below = rest.partition(END)
    if not (begin and end) or BEGIN in below or END in above:
        raise InputError(f"it must have one {BEGIN} and after it one {END}")
    return f"{above}{BEGIN}\n{block}{END}{below}"


def refresh(out: Path, document: Path) -> None:
    """Write the claims that a folder tells into a document, and beside the folder, FOLDER.json, for machines."""
    if not out.is_dir():
        raise InputError(f"results: '{out}' must be a folder")
    block = table(out)
    with reading("document", document):
        text = filled(document.read_text(encoding="utf-8"), block)
    write_atomically(document, text.encode())
    write_claims(out.with_name(f"{out.name}.json"), claims_in(out)[0])


def main(words: Sequence[str]) -> int:
    """Refresh a document; what is wrong is said in one line."""
    try:
        if len(words) != 2:
            raise InputError(f"give two paths, a folder of results and a document, got {len(words)}")
        refresh(*map(Path, words))
    except InputError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
