"""`consilience study`: a steward says what is learnt, by whom, and who hears whom; signed, so that all can trust it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from consilience.command.ends import paths_given
from consilience.command.shared import AsJson, Quiet, print_json, say
from consilience.errors import InputError, brief
from consilience.machine.stopping import unwinding

if TYPE_CHECKING:
    from consilience.engines.peers.steward import Stewardship
    from consilience.engines.peers.study import Study

study = typer.Typer(
    help="Say what peers learn together, who takes part, and who hears whom; sign it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Home = Annotated[Path, typer.Option("--home", metavar="FOLDER", help="The steward's folder.")]
HOME = Path("study")
ADD = "consilience study add NAME.card …"
LINKS = "consilience study links ring"
SIGN = "consilience study sign"
ADDED = "let each of them read its eight words out to you: they must be these"
REMOVED = "{name} takes part no more, once this is signed; what was pooled from it stays pooled"
StudySettings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a field of the study, e.g. --set policy.patience=10."),
]


@study.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the study is called.")],
    task: Annotated[
        Path, typer.Option(metavar="FILE", help="What is learnt: a description as `consilience new` writes them.")
    ],
    rule: Annotated[str | None, typer.Option(help="How peers learn: see `consilience rules`.")] = None,
    rounds: Annotated[int | None, typer.Option(help="How many [default: the description's].")] = None,
    settings: StudySettings = None,
    steward: Annotated[str, typer.Option(metavar="NAME", help="What you are called as its steward.")] = "steward",
    home: Home = HOME,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Begin a study: what is learnt is built and checked, and you get a key to sign with.

    Whose data is where stays out of it: every peer brings its own file. Settings reach all of the study, e.g.
    --set policy.patience=10 --set task.learner.epochs=3; once begun, it never changes.
    """
    with unwinding(), paths_given():
        from consilience.engines.peers.steward import STUDY, Stewardship

        made, left = _described(name, task, rule, rounds, settings or [])
        begun = Stewardship.begin(home, made, steward)
    then = f"collect the cards of all who take part, then: {_at(home, ADD)}"
    if as_json:
        print_json({**_told(begun), "left_out": left, "wrote": str(home / STUDY), "next": then})
    elif not quiet:
        say(f"study {name}, {made.hash[:12]}…: {made.task['learner']['kind']}, {made.task['consensus']['kind']}")
        if left:
            say(f"not part of a study, left out: {', '.join(left)}")
        say(f"wrote {home / STUDY}: read it, it never changes; your key to sign with never leaves this machine")
        say(f"next: {then}")


