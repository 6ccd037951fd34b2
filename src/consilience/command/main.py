"""The entry of the command `consilience`: it imports nothing until a signal, too, would end in one line.

Exit codes: 0 all well, 1 the run failed or was stopped, 2 bad usage or bad input (one line says what).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> NoReturn:
    """Run the command; however it ends, it ends with an exit code and, where something is wrong, in one line."""
    import sys

    try:
        from consilience.machine.stopping import signals_obeyed

        with signals_obeyed():
            from consilience.command.ends import obey
            from consilience.command.verbs import app

            obey(app)
    except KeyboardInterrupt:  # before signals were listened to, or after
        if sys.stderr is not None:
            sys.stderr.write("error: stopped\n")
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
