"""Rosters that change while somebody is away, keys that are replaced, members that are blocked: nothing is lost."""

import numpy as np
import pytest
from peer_nodes import NAMES, Nodes
from people import bundle, person

from consilience.engines.peers.bundle import Bundle
from consilience.engines.peers.mail import NO_MAIL
from consilience.engines.peers.place import place_of
from consilience.engines.peers.roster import Removed


def signed(held, **changed):
    """The roster of the next epoch."""
    roster = held.roster._replace(epoch=held.roster.epoch + 1, **changed)
    return Bundle.signed(held.study, roster, person("steward"))


def with_another_key(held, number):
    """The roster in which a member has a new key, and its old one a tombstone."""
    members, old, new = list(held.roster.members), held.roster.members[number], person(f"{NAMES[number]} anew")
    members[number] = old._replace(id=new.id, certificate=new.certificate)
    gone = Removed(number, old.name, old.id, held.roster.epoch + 1)
    return signed(held, members=tuple(members), removed=(*held.roster.removed, gone))


def until(world, condition, most=3000):
    for _ in range(most):
        if condition():
            return
        world.step()
    raise AssertionError("does not come to that")


def check_exact(world):
    for q in world.beliefs():
        np.testing.assert_allclose(q["precision"], world.exact()["precision"], rtol=1e-6)
        np.testing.assert_allclose(q["precision_mean"], world.exact()["precision_mean"], rtol=1e-6)


@pytest.mark.parametrize("published", [True, False], ids=["in the middle of a round", "between two rounds"])
def test_sums_begin_anew_for_who_finds_a_newer_roster_when_it_comes_back(published):
    world = Nodes("tracking", 3, 80)
    if published:
        until(world, lambda: world.nodes[0].life.position == (4, True))
    else:
        until(world, lambda: world.nodes[0].round == 8)
        world.nodes[0].life.leaving = True
        until(world, lambda: 0 in world.ended)
    world.kill(0)
    world.renew(0, signed(world.bundle))
    world.start(0)
    world.play()
    assert [node.status().epoch for node in world.nodes] == [2, 2, 2]
    check_exact(world)


def test_what_an_old_key_has_signed_is_passed_on_to_nobody_when_the_key_was_replaced():
    world = Nodes("sites", 4, 16)
    until(world, lambda: world.nodes[0].round == 5)
    world.kill(2)  # south, which has a new key and is not back yet
    world.kill(3)  # west, which comes back without what others have said
    world.keepers[3].saved = world.keepers[3].saved._replace(passed_on=NO_MAIL)
    newer = with_another_key(world.bundle, 2)
    for me in (0, 1, 3):
        world.renew(me, newer)
    world.start(3)
    until(world, lambda: len(world.ended) == 3, 8000)
    refused = [node._transport.refused() for node in world.nodes if node is not None]
    assert not any(count for each in refused for counts in each.values() for count in counts.values()), refused
    north, east, west = (world.nodes[me].life.state.q["precision"] for me in (0, 1, 3))
    np.testing.assert_allclose(east, north)
    np.testing.assert_allclose(west, north)


@pytest.mark.parametrize("blocked", [1, 2])
def test_who_blocks_some_takes_of_the_others_what_they_pass_on(blocked):
    world = Nodes("sites", 4, 12, links="complete")
    world.blocked[0] |= {world.id(me) for me in range(4 - blocked, 4)}
    world.play(most=3000)
    assert not world.nodes[0]._transport.refused().get(world.id(1))
    assert all({0, 1} <= set(row) for row in world.keepers[0].heard.values())
    assert not any(
        set(row) & set(range(4 - blocked, 4)) for number, row in world.keepers[0].heard.items() if number > 1
    )


def test_who_is_blocked_stays_so_with_another_key():
    held = bundle("north", "east", "south")
    blocked = {held.roster.members[2].id}
    for roster in (held.roster, with_another_key(held, 2).roster):
        assert set(place_of(person("north"), roster, blocked).row) == {0, 1}