@study.command()
def add(
    cards: Annotated[list[Path], typer.Argument(metavar="CARD", help="The cards that `consilience peer init` wrote.")],
    replaces: Annotated[
        str | None, typer.Option(metavar="NAME", help="The card has a new key of this member, signed by the old one.")
    ] = None,
    home: Home = HOME,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Admit those who sent you their cards; a new card of a member's own key takes the place of the old one."""
    with unwinding(), paths_given():
        from consilience.command.roster import show_people
        from consilience.engines.peers.card import read_card
        from consilience.engines.peers.keys import check_dates
        from consilience.engines.peers.steward import Stewardship

        read = [read_card(file) for file in cards]
        for card in read:
            check_dates(card.certificate, datetime.now(UTC), f"card of {brief(card.name)}")
        added = Stewardship.open(home).add(read, replaces)
    _end(added, as_json, quiet, lambda: show_people([added.notes.roster.named(card.name) for card in read]), ADDED)


@study.command()
def links(
    who: Annotated[
        list[str],
        typer.Argument(
            metavar="ring|complete|star|FILE|NAME:NAME…", help="A rule, pairs, or hearer,heard,trust as CSV."
        ),
    ],
    home: Home = HOME,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Say who hears whom; a rule also links those who come later. The centre of a star is the first member.

    Without trusts, weights are Metropolis': everybody counts alike.
    """
    with unwinding(), paths_given():
        from consilience.command.roster import show_weights
        from consilience.engines.peers.steward import Stewardship

        linked = Stewardship.open(home).link(who)
    _end(linked, as_json, quiet, lambda: show_weights(linked.notes.roster))


@study.command()
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whom.")],
    home: Home = HOME,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Let somebody take part no more, for ever: its key cannot come back. What was pooled from it stays pooled."""
    with unwinding(), paths_given():
        from consilience.engines.peers.steward import Stewardship

        left = Stewardship.open(home).remove(name)
    _end(left, as_json, quiet, lambda: None, REMOVED.format(name=name))


@study.command()
def sign(home: Home = HOME, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Sign who takes part and who hears whom, as the next epoch; writes the bundle that everybody gets."""
    with unwinding(), paths_given():
        from consilience.command.roster import told_bundle
        from consilience.engines.peers.steward import BUNDLE, Stewardship

        signed, wrote = Stewardship.open(home).sign(), home / BUNDLE
    then = f"send {wrote} to everybody, who types: consilience peer join {BUNDLE} --data mine.csv"
    if as_json:
        print_json({**told_bundle(signed), "wrote": str(wrote), "next": then})
    elif not quiet:
        say(f"wrote {wrote}: {signed.study.name}, epoch {signed.roster.epoch}, {_members(len(signed.roster.members))}")
        if signed.roster.epoch > 1:
            say("of those who are running, one is enough, without --data: a newer roster goes from peer to peer")
        say(f"next: {then}")


@study.command()
def show(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A bundle or a card [default: the steward's folder].")
    ] = None,
    home: Home = HOME,
    as_json: AsJson = False,
) -> None:
    """Show what is in a bundle or on a card, and check that nobody has changed it."""
    with unwinding(), paths_given():
        from consilience.command.roster import show_bundle, show_people, show_roster, told_bundle, told_person
        from consilience.engines.peers.bundle import Bundle
        from consilience.engines.peers.card import CARD, read_card
        from consilience.engines.peers.signed import kind_of, read_text
        from consilience.engines.peers.steward import Stewardship

        if file is None:
            known = Stewardship.open(home)
            _end(known, as_json, False, lambda: show_roster(known.study, known.notes.roster))
        elif kind_of(read_text(file, "FILE")) == CARD:
            card = read_card(file)
            print_json(told_person(card)) if as_json else show_people([card])
        else:
            bundle = Bundle.read(file)
            print_json(told_bundle(bundle)) if as_json else show_bundle(bundle)


def _described(
    name: str, file: Path, rule: str | None, rounds: int | None, settings: list[str]
) -> tuple[Study, list[str]]:
    """The study that a description and some settings make, built once to see that it can be; and what is left out."""
    from consilience.described.settings import override, read_toml
    from consilience.engines.peers.study import Study
    from consilience.experiments.learn.agreed import agreed, built, check_limit, check_wire
    from consilience.task.rules import ruled

    values = read_toml(file)
    if values.get("experiment") != "learn":
        raise InputError(
            f"--task: must describe 'learn', as `consilience new` does, got {brief(values.get('experiment'))}"
        )
    task, left = agreed(values)
    task = task if rule is None else ruled(task, rule)
    named = [] if rounds is None else [f"policy.rounds={rounds}"]
    wanted = override({"name": name, "policy": {}, "limits": {}, "task": task}, [*settings, *named])
    if isinstance(wanted["policy"], dict):
        wanted["policy"].setdefault("rounds", values.get("rounds", 60))
    if isinstance(wanted["task"], dict):
        wanted["task"], more = agreed(wanted["task"])
        if more:
            raise InputError(f"task.{more[0]}: is not a study's to say")
    made = Study.of(wanted)
    check_limit(made.task, built(made.task, made.labels, made.input_shape), made.limits.most_bytes)
    check_wire(made.task, made.wire)
    return made, left


def _end(known: Stewardship, as_json: bool, quiet: bool, shown: Callable[[], None], also: str = "") -> None:
    """What was planned, and what comes next."""
    then = _next(known)
    if as_json:
        print_json({**_told(known), "next": then})
    elif not quiet:
        shown()
        if also:
            say(also)
        say(f"next: {then}")


def _next(known: Stewardship) -> str:
    notes = known.notes
    if not notes.roster.members:
        return _at(known.folder, ADD)
    if not notes.rule and len(notes.roster.members) > 1:
        return _at(known.folder, LINKS)
    return _at(known.folder, SIGN) if notes.changed else "nothing has changed since it was signed"


def _told(known: Stewardship) -> dict[str, Any]:
    from consilience.command.roster import told_person, told_roster

    return {
        **told_roster(known.study, known.notes.roster),
        "steward": told_person(known.steward.card),
        "to_sign": known.notes.changed,
    }


def _at(home: Path, command: str) -> str:
    return command if home == HOME else f"{command} --home {home}"


def _members(count: int) -> str:
    return "1 member" if count == 1 else f"{count} members"
