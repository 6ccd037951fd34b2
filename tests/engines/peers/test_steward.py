"""A steward's folder: what is planned, what is signed, and that nothing in it changes unnoticed."""

import json
import stat

import pytest
from people import STUDY, person

from consilience.engines.peers import identity
from consilience.engines.peers.bundle import Bundle, newer
from consilience.engines.peers.steward import Stewardship
from consilience.errors import InputError


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "study"


@pytest.fixture
def begun(folder):
    return Stewardship.begin(folder, STUDY, "steward")


def cards(*names):
    return [person(name, f"{name}:9000").card for name in names]


def test_from_nothing_to_a_bundle(begun, folder):
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "key.pem").stat().st_mode) == 0o600
    assert (folder / "study.toml").read_text() == STUDY.text
    Stewardship.open(folder).add(cards("north", "south"))
    Stewardship.open(folder).link(["ring"])
    made = Stewardship.open(folder).sign()
    assert Bundle.read(folder / "study.bundle") == made
    assert made.roster.epoch == 1
    assert [member.name for member in made.roster.members] == ["north", "south"]
    assert (folder / "cards" / "north.card").read_text() == cards("north")[0].text
    assert not Stewardship.open(folder).notes.changed
    again = Stewardship.open(folder).sign()
    assert (again.roster, again.roster.epoch) == (made.roster, 1)  # an epoch never names two rosters


def test_members_come_and_go_and_a_rule_links_who_is_there(begun):
    first = begun.add(cards("north", "south", "east")).link(["ring"]).sign()
    later = Stewardship.open(begun.folder).add(cards("west")).sign()
    assert later.roster.epoch == 2
    assert {link[:2] for link in later.roster.links} == {
        *[(0, 1), (1, 2), (2, 3), (3, 0)],
        *[(1, 0), (2, 1), (3, 2), (0, 3)],
    }
    last = Stewardship.open(begun.folder).remove("south").sign()
    assert last.roster.numbers == (0, 2, 3)
    assert last.roster.tombstone(person("south", "south:9000").id) == (1, "south", person("south", "south:9000").id, 3)
    assert newer(newer(first, later.offer), last.offer) == newer(first, last.offer)
    with pytest.raises(InputError, match="card of 'south': its key was removed in epoch 3 and cannot come back"):
        Stewardship.open(begun.folder).add(cards("south"))
    end = Stewardship.open(begun.folder).add(cards("hill")).sign()
    assert end.roster.number("hill") == 4  # a number is given once


def test_the_last_number_is_not_given_again_either(begun):
    begun.add(cards("north", "south")).link(["ring"]).sign()
    Stewardship.open(begun.folder).remove("south").sign()
    assert Stewardship.open(begun.folder).add(cards("east")).notes.roster.number("east") == 2


def test_whom_nobody_knows_yet_is_only_crossed_out(begun):
    left = begun.add(cards("north", "south")).remove("south")
    assert left.notes.roster.removed == ()
    again = left.add(cards("south")).link(["ring"])
    assert again.notes.roster.number("south") == 1
    again.sign()
    assert [gone.name for gone in Stewardship.open(begun.folder).remove("south").notes.roster.removed] == ["south"]


def test_a_card_that_cannot_be_added(begun):
    known = begun.add(cards("north"))
    same_key = person("north", "north:9000")
    renamed = same_key.card._replace(name="other").signed(same_key.key)
    with pytest.raises(
        InputError, match="card of 'other': its key is that of 'north', two members cannot have one key"
    ):
        known.add([renamed])
    with pytest.raises(InputError, match=r"'north' is a member already, with another key; .* --replaces north"):
        known.add([person("north", "elsewhere:1").card])
    with pytest.raises(InputError, match="'north' is a member already, with another key"):
        known.add([person("North").card])
    assert Stewardship.open(begun.folder).notes == known.notes
    assert [file.name for file in (begun.folder / "cards").iterdir()] == ["north.card"]


def test_a_new_card_of_the_same_key_moves_a_member(begun):
    known = begun.add(cards("north", "south")).link(["ring"])
    known.sign()
    north = person("north", "north:9000")
    moved = north.card._replace(address="new.example.org:1").signed(north.key)
    added = Stewardship.open(begun.folder).add([moved])
    assert added.notes.roster.named("north") == known.notes.roster.named("north")._replace(address=moved.address)
    assert added.sign().roster.epoch == 2
    assert not Stewardship.open(begun.folder).add([moved]).notes.changed


