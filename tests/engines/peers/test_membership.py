"""Who takes part changes between two rounds, whatever changes at once."""

from people import bundle, person

from consilience.engines.peers.membership import Asked, Membership
from consilience.engines.peers.neighbourhood import Neighbourhood
from consilience.engines.peers.reception import Reception
from consilience.engines.peers.roster import Removed
from consilience.errors import InputError


class Offered(Reception):
    """A reception at which a roster may lie."""

    def __init__(self):
        self.lies = None

    def newer_bundle(self):
        offered, self.lies = self.lies, None
        return offered

    def will_remove(self, id):
        return self.lies is not None and self.lies.roster.member(id) is None

    def laid(self, found):
        self.lies = found


class Noted(Neighbourhood):
    """A neighbourhood that notes what it is asked for."""

    def __init__(self):
        self.done = []

    def take(self, bundle, shunned):
        self.done.append(("take", bundle.roster.epoch, list(shunned)))

    def dismiss(self, bundle, removed):
        self.done.append(("dismiss", removed))

    def offer(self):
        self.done.append("offer")


def membership(name, home):
    reception, around, told = Offered(), Noted(), []
    made = Membership(
        person(name), bundle("north", "east", "south"), reception, around, lambda what, **facts: told.append(what), home
    )
    return made, reception, around.done, told


def gone(name):
    who = person(name)
    return Removed(2, name, who.id, 2)


WITHOUT_SOUTH = bundle("north", "east", epoch=2, removed=[gone("south")])


def test_who_is_removed_in_the_round_in_which_it_blocks_somebody_ends_and_does_nothing_else():
    blocked = set()
    mine, reception, done, told = membership("south", Asked(blocked=lambda: blocked))
    reception.lies = WITHOUT_SOUTH
    blocked.add(person("east").id)
    assert mine.ending
    assert [change.renewed for change in mine.changes()] == [True]
    assert mine.removed
    assert told == ["removed"]
    assert done == []


def test_a_roster_in_the_home_is_taken_and_kept_and_a_blocked_member_goes_besides():
    kept, blocked, found = [], set(), [None, WITHOUT_SOUTH]
    mine, _, done, told = membership("north", Asked(kept.append, lambda: found.pop(0), lambda: blocked))
    assert list(mine.changes()) == []
    blocked.add(person("east").id)
    assert [(change.gone, change.renewed) for change in mine.changes()] == [({2}, True), ({1}, False)]
    assert kept == [WITHOUT_SOUTH]
    assert told == ["roster", "blocked"]
    assert mine.blocked() == {1: "east"}
    assert done == [("dismiss", {2}), ("take", 2, []), "offer", ("take", 2, [person("east").id])]


def test_what_cannot_be_read_in_the_home_changes_nothing():
    def damaged():
        raise InputError("it is damaged")

    answers = [frozenset({person("east").id})]

    def blocked():
        return answers.pop() if answers else damaged()

    mine, _, _, told = membership("north", Asked(laid=damaged, blocked=blocked))
    assert list(mine.changes()) == []
    assert told == ["trouble", "trouble"]
    assert mine.blocked() == {1: "east"}
