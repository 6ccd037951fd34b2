"""Lives among peers are those of `simulate`, and count evidence once whatever is lost, late, twice or killed."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from peer_lives import PRIOR, Own, World, plus

from consilience.engines.peers.messages import Entry, Said
from consilience.engines.peers.waiting import Patience


def graph(rng, agents):
    """A strongly connected directed graph with row-stochastic weights."""
    A = np.eye(agents) + np.roll(np.eye(agents), 1, axis=1) + (rng.random((agents, agents)) < 0.3)
    A = A * rng.uniform(0.2, 1, A.shape)
    return A / A.sum(1, keepdims=True)


def both_ways(rng, agents):
    A = graph(rng, agents)
    A = A + A.T
    return A / A.sum(1, keepdims=True)


def flat(belief):
    return np.concatenate([belief["precision"], belief["precision_mean"]])


def replayed(W_of_round, agents, rounds):
    """The paper's rule by hand, with the weights that were really used; who did not play keeps what it has."""
    own = np.stack([flat(Own(me).final) for me in range(agents)])
    q = np.repeat(flat(PRIOR)[None], agents, axis=0)
    for number in range(1, rounds + 1):
        W, played = W_of_round(number)
        b = np.where(played[:, None], q + own, q)
        q = np.where(played[:, None], W @ b, q)
    return q


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6), agents=st.integers(2, 7), late=st.sampled_from([0.0, 2.0]))
def test_without_loss_everybody_hears_everybody_in_every_round(seed, agents, late):
    W = graph(np.random.default_rng(seed), agents)
    # Somebody may have to wait for all the others, one after another: that is not too long here.
    world = World(W, "pooling", 12, seed, late=late, patience=Patience(round=60.0, gather=60.0))
    world.play()
    expected = replayed(lambda number: (W, np.ones(agents, bool)), agents, 12)
    np.testing.assert_allclose([flat(q) for q in world.beliefs()], expected, rtol=1e-12)
    assert all(not missed for history in world.histories for _, _, missed in history)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), agents=st.integers(2, 6), loss=st.floats(0, 0.5), late=st.floats(0, 8))
def test_with_loss_the_realised_weights_give_the_same_beliefs(seed, agents, loss, late):
    W = graph(np.random.default_rng(seed), agents)
    world = World(W, "pooling", 15, seed, loss=loss, twice=0.3, late=late, reorders=True)
    world.play()
    rows = [{number: weights for number, weights, _ in history} for history in world.histories]

    def of_round(number):
        realised = np.zeros((agents, agents))
        for me in range(agents):
            for j, weight in rows[me].get(number, {me: 1.0}).items():
                realised[me, j] = weight
        np.testing.assert_allclose(realised.sum(1), 1)
        return realised, np.array([number in rows[me] for me in range(agents)])

    assert world.finished == set(range(agents))
    np.testing.assert_allclose([flat(q) for q in world.beliefs()], replayed(of_round, agents, 15), rtol=1e-10)