def test_a_key_is_replaced_by_one_that_it_has_signed(begun, tmp_path):
    old = identity.create(tmp_path / "old", "north", "north:9000")
    first = begun.add([old.card, *cards("south")]).link(["ring"]).sign()
    new = identity.create(tmp_path / "new", "north", "north:9000", replaces=old)
    stranger = identity.create(tmp_path / "stranger", "north", "north:9000")
    known = Stewardship.open(begun.folder)
    with pytest.raises(InputError, match="the old key of 'north' has not signed it"):
        known.add([stranger.card], replaces="north")
    with pytest.raises(InputError, match="must have the name of the one whose key it replaces, 'south'"):
        known.add([new.card], replaces="south")
    with pytest.raises(InputError, match="nobody is called 'x'"):
        known.add([new.card], replaces="x")
    with pytest.raises(InputError, match="--replaces: is for one card, got 2"):
        known.add([new.card, new.card], replaces="north")
    with pytest.raises(InputError, match="its key is, or was, a member's already"):
        known.add([old.card], replaces="north")
    later = known.add([new.card], replaces="north").sign()
    assert later.roster.member(new.id).number == first.roster.member(old.id).number
    assert later.roster.tombstone(old.id).epoch == 2
    assert newer(first, later.offer).roster == later.roster


@pytest.mark.parametrize(
    ("names", "links", "line"),
    [
        ([], None, "members: there are none yet"),
        (["north", "south"], None, "links: 'north' has none"),
        (["north", "south", "east"], ["north:south"], "links: 'east' has none"),
        (
            ["north", "south", "east", "west"],
            ["north:south", "east:west"],
            "links: what some know never reaches the others: 'north', 'south' | 'east', 'west'",
        ),
    ],
)
def test_what_nobody_could_learn_with_is_not_signed(begun, names, links, line):
    known = begun.add(cards(*names))
    known = known if links is None else known.link(links)
    with pytest.raises(InputError) as error:
        known.sign()
    assert line in str(error.value)
    assert not (begun.folder / "study.bundle").exists()
    assert Stewardship.open(begun.folder).notes.roster.epoch == 0


def test_links_that_go_round_or_that_nobody_dials(begun, tmp_path):
    (tmp_path / "links.csv").write_text("hearer,heard,trust\nnorth,south,1\nsouth,north,1\n")
    known = begun.add(cards("north", "south")).link([str(tmp_path / "links.csv")])
    with pytest.raises(InputError, match="links: beliefs would go round for ever"):
        known.sign()
    silent = known.add([person("east", "").card, person("west", "").card])
    assert silent.link(["star"]).sign().roster.epoch == 1
    with pytest.raises(InputError, match="links: 'east' and 'west' are linked and neither has an address"):
        silent.link(["complete"]).sign()
    with pytest.raises(InputError, match="members: 'north' and 'hill' have one address, north:9000"):
        silent.add([person("hill", "north:9000").card]).link(["star"]).sign()


def test_one_member_alone(begun):
    made = begun.add(cards("north")).sign()
    assert made.roster.row(0) == {0: 1.0}


@pytest.mark.parametrize("name", ["roster.json", "study.toml", "steward.card", "certificate.pem"])
def test_a_byte_changed_in_the_folder(begun, name):
    begun.add(cards("north"))
    file = begun.folder / name
    content = file.read_bytes()
    for place in range(0, len(content), 7):
        file.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(InputError) as error:
            Stewardship.open(begun.folder)
        assert name in str(error.value)
        assert len(str(error.value).splitlines()) == 1
    file.write_bytes(content)
    Stewardship.open(begun.folder)


def test_a_study_never_changes(begun, folder):
    file = folder / "study.toml"
    file.write_text(file.read_text().replace("patience = 60.0", "patience = 10.0"))
    with pytest.raises(InputError, match=r"study.toml': was changed: it is not the study that was begun"):
        Stewardship.open(folder)
    with pytest.raises(InputError, match=r"study.toml' is there already: a study never changes"):
        Stewardship.begin(folder, STUDY, "steward")


def test_notes_of_somebody_else(begun, tmp_path):
    other = Stewardship.begin(tmp_path / "other", STUDY, "steward")
    (begun.folder / "roster.json").write_bytes((other.folder / "roster.json").read_bytes())
    with pytest.raises(InputError, match="signed by another key"):
        Stewardship.open(begun.folder)


def test_a_crash_before_the_bundle_is_written_uses_no_epoch_twice(begun, monkeypatch):
    known = begun.add(cards("north", "south")).link(["ring"])
    with monkeypatch.context() as patch:
        patch.setattr(Bundle, "write", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(OSError, match="disk full"):
            known.sign()
    made = Stewardship.open(begun.folder).sign()
    assert made.roster.epoch == 1
    assert json.loads((begun.folder / "roster.json").read_text())["published"] == 2
