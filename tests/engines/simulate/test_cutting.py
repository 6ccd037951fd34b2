"""Who works where and when: everybody's round is played once, in order, and no device has more than its share."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from consilience.engines.simulate.cutting import dealt_out, relative, to_hosts, wrap_around
from consilience.engines.simulate.placement import PARTS, place
from consilience.errors import InputError

WORK = st.lists(
    st.one_of(st.integers(0, 9), st.floats(0, 1e6), st.sampled_from([0.0, 1e-300, 0.1, 1.0, 1e9])),
    min_size=1,
    max_size=30,
)


def where_played(layout, agents, each):
    """What is played of each agent: (half, device, slot, first part, last part), in time."""
    pieces = {agent: [] for agent in range(agents)}
    for half, device in itertools.product((0, 1), range(len(layout.numbers))):
        for slot, first, last in layout.work[device, half]:
            if last > first:
                pieces[layout.numbers[device, slot]].append((half, device, slot, first, last))
    return pieces


def check(layout, agents, steps, each, hosts):
    """Every part of every agent is played once, the first before the second, on one device or two neighbours."""
    devices, slots = layout.numbers.shape
    assert devices == hosts * each
    assert (np.sort(np.unique(layout.numbers)) == np.arange(agents)).all()
    assert (layout.numbers.reshape(-1)[layout.home] == np.arange(agents)).all()
    used = (layout.work[..., 2] > layout.work[..., 1]).astype(int)
    assert (np.diff(used, axis=2) <= 0).all()  # pieces come first, then room: a plan counts them
    cut = set()
    for agent, pieces in where_played(layout, agents, each).items():
        assert [p[3] for p in pieces] == [0, *(p[4] for p in pieces[:-1])]  # one after another, from the first part
        assert pieces[-1][4] == steps
        assert pieces[-1][1] * slots + pieces[-1][2] == layout.home[agent]
        if pieces[0][1] != pieces[-1][1]:  # cut between two devices: the first part in the first half, then the rest
            cut.add(pieces[0][1])
            assert pieces[0][1] // each == pieces[-1][1] // each  # on one host
            assert pieces[0][2] == 0
            assert pieces[-1][1:3] == (pieces[0][1] - 1, slots - 1)
            assert [p[0] for p in pieces] == [0, 1]
    assert tuple(sorted(cut)) == layout.left


def times(layout, work, steps):
    """How long every device works in both halves, the work of the largest agent being 1."""
    its = work[np.take_along_axis(layout.numbers[:, None], layout.work[..., 0].reshape(len(layout.work), 1, -1), 2)]
    return (its.reshape(layout.work.shape[:3]) * (layout.work[..., 2] - layout.work[..., 1]) / steps).sum(2)


@given(WORK, st.integers(1, 8), st.integers(1, 3), st.sampled_from([PARTS, 155]))
@example([1] * 29, 3, 2, 6)  # the last device of the second host has nothing but a part of one agent
@example([0, 0, 3, 1, 1, 0, 1, 0], 2, 1, PARTS)
@example([0, 0, 0, 5], 3, 3, PARTS)
@example([5, 5, 5, 1, 1], 3, 1, PARTS)
@example([192248.0, 180203.0, 83364.0, 1e-300], 2, 1, PARTS)  # hardly any work at all
def test_every_part_is_played_once_in_order_and_nobody_has_more_than_a_share(values, each, hosts, steps):
    work = relative(values, len(values))
    of_host = to_hosts(work, hosts)
    each = min(each, max(map(len, of_host)))
    layout = wrap_around(work, steps, each, hosts)
    check(layout, len(work), steps, each, hosts)
    halves = times(layout, work, steps)
    assert halves.sum() == pytest.approx(work.sum())
    totals = [work[mine].sum() for mine in of_host]
    fair = max(1.0, max(totals) / each)
    longest = halves.max(0).sum()  # all wait for each other in the middle
    if layout.left:
        assert halves.sum(1).max() <= fair + 2 / steps  # a share rounded up, its border rounded
        assert longest <= fair + 4 / steps
    else:
        assert halves.sum(1).max() <= max(max(totals) / each + (1 - 1 / each), fair) + 2 / steps  # Graham's bound


@given(WORK, st.just(2), st.sampled_from([PARTS, 155]))
def test_on_two_devices_the_work_is_always_even(values, each, steps):
    work = relative(values, len(values))
    layout = wrap_around(work, steps, min(each, len(work)))
    halves = times(layout, work, steps)
    assert halves.sum(1).max() <= max(1.0, work.sum() / 2) + 2 / steps
    assert not layout.left or halves.max(0).sum() <= max(1.0, work.sum() / 2) + 4 / steps


@given(WORK.filter(lambda values: len(values) > 3), st.integers(3, 8))
def test_whole_agents_are_for_where_they_are_even_or_no_exchange_is_possible(values, each):
    """The condition, on the line itself: max x + max rest ≤ T over those in which a border falls."""
    work = relative(values, len(values))
    each = min(each, len(work))
    share = max(1.0, work.sum() / each)
    ends = np.cumsum(work)

    def needed(rounding):
        halves = [(0.0, 0.0)]
        for time, agent in itertools.product(share * np.arange(1, each), range(len(work))):
            rest = time - (ends[agent] - work[agent])
            if rounding < rest < work[agent] - rounding:
                halves.append((work[agent] - rest, rest))
        return sum(map(max, zip(*halves, strict=True)))

    layout = wrap_around(work, PARTS, each)
    if needed(1e-9) <= share - 2 / PARTS:
        assert times(layout, work, PARTS).sum(1).max() <= share + 2 / PARTS
    if layout.left:
        assert needed(2 / PARTS) <= share + 2 / PARTS


@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 20), st.integers(1, 4), st.sampled_from([0, 0.3, 7]))
@example(29, 6, 3, 2, 1)
@example(25, 16, PARTS, 1, 1)
def test_equal_work_is_laid_out_as_ever(agents, each, steps, hosts, value):
    """Where agents were cut before, or are whole now, not a number of the layout differs: bits stay what they were."""
    each = min(each, math.ceil(agents / hosts))
    layout = wrap_around(relative([value] * agents, agents), steps, each, hosts)
    before = before_unequal_work(agents, steps, each, hosts)
    check(layout, agents, steps, each, hosts)
    if before[3] or not layout.left:
        for ours, old in zip(layout, before, strict=True):
            np.testing.assert_array_equal(ours, old)
    else:  # cut where it was not: for good
        work = np.ones(agents)
        assert times(layout, work, steps).max(0).sum() <= math.ceil(math.ceil(agents / hosts) / each)


@given(st.integers(1, 40), st.integers(1, 9))
def test_equal_agents_are_dealt_out_like_cards(agents, devices):
    devices = min(agents, devices)
    slots = -(-agents // devices)
    layout = dealt_out(np.ones(agents), devices)
    cards = np.arange(slots) * devices + np.arange(devices)[:, None]
    np.testing.assert_array_equal(layout.numbers, np.minimum(cards, agents - 1))
    np.testing.assert_array_equal(layout.home, np.arange(agents) % devices * slots + np.arange(agents) // devices)
    assert not layout.left


@given(WORK, st.integers(1, 8))
def test_unequal_agents_are_dealt_out_longest_first(values, devices):
    work = relative(values, len(values))
    layout = dealt_out(work, devices)
    slots = layout.numbers.shape[1]
    assert (layout.numbers.reshape(-1)[layout.home] == np.arange(len(work))).all()
    assert len(set(layout.home.tolist())) == len(work)
    load = np.bincount(layout.home // slots, work, devices)
    assert load.max() <= work.sum() / devices + 1 - 1 / devices + 1e-9


@pytest.mark.parametrize("devices", [2, 3])
def test_longest_first_is_within_a_third_of_the_best(devices):
    rng = np.random.default_rng(0)
    for _ in range(20):
        work = relative(rng.integers(1, 20, 7).tolist(), 7)
        best = min(
            np.bincount(assigned, work, devices).max() for assigned in itertools.product(range(devices), repeat=7)
        )
        layout = dealt_out(work, devices)
        load = np.bincount(layout.home // layout.numbers.shape[1], work, devices).max()
        assert load <= (4 / 3 - 1 / (3 * devices)) * best + 1e-12


def test_who_has_no_work_is_spread_over_the_slots():
    layout = dealt_out(relative([3, 0, 0, 0, 3, 0, 0], 7), 2)
    assert layout.numbers.shape == (2, 4)


@given(WORK, st.integers(1, 5))
def test_hosts_have_consecutive_agents_and_about_as_much_work(values, hosts):
    work = relative(values, len(values))
    of_host = to_hosts(work, hosts)
    assert len(of_host) == hosts
    assert np.concatenate(of_host).tolist() == list(range(len(work)))
    assert all(len(mine) for mine in of_host) or len(work) < hosts
    assert max(work[mine].sum() for mine in of_host) <= work.sum() / hosts + 1 + 1e-9


@pytest.mark.parametrize(
    ("work", "each", "cut"),
    [
        ([1, 1, 1], 2, True),  # three halves each
        ([1, 1, 1, 1], 3, True),
        ([1] * 5, 4, False),  # one exchange is not enough
        ([8, *[1] * 8], 2, False),  # eight and eight
        ([*[1] * 4, 8, *[1] * 4], 4, False),  # nobody can be faster than the longest
        ([1, 2, 2, 6, 1, 1], 2, True),
    ],
)
def test_who_is_cut(work, each, cut):
    assert bool(wrap_around(relative(work, len(work)), PARTS, each).left) == cut


@pytest.mark.parametrize(
    ("work", "message"),
    [
        ([1.0, 2.0], r"^work must have one number for each of 3 agents, got \[1.0, 2.0\]$"),
        ([1.0, -2.0, 1.0], "^work of agent 1 must be finite and not negative, got -2.0$"),
        ([1.0, 2.0, float("nan")], "^work of agent 2 must be finite and not negative, got nan$"),
    ],
)
def test_work_that_cannot_be(work, message):
    with pytest.raises(InputError, match=message):
        place(3, PARTS, work=work)


def test_the_work_of_light_agents_does_not_matter():
    np.testing.assert_array_equal(place(5, work=[9, 0, 0, 0, 1]).numbers, place(5).numbers)


@pytest.mark.parametrize(("agents", "devices"), [(9, 2), (25, 4), (11, 4), (100, 7), (8, 2), (3, 2)])
def test_the_work_is_even_where_agents_can_be_cut(agents, devices):
    steps = 155
    work = wrap_around(np.ones(agents), steps, devices).work
    done = (work[..., 2] - work[..., 1]).sum((1, 2))
    assert done.sum() == agents * steps
    assert done.max() <= math.ceil(agents * steps / devices)


def before_unequal_work(agents, steps, each, hosts):
    """The layout as it was when all work was equal."""
    most = -(-agents // hosts)
    piece = -(-most * steps // each)
    if piece < 2 * steps or not most % each:
        piece = -(-most // each) * steps
    shares = []
    for mine in np.array_split(np.arange(agents), hosts):
        pieces = [(device * piece, (device + 1) * piece) for device in range(each)]
        shares += [share_before(mine.tolist() or [agents - 1], len(mine), steps, *piece_) for piece_ in pieces]
    slots = max(len(share[0]) for share in shares)
    numbers = np.array([s[0][:-1] + [s[0][-1]] * (slots - len(s[0]) + 1) for s in shares], np.int32)
    work = np.zeros((len(shares), 2, max(len(half) for s in shares for half in s[1]), 3), np.int32)
    home = np.zeros(agents, np.int32)
    for device, (its, halves, cut) in enumerate(shares):
        slot_of = [*range(len(its) - 1), 0 if cut and len(its) == 1 else slots - 1]
        for half, listed in enumerate(halves):
            for row, (place_, first, last) in enumerate(listed):
                work[device, half, row] = slot_of[place_], first, last
                if last == steps:
                    home[its[place_]] = device * slots + slot_of[place_]
    return numbers, home, work, tuple(device for device, share in enumerate(shares) if share[2])


def share_before(agents, count, steps, begin, end):
    begin, end = (min(point, count * steps) for point in (begin, end))
    mine = list(range(begin // steps, -(-end // steps)))
    early, late, time = [], [], 0
    for number, agent in enumerate(mine):
        doing = min(end, (agent + 1) * steps) - max(begin, agent * steps)
        first = 0 if agent * steps < begin else steps - doing
        middle = first + min(max(steps - time, 0), doing)
        early += [(number, first, middle)] if middle > first else []
        late += [(number, middle, first + doing)] if first + doing > middle else []
        time += doing
    cut = bool(mine) and mine[0] * steps < begin
    return [agents[place_] for place_ in mine] or [agents[-1]], (early, late), cut
