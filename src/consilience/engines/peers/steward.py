"""A steward's folder: the study, the steward's key, the cards of those admitted, and what will be signed next.

Nothing takes effect before `sign`: then the roster gets its next epoch, and everybody who has the bundle knows it. The
notes in between (`roster.json`) are signed by the steward, too, so that no byte in the folder changes unnoticed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from consilience.engines.peers import identity
from consilience.engines.peers.bundle import Bundle
from consilience.engines.peers.card import Card
from consilience.engines.peers.identity import Identity, card_file
from consilience.engines.peers.links import RULES, Link, laid, named_pairs, read_links
from consilience.engines.peers.names import told_apart
from consilience.engines.peers.ready import check_ready
from consilience.engines.peers.roster import Member, Removed, Roster
from consilience.engines.peers.signed import SIGNATURE, opened, read_text, signed
from consilience.engines.peers.study import Study
from consilience.errors import InputError, brief, printable
from consilience.files.whole import write_atomically

STUDY, NOTES, BUNDLE, CARDS = "study.toml", "roster.json", "study.bundle", "cards"
GIVEN = "given"  # links that were named one by one, not laid by a rule


class Notes(NamedTuple):
    """What is planned: `roster` has the epoch that was signed last, and everything that was done since.

    rule: how links are laid when members come and go; nothing before anybody said it. published: how many numbers the
    signed rosters have given away: whoever has a later one is known to nobody yet. changed: whether there is something
    to sign.
    """

    roster: Roster
    rule: str = ""
    published: int = 0
    changed: bool = True


class Stewardship(NamedTuple):
    """A steward's folder, read."""

    folder: Path
    steward: Identity
    study: Study
    notes: Notes

    @classmethod
    def begin(cls, folder: Path, study: Study, name: str) -> Stewardship:
        """A new study, with a new key for its steward."""
        for file in (folder / STUDY, folder / NOTES, folder / BUNDLE):
            if file.exists():
                raise InputError(
                    f"home: '{printable(str(file))}' is there already: a study never changes; --home begins another"
                )
        steward = identity.create(folder, name)
        write_atomically(folder / STUDY, study.text.encode())
        begun = cls(folder, steward, study, Notes(Roster(study.hash, 0)))
        return begun.noted(begun.notes)

    @classmethod
    def open(cls, folder: Path) -> Stewardship:
        """What is in a steward's folder, in which no byte was changed."""
        where = printable(str(folder))
        if not (folder / STUDY).is_file():
            raise InputError(f"home: '{where}' has no {STUDY}; `consilience study new NAME --task mine.toml` makes one")
        steward = identity.load(folder)
        what = f"'{printable(str(folder / NOTES))}'"
        values = opened("notes", read_text(folder / NOTES, "home"), steward.certificate, what)
        values.pop(SIGNATURE)
        roster = Roster.of(values.pop("roster"), what)
        study = Study.read(read_text(folder / STUDY, "home"), f"'{printable(str(folder / STUDY))}'")
        if study.hash != roster.study:
            raise InputError(
                f"'{printable(str(folder / STUDY))}': was changed: it is not the study that was begun; "
                "a study never changes, `consilience study new` begins another"
            )
        return cls(folder, steward, study, Notes(roster, **values))

    def noted(self, notes: Notes) -> Stewardship:
        """Write down what is planned."""
        values: dict[str, Any] = {**notes._asdict(), "roster": notes.roster.values()}
        write_atomically(self.folder / NOTES, signed("notes", values, self.steward.key).encode())
        return self._replace(notes=notes)

    def add(self, cards: Sequence[Card], replaces: str | None = None) -> Stewardship:
        """Admit those with these cards; of a member's own key, the new card takes the place of the old one."""
        roster = self.notes.roster
        if replaces is not None:
            if len(cards) != 1:
                raise InputError(f"--replaces: is for one card, got {len(cards)}")
            roster = self._replaced(roster, roster.named(replaces), cards[0])
        else:
            for card in cards:
                roster = self._added(roster, card)
        changed, kept = self._changed(roster), self.folder / CARDS
        kept.mkdir(exist_ok=True)
        for card in cards:
            write_atomically(card_file(kept, card.name), card.text.encode())
        return changed

    def remove(self, name: str) -> Stewardship:
        """Let somebody take part no more, for ever; one whom no signed roster has named is only crossed out."""
        roster, gone = self.notes.roster, self.notes.roster.named(name)
        links = tuple(link for link in roster.links if gone.number not in link[:2])
        members = tuple(member for member in roster.members if member != gone)
        return self._changed(
            roster._replace(members=members, links=links, removed=(*roster.removed, *self._tombstones(gone)))
        )

    def link(self, words: Sequence[str]) -> Stewardship:
        """Say who hears whom: by a rule, which also holds for those who come later, by pairs, or by a file."""
        roster = self.notes.roster
        rule = words[0] if len(words) == 1 and words[0] in RULES else GIVEN
        links: tuple[Link, ...] = ()
        if rule == GIVEN:
            file = len(words) == 1 and (words[0].endswith(".csv") or Path(words[0]).is_file())
            links = read_links(Path(words[0]), roster.number) if file else named_pairs(words, roster.number)
        return self._changed(roster._replace(links=links), rule)

    def sign(self) -> Bundle:
        """The bundle of the next epoch, or of the last one where nothing has changed since."""
        notes, roster = self.notes, self.notes.roster
        check_ready(roster)
        if notes.changed:
            roster = roster._replace(epoch=roster.epoch + 1)
        bundle = Bundle.signed(self.study, roster, self.steward)
        bundle.text  # noqa: B018  where it would be too long, nothing was done
        if notes.changed:  # noted first: else, after a crash, another roster could be signed with the same epoch
            self.noted(notes._replace(roster=roster, published=self._next_number(roster), changed=False))
        bundle.write(self.folder / BUNDLE)
        return bundle

    def _changed(self, roster: Roster, rule: str | None = None) -> Stewardship:
        """Note another roster, its links laid anew where a rule lays them."""
        rule = self.notes.rule if rule is None else rule
        if rule in RULES and roster.members:
            roster = roster._replace(links=laid(rule, roster.numbers))
        roster.check("study")
        changed = self.notes.changed or roster != self.notes.roster
        return self.noted(self.notes._replace(roster=roster, rule=rule, changed=changed))

    def _added(self, roster: Roster, card: Card) -> Roster:
        what = f"card of {brief(card.name)}"
        known, gone = roster.member(card.id), roster.tombstone(card.id)
        if gone is not None:
            raise InputError(
                f"{what}: its key was removed in epoch {gone.epoch} and cannot come back; it needs a new one"
            )
        if known is not None and known.name != card.name:
            raise InputError(f"{what}: its key is that of {brief(known.name)}, two members cannot have one key")
        if known is not None:
            return _with(roster, _member(known.number, card))
        if same := [member for member in roster.members if told_apart(member.name) == told_apart(card.name)]:
            raise InputError(
                f"{what}: {brief(same[0].name)} is a member already, with another key; where it has a new one: "
                f"study add --replaces {same[0].name} {card.name}.card"
            )
        return _with(roster, _member(self._next_number(roster), card))

    def _replaced(self, roster: Roster, old: Member, card: Card) -> Roster:
        what = f"card of {brief(card.name)}"
        if card.name != old.name:
            raise InputError(f"{what}: must have the name of the one whose key it replaces, {brief(old.name)}")
        if roster.member(card.id) is not None or roster.tombstone(card.id) is not None:
            raise InputError(f"{what}: its key is, or was, a member's already")
        if not card.countersigned_by(old.certificate):
            raise InputError(
                f"{what}: the old key of {brief(old.name)} has not signed it; its owner can: "
                f"peer init {old.name} --home NEW --replaces OLD"
            )
        return _with(roster, _member(old.number, card))._replace(removed=(*roster.removed, *self._tombstones(old)))

    def _tombstones(self, gone: Member) -> list[Removed]:
        """What is left of a key: nothing, where it was never in a roster that was signed."""
        if gone.number >= self.notes.published:
            return []
        return [Removed(gone.number, gone.name, gone.id, self.notes.roster.epoch + 1)]

    def _next_number(self, roster: Roster) -> int:
        """One more than any that was given."""
        given = [*(member.number for member in roster.members), *(gone.number for gone in roster.removed)]
        return max(self.notes.published, *(number + 1 for number in given)) if given else self.notes.published


def _member(number: int, card: Card) -> Member:
    return Member(number, card.name, card.id, card.certificate, card.address)


def _with(roster: Roster, member: Member) -> Roster:
    """The roster with a member, in the place of the one with its number."""
    others = (each for each in roster.members if each.number != member.number)
    return roster._replace(members=tuple(sorted((*others, member))))
