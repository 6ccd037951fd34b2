"""A printed description says what its fields mean and reads back as the same description."""

import tomllib

import pytest

from consilience.described.commented import commented_toml
from consilience.described.settings import to_toml
from consilience.experiments import EXPERIMENTS, described, example, load

ODD = 'networks={"a = b"={kind="star", edges=1}, c={kind="matrix", W=[[0.5, 0.5], [0.5, 0.5]]}}'


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_with_comments_it_is_the_same_description(name):
    config = example(name)
    text = commented_toml(config)
    assert tomllib.loads(text) == tomllib.loads(to_toml(config))
    assert described(tomllib.loads(text)) == config
    assert "seed = 0  # the first seed\n" in text


def test_odd_names_and_lists_of_tables():
    config = load("changing-rates", [ODD])
    assert tomllib.loads(commented_toml(config)) == tomllib.loads(to_toml(config))
    columns = {'a "b" = [c]': {"kind": "number"}, "[x]": {"kind": "category", "levels": ["# no", "= yes"]}}
    config = example("learn").model_copy(update={"columns": None})
    values = {**tomllib.loads(to_toml(config)), "columns": {**columns, "y": {"kind": "label", "levels": ["p", "q"]}}}
    config = described(values)
    assert tomllib.loads(commented_toml(config)) == tomllib.loads(to_toml(config))


def test_what_has_no_value_is_named():
    text = commented_toml(example("learn"))
    assert "# held_out = …  # share of its rows by which each agent is judged" in text
    assert "beside =" not in text
    assert "\n[learner]\n" in text
    assert "batch = 32  # B: examples a step" in text
