"""The paper's experiments: each a typed description with the paper's values as defaults, its arms and its summary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from consilience.config import RunConfig, override, read_toml, validate
from consilience.errors import InputError, suggestion
from consilience.experiments.presets import PRESETS


class Experiment(NamedTuple):
    """A built-in experiment: what it shows, the module that runs it, its values where they differ from the defaults."""

    summary: str
    runs_in: str
    values: dict[str, Any]

    @property
    def module(self) -> ModuleType:
        """Imported when it is needed: a list of experiments does not wait for JAX."""
        return import_module(f"consilience.experiments.{self.runs_in}")


EXPERIMENTS: dict[str, Experiment] = {
    "linear-regression": Experiment(
        "Bayesian linear regression; every agent sees one coordinate, together they learn all (Fig. 1)",
        "linear_regression",
        {},
    ),
    "theorem-1": Experiment(
        "Theorem 1 on finite hypotheses: measured decay against K, and how often the bound's event holds",
        "theorem_1",
        {},
    ),
    "changing-rates": Experiment(
        "Decay in networks that change: measured against what the realised W_t predict, for every agent",
        "changing_rates",
        {},
    ),
    **{name: Experiment(summary, "classification", values) for name, (summary, values) in PRESETS.items()},
}


def module_of(name: str) -> ModuleType:
    """The module of an experiment by its name."""
    return _experiment(name).module


def load(source: str, settings: Iterable[str] = ()) -> RunConfig:
    """A run's description from a built-in name or a TOML file, with `key=value` settings applied.

    >>> load("linear-regression", ["rounds=20"]).rounds
    20
    """
    from_file = source.endswith(".toml")
    values = read_toml(Path(source)) if from_file else {"experiment": source}
    if from_file and "experiment" not in values:
        raise InputError(f"experiment: is required, '{source}' does not say which one it describes")
    return described(values, settings)


def described(values: Mapping[str, Any], settings: Iterable[str] = ()) -> RunConfig:
    """A run's description from its values, where they differ from those of the experiment that they name."""
    name = str(values["experiment"])
    experiment = _experiment(name)
    # Settings reach into the defaults too, so that `network.trust=0.3` keeps the default's kind.
    defaults = validate(experiment.module.Config, {"experiment": name, **experiment.values})
    known = defaults.model_dump(mode="json", exclude_none=True)
    wanted = override({**known, **values}, settings)
    if wanted["experiment"] != name:
        raise InputError(f"experiment: this is '{name}'; to run another one, name it in its place")
    config: RunConfig = validate(experiment.module.Config, wanted)
    return config


def _experiment(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        raise InputError(f"experiment: unknown '{name}'; {suggestion(name, EXPERIMENTS)}")
    return EXPERIMENTS[name]