@pytest.mark.parametrize("rule", ["sites", "tracking"])
@settings(max_examples=3, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(
    seed=st.integers(0, 10**6),
    agents=st.integers(2, 6),
    loss=st.floats(0, 0.4),
    late=st.floats(0, 8),
    kills=st.lists(st.tuples(st.floats(0, 8), st.integers(0, 5), st.floats(0, 8)), max_size=4),
)
def test_evidence_counts_once_whatever_happens(rule, seed, agents, loss, late, kills):
    rng = np.random.default_rng(seed)
    W = both_ways(rng, agents)
    # Long enough: who comes back when all others have played and gone hears nobody any more.
    world = World(W, rule, 400, seed, loss=loss, twice=0.3, late=late, reorders=True, patience=Patience(3.0, 10.0, 2))
    for when, who, away in kills:
        world.later(when, world.kill, who % agents)
        world.later(when + away, lambda who=who: world.running[who % agents] is None and world.start(who % agents))
    world.play()
    assert world.finished == set(range(agents))
    for q in world.beliefs():
        np.testing.assert_allclose(flat(q), flat(world.exact()), rtol=1e-6)


def test_a_frozen_neighbour_costs_its_weight_and_little_time():
    W = both_ways(np.random.default_rng(1), 4)
    world = World(W, "pooling", 40, patience=Patience(3.0, 10.0, 2))
    world.later(1.0, world.kill, 3)
    world.play()
    assert world.finished == {0, 1, 2}
    assert world.time < 1 + 2 * 3.0 + 40 * 0.5 + 10.0
    assert all(3 in missed for number, _, missed in world.histories[0][15:] if W[0][3] > 0)


def test_who_comes_back_joins_the_round_that_the_others_play():
    W = both_ways(np.random.default_rng(2), 4)
    world = World(W, "pooling", 60, late=0.5, patience=Patience(3.0, 10.0, 2))
    world.later(4.0, world.kill, 2)
    world.later(14.0, world.start, 2)
    world.play()
    back = next(number for number, *_ in world.histories[2] if number > len(world.histories[2]) - 40 and number > 10)
    at = {number for number, *_ in world.histories[2]}
    assert world.finished == {0, 1, 2, 3}
    assert len(at) < 60
    assert back
    last = world.histories[0][-1]
    assert 2 in last[1] or W[0][2] == 0  # and is heard again


def test_nobody_is_misled_by_a_neighbour_that_claims_to_be_far_ahead():
    W = both_ways(np.random.default_rng(3), 5)
    world = World(W, "pooling", 30)
    liar = next(j for j in range(1, 5) if W[0][j] > 0)
    lie = Said(liar, 29, (Entry(liar, (29, 1), PRIOR),))
    world.later(1.0, world.deliver, 0, lie, world.epoch[0])
    world.play()
    if (W[0] > 0).sum() > 3:  # with two others at least
        assert len({number for number, *_ in world.histories[0]}) == 30


def test_sums():
    assert flat(plus(PRIOR, PRIOR)).tolist() == [1.0, 0.2]


def test_a_small_part_does_not_vanish_beside_a_large_counter():
    from consilience.engines.peers.mailboxes import Counted
    from consilience.engines.peers.messages import Entry, Said

    mailbox, row = Counted(0, 1, epoch=0), {0: 0.5, 1: 0.5}
    for number, own in ((1, 1.0), (2, 1e-20)):
        mailbox.publish(Entry(0, (number, 1), {"agents": np.array([own])}))
        heard = Said(1, number, (Entry(1, (number, 1), {"agents": np.array([0.5])}),), epoch=0)
        pooled = mailbox.filled(number, row, [heard]).pooled["agents"]
    assert pooled == 0.5e-20


def told_of(kind, say):
    """Two peers by pooling, of which the second says what a test wants: (round, weights, missed) of the first."""
    staleness = None if kind == "sync" else 5
    world = World(np.full((2, 2), 0.5), "pooling", 6, patience=Patience(1.0, 1.0, 2), staleness=staleness)
    world.kill(1)
    for when, number in say:
        said = Said(1, number, (Entry(1, (number, 1), PRIOR),))
        if kind == "async":  # it plays all its rounds at once
            world.lives[0].receive(said)
        else:
            world.later(when, lambda said=said: world.lives[0].receive(said) and world.call(0))
    world.play()
    return world.histories[0], world.lives[0].waiting


def test_whose_message_was_lost_is_missed_though_it_is_further_on():
    history, waiting = told_of("sync", [(0.0, 2), (0.5, 3), (0.5, 4)])
    assert [(number, set(weights), missed) for number, weights, missed in history[:3]] == [
        (1, {0}, [1]),
        (2, {0, 1}, []),
        (3, {0, 1}, []),
    ]
    assert waiting.missed[1] > 0  # after round 4 it said nothing more


def test_who_does_not_wait_has_heard_what_it_used_however_old():
    history, _ = told_of("async", [(0.0, 1)])
    used = [1 in weights for _, weights, _ in history]
    assert any(used)
    assert [1 in missed for *_, missed in history] == [not each for each in used]
