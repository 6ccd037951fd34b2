"""The paper's experiments: each a typed description with the paper's values as defaults, its arms and its summary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from consilience.described.settings import defaults_of, override, read_toml, validate
from consilience.errors import InputError, brief, suggestion
from consilience.experiments.images.presets import PRESETS
from consilience.runs.description import RunConfig
from consilience.task.rules import ruled

if TYPE_CHECKING:
    from rich.table import Table

    from consilience.engines.arm import Arm
    from consilience.runs.record import Record
    from consilience.task.learnt import Learnt


class Experiment(NamedTuple):
    """A built-in experiment: what it shows, the room it lives in, its values where they differ from the defaults.

    A room is a folder here: `description` (its Config), `arms`, `summary` (and its table), `figures`.
    """

    summary: str
    room: str
    values: dict[str, Any]


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
    "learn": Experiment("Your own data: `consilience new` writes its description from your files", "learn", {}),
    **{name: Experiment(summary, "images", values) for name, (summary, values) in PRESETS.items()},
}


def part_of(name: str, part: str) -> Any:
    """A module of an experiment's room; imported when it is needed, so that a list of them does not wait for JAX."""
    return import_module(f"consilience.experiments.{_experiment(name).room}.{part}")


def arms(config: RunConfig) -> dict[str, Arm]:
    """The arms of a description."""
    made: dict[str, Arm] = part_of(config.experiment, "arms").arms(config)
    return made


def shares(config: RunConfig) -> dict[str, Any] | None:
    """What reports need of the data, where there is any."""
    of = getattr(part_of(config.experiment, "arms"), "shares", None)
    return None if of is None else of(config)


def has_shares(config: RunConfig) -> bool:
    """Whether reports need something of the data."""
    return hasattr(part_of(config.experiment, "arms"), "shares")


def learnt(config: RunConfig, shares: Mapping[str, Any]) -> Learnt:
    """What beliefs of a run are about, without its data."""
    of = getattr(part_of(config.experiment, "arms"), "learnt", None)
    if of is None:
        raise InputError(f"run: '{config.experiment}' learns no model that predicts")
    found: Learnt = of(config, shares)
    return found


def with_given(config: RunConfig, model: Any = None, likelihood: Any = None) -> RunConfig:
    """The description with what was given in Python put where it says that something was."""
    given = {"model": ("network", model), "likelihood": ("likelihood", likelihood)}
    parts = {
        name: getattr(config, name).model_copy(update={field: value})
        for name, (field, value) in given.items()
        if value is not None and getattr(getattr(config, name, None), "kind", None) == "given"
    }
    return config.model_copy(update=parts) if parts else config


def summarise(config: RunConfig, record: Record) -> dict[str, Any]:
    """What is told of a run."""
    summary: dict[str, Any] = part_of(config.experiment, "summary").summarise(config, record)
    return summary


def compared(config: RunConfig, record: Record) -> dict[str, str]:
    """The scores by which runs are compared, each with its column of the record; none where there are none."""
    of = getattr(part_of(config.experiment, "summary"), "compared", None)
    found: dict[str, str] = {} if of is None else of(record)
    return found


def table(summary: dict[str, Any]) -> Table:
    """A run's summary for a terminal."""
    made: Table = part_of(summary["experiment"], "summary").table(summary)
    return made


def draw(config: RunConfig, record: Record, folder: Path) -> list[Path]:
    """Draw the figures of a run into a folder; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn: list[Path] = part_of(config.experiment, "figures").draw(config, record, folder)
    return drawn


def load(source: str, settings: Iterable[str] = (), rule: str | None = None) -> RunConfig:
    """A run's description from a built-in name or a TOML file, by another rule, with `key=value` settings applied.

    >>> load("linear-regression", ["rounds=20"]).rounds
    20
    """
    from_file = source.endswith(".toml")
    if Path(source).suffix and not from_file:
        raise InputError(f"experiment: must be one of `consilience experiments` or a .toml file, got {brief(source)}")
    values = read_toml(Path(source)) if from_file else {"experiment": source}
    if from_file and "experiment" not in values:
        raise InputError(f"experiment: is required, '{source}' does not say which one it describes")
    config = described(values, settings, rule)
    return lying_in(config, Path(source).parent) if from_file else config


def example(source: str, settings: Iterable[str] = (), rule: str | None = None) -> RunConfig:
    """A description to look at: the one that is named, with an example where only the user's own data can say more."""
    values = getattr(part_of(source, "description"), "EXAMPLE", {}) if source in EXPERIMENTS else {}
    return described({"experiment": source, **values}, settings, rule) if values else load(source, settings, rule)


def lying_in(config: RunConfig, folder: Path) -> RunConfig:
    """The description, knowing where it lies, where it has something beside it there."""
    return config.model_copy(update={"beside": folder}) if "beside" in type(config).model_fields else config


def described(values: Mapping[str, Any], settings: Iterable[str] = (), rule: str | None = None) -> RunConfig:
    """A run's description from its values, where they differ from those of the experiment that they name.

    By another `rule`, learner and consensus are the rule's; settings come after it.
    """
    name = str(values["experiment"])
    experiment = _experiment(name)
    # Settings reach into the defaults too, so that `network.trust=0.3` keeps the default's kind.
    Config = part_of(name, "description").Config
    wanted = {**defaults_of(Config, {"experiment": name, **experiment.values}), **values}
    wanted = override(wanted if rule is None else ruled(wanted, rule), settings)
    if wanted["experiment"] != name:
        raise InputError(f"experiment: this is '{name}'; to run another one, name it in its place")
    if name == "learn" and "shares" not in wanted:
        raise InputError(
            "shares: are required, whose data is where; `consilience new NAME a.csv b.csv --label COLUMN` writes them"
        )
    config: RunConfig = validate(Config, wanted)
    return config


def _experiment(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        raise InputError(f"experiment: unknown '{name}'; {suggestion(name, EXPERIMENTS)}")
    return EXPERIMENTS[name]
