"""The paper's experiments: each a typed description with the paper's values as defaults, its arms and its summary."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from consilience.config import RunConfig, override, read_toml, validate
from consilience.errors import InputError, suggestion
from consilience.experiments import linear_regression, theorem_1

EXPERIMENTS: dict[str, ModuleType] = {
    "linear-regression": linear_regression,
    "theorem-1": theorem_1,
}


def module_of(name: str) -> ModuleType:
    """The module of an experiment by its name."""
    if name not in EXPERIMENTS:
        raise InputError(f"experiment: unknown '{name}'; {suggestion(name, EXPERIMENTS)}")
    return EXPERIMENTS[name]


def load(source: str, settings: Iterable[str] = ()) -> RunConfig:
    """A run's description from a built-in name or a TOML file, with `key=value` settings applied.

    >>> load("linear-regression", ["rounds=20"]).rounds
    20
    """
    from_file = source.endswith(".toml")
    values = read_toml(Path(source)) if from_file else {"experiment": source}
    if from_file and "experiment" not in values:
        raise InputError(f"experiment: is required, '{source}' does not say which one it describes")
    module = module_of(str(values["experiment"]))
    # Settings reach into the defaults too, so that `network.trust=0.3` keeps the default's kind.
    defaults = module.Config(experiment=values["experiment"]).model_dump(mode="json", exclude_none=True)
    config: RunConfig = validate(module.Config, override({**defaults, **values}, settings))
    return config
