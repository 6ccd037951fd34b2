"""Where agents live: everybody's steps are played once, in order, and no device has more than its share."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from consilience.engines.simulate.placement import _wrap_around


@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 20), st.integers(1, 4))
@example(29, 6, 3, 2)  # the last device of the second host has nothing but a part of one agent
def test_every_step_is_played_once_and_in_order(agents, each, steps, hosts):
    each = min(each, math.ceil(agents / hosts))
    numbers, home, work, left = _wrap_around(agents, steps, each, hosts)
    devices, slots = numbers.shape
    assert devices == hosts * each
    assert (np.sort(np.unique(numbers)) == np.arange(agents)).all()
    assert (numbers.reshape(-1)[home] == np.arange(agents)).all()
    where = {agent: [] for agent in range(agents)}
    for half in (0, 1):
        for device in range(devices):
            for slot, first, last in work[device, half]:
                if last > first:
                    where[numbers[device, slot]].append((half, device, slot, first, last))
    for agent, pieces in where.items():
        assert [p[3] for p in pieces] == [0, *(p[4] for p in pieces[:-1])]  # one after another, from the first step
        assert pieces[-1][4] == steps
        assert pieces[-1][1] * slots + pieces[-1][2] == home[agent]
        if pieces[0][1] != pieces[-1][1]:  # cut between two devices: all of the first part in the first half
            assert pieces[0][1] in left
            assert pieces[0][1] // each == pieces[-1][1] // each  # on one host
            assert pieces[0][2] == 0
            assert pieces[-1][1:3] == (pieces[0][1] - 1, slots - 1)
            assert all(p[0] == 0 for p in pieces if p[1] == pieces[0][1])
            assert all(p[0] == 1 for p in pieces if p[1] != pieces[0][1])


@pytest.mark.parametrize(("agents", "devices"), [(9, 2), (25, 4), (11, 4), (100, 7), (8, 2), (3, 2)])
def test_the_work_is_even_where_agents_can_be_cut(agents, devices):
    steps = 155
    _, _, work, _ = _wrap_around(agents, steps, devices)
    done = (work[..., 2] - work[..., 1]).sum((1, 2))
    fair = math.ceil(agents * steps / devices)
    assert done.sum() == agents * steps
    assert done.max() <= (fair if fair >= 2 * steps else math.ceil(agents / devices) * steps)
