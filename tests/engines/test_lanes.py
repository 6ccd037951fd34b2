"""A seed gives the same bits alone and in any company, and repetitions have nothing in common but what is asked for."""

import csv

import jax
import numpy as np
import pytest

from consilience.engines.simulate import Simulation
from consilience.engines.simulate.lanes import lanes_of
from consilience.experiments import arms, load
from consilience.experiments.images.arms import setting_of
from consilience.runs import run

pytestmark = pytest.mark.usefixtures("optimised")  # the same bits are promised of programs as users have them
DIGITS = ["alone=false", "model.hidden=[16]", "learner.epochs=2", "samples=2", "networks.cooperating.edges=4"]
DIGITS += ["partition.kind=dirichlet", "partition.alpha=1.0"]


def test_a_lane_follows_from_its_seed():
    for seeds in ([4], [3, 4, 5], range(130), [4, 70, 3], [2**30 - 1]):
        lanes = lanes_of(seeds, 64)
        assert lanes.seeds[lanes.place].tolist() == [*seeds]
        assert (lanes.place % 64 == np.asarray(seeds) % 64).all()
        assert lanes.repetition[lanes.place].tolist() == [*range(len(seeds))]
        assert len(lanes.seeds) == len(lanes.repetition) == 64 * len({seed // 64 for seed in seeds})


def of_four(simulation, rounds):
    """Everything there is of seed 4: state, public belief and metrics."""
    progress, metrics = simulation.play(1, rounds, [True] * len(rounds), simulation.start())
    place = list(simulation.seeds).index(4)
    arrays = jax.tree.map(lambda x: np.asarray(x[place]), simulation.agents(progress))
    return jax.tree.leaves((arrays, {name: values[:, place] for name, values in metrics.items()}))


def same_bits(one, other):
    for ours, theirs in zip(one, other, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("experiment", "arm", "precision"),
    [
        ("linear-regression", "cooperating", "float32"),
        pytest.param("theorem-1", "small-world", "float64", marks=pytest.mark.soak),
    ],
)
def test_light_agents_round_the_same_in_any_company(experiment, arm, precision):
    config = load(experiment, [f"precision={precision}"])
    with jax.enable_x64(precision == "float64"):
        simulation = Simulation(arms(config)[arm], [4])
        alone = of_four(simulation, [1, 12])
        for seeds in ([3, 4, 5], range(130)):
            company = simulation.of_seeds(seeds)
            same_bits(of_four(company, [1, 12]), alone)
        assert len(company.lanes.seeds) > company.lanes.width > 1


@pytest.mark.soak  # that devices and company change no bit is shown in small by test_simulate and test_uneven
@pytest.mark.parametrize(("estimator", "precision"), [("weights", "float64"), ("outputs", "float32")])
def test_heavy_agents_round_the_same_in_any_company(estimator, precision):
    """Agents are cut between devices, and other repetitions make more steps, from other shares."""
    played, steps = {}, {}
    for name, settings in (("alone", ["seed=4"]), ("company", ["seed=2", "replicates=8"])):
        given = [*DIGITS, "learner.batch=2", f"learner.estimator={estimator}", f"precision={precision}", *settings]
        config = load("star-digits", given)
        with jax.enable_x64(precision == "float64"):
            arm = arms(config)["cooperating"]
            simulation = Simulation(arm, config.seeds(), jax.devices()[:2])
            assert simulation.placement.left
            played[name], steps[name] = of_four(simulation, [1, 2]), arm.steps
    assert steps["alone"] < steps["company"]
    same_bits(played["alone"], played["company"])


@pytest.mark.parametrize(
    ("experiment", "settings"),
    [
        pytest.param(  # the same bits, above
            "linear-regression", ["rounds=12", "record_every=4", "test_samples=50"], marks=pytest.mark.soak
        ),
        pytest.param(  # agents that are cut have the same bits, above
            "star-digits", [*DIGITS, "rounds=3", "record_every=1", "learner.batch=4"], marks=pytest.mark.soak
        ),
    ],
)
def test_a_seed_has_the_same_rows_alone_and_in_company(experiment, settings, tmp_path):
    tables = []
    for name, seeds in (("alone", ["seed=4"]), ("company", ["seed=3", "replicates=3", "per_seed=true"])):
        run.begin(load(experiment, ["replicates=1", *settings, *seeds]), tmp_path / name)
        run.carry_on(tmp_path / name)
        with (tmp_path / name / "record.csv").open(newline="") as file:
            tables.append(list(csv.DictReader(file)))
    alone, company = tables
    assert len(company) == 3 * len(alone)
    of_four = [{key: text for key, text in row.items() if key != "seed"} for row in company if row["seed"] == "4"]
    assert of_four == alone


@pytest.mark.parametrize("same", ["nothing", "partition", "start"])
def test_repetitions_draw_their_own(same):
    """Who holds what and where everybody begins: of each seed as if it were alone, or of the first."""
    asked = [] if same == "nothing" else [f"same_{same}=true"]
    partitions, starts = begun(["seed=3", "replicates=3", *asked])
    of_each = [begun([f"seed={seed}", *asked]) for seed in (3, 4, 5)]
    for number in range(3):
        np.testing.assert_array_equal(partitions[number], of_each[0 if same == "partition" else number][0][0])
        np.testing.assert_array_equal(starts[number], of_each[0 if same == "start" else number][1][0])
    assert len({partition.tobytes() for partition in partitions}) == (1 if same == "partition" else 3)
    assert len({start.tobytes() for start in starts}) == (1 if same == "start" else 3)


def begun(settings):
    """The owner of every example and the agents' means at the start, a row a repetition."""
    config = load("star-digits", [*DIGITS, "learner.batch=2", *settings])
    with jax.enable_x64(False):
        partitions = setting_of(config).partitions
        simulation = Simulation(arms(config)["cooperating"], config.seeds())
        means = simulation.agents(simulation.start()).public.precision_mean
    assert (means == means[:, :1]).all()  # all agents of a repetition begin with the same
    return np.stack([partitions[seed].owner for seed in config.seeds()]), means
