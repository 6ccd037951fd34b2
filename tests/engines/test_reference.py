"""The engine and the theory against the plain reference, on random schedules; `tests/soak_reference.py` runs longer."""

from functools import cache

import numpy as np
import pytest
from drawn_schedules import check_turns, draw_schedule
from hypothesis import given, settings
from hypothesis import strategies as st
from rigs import Rig, check_theory

from consilience.network.schedule import Most

RIGS = (38, 46, 69, 86, 92)


@given(agents=st.integers(1, 6), age=st.integers(0, 3), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None)
def test_schedules_and_theory_mean_what_the_reference_says(agents, age, seed):
    rng = np.random.default_rng(seed)
    schedule, understood = draw_schedule(rng, agents, 12, Most(agents, agents, agents**2, age))
    check_turns(schedule, understood)
    check_theory(rng, schedule, understood)


rig_of = cache(Rig)


def test_these_rigs_have_what_there_is():
    """Light and heavy agents, also cut between devices, the same turns for ever, old beliefs, other devices after.

    Repetitions together in a block of lanes, and in several blocks.
    """
    rigs = [rig_of(number) for number in RIGS]
    assert {rig.heavy for rig in rigs} == {True, False}
    assert {rig.schedule.repeats for rig in rigs} == {1, 4, None}
    lights = [rig for rig in rigs if not rig.heavy]
    assert any(rig.blocks > 1 for rig in lights)
    assert any(rig.replicates > rig.blocks for rig in lights)
    assert any(rig.simulations[0].placement.left and len(rig.simulations) > 1 for rig in rigs)
    assert {rig.heavy for rig in rigs if rig.schedule.most.age > 1 and len(rig.simulations) > 1} == {True, False}


@pytest.mark.parametrize("number", RIGS)
@given(case=st.integers(0, 2**32 - 1))
@settings(max_examples=12, deadline=None)
def test_the_engine_does_what_the_reference_does(number, case):
    rig_of(number).run(case)
