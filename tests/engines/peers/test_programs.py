"""Peers of a study have the same programs, whoever they are and however much data of about one size they have."""

import subprocess
import sys
from functools import partial

import numpy as np
import pytest

from consilience.data import Partition
from consilience.engines.peers import player
from consilience.engines.peers.player import ArmPlayer
from consilience.experiments.learn.arms import _measure
from consilience.experiments.learn.description import OwnLearner
from consilience.models import mlp
from consilience.models.likelihoods import Categorical
from consilience.task.shared import Examples, room
from consilience.task.task import Task, _made, arm_of_one

SIZES = (40, 25, 70)


def task_of(agent):
    """The task as one of three has it, with some rows held back."""
    rng, rows = np.random.default_rng(agent), SIZES[agent] + 6
    x, y = rng.normal(size=(rows, 3)).astype(np.float32), rng.integers(0, 2, rows)
    owner = np.where(np.arange(rows) < 6, -1, agent)
    held, kept = Partition(owner, 3), Partition(np.where(owner < 0, agent, -1), 3)
    learner = OwnLearner(batch=8, epochs=2)
    return Task(
        lambda: Examples(x, y), {5: held}, {5: kept}, mlp((3,), 2, (4,)), Categorical(("a", "b")), learner
    )  # fmt: skip


def played(arm, agent):
    """What it says after two rounds, and its scores."""
    one = ArmPlayer(arm, agent, 5)
    state, _ = one.learn(one.start(), 1)
    state, said = one.learn(state, 2)
    return said, one.measure(state, one.publish(state), 2)


def measure_of(task, most):
    return partial(partial, _measure, task, 4, most)


@pytest.fixture
def texts(monkeypatch):
    """The programs that are compiled."""
    found = []

    def noted(lowered):
        found.append(lowered.as_text())
        return lowered.compile()

    monkeypatch.setattr(player, "compiled", noted)
    return found


def test_two_peers_have_the_same_programs_and_one_with_much_more_data_others(texts):
    per_agent = []
    for agent in range(3):
        task = task_of(agent)
        texts.clear()
        played(arm_of_one(task, 3, measure_of(task, room(6))), agent)
        per_agent.append(list(texts))
    assert len(per_agent[0]) == 4
    assert per_agent[0] == per_agent[1]
    assert per_agent[0] != per_agent[2]


@pytest.mark.parametrize("agent", [0, 2])
def test_room_for_more_data_changes_nothing(agent):
    """Beside an arm whose arrays have the size of the data."""
    task = task_of(agent)
    roomy = arm_of_one(task, 3, measure_of(task, room(6)))
    rule = task._replace(held={5: Partition(np.arange(3), 3)}).rule(roomy.hears)
    tight = _made(task, rule, None, roomy.hears, measure_of(task, 6), lambda found: found, task.steps())
    assert roomy.steps > tight.steps
    (said, scores), (expected, exact) = played(roomy, agent), played(tight._replace(agent=roomy.agent), agent)
    for name in expected:
        np.testing.assert_allclose(said[name], expected[name], rtol=2e-5, atol=2e-6)
    assert scores == pytest.approx(exact, rel=1e-4)


def test_a_peer_that_reads_arrays_imports_nothing_for_tables_or_graphs():
    heavy = ("pyarrow", "networkx", "pandas", "matplotlib", "sklearn")
    program = (
        "import sys, consilience.learning.peer, consilience.engines.peers.node, "
        "consilience.engines.peers.transport.grpc\n"
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
