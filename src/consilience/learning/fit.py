"""A finished run as a value: everybody's belief, predictions with it, and what happened."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import safe_open

from consilience import experiments
from consilience.beliefs import Gaussian, MeanField, Point
from consilience.data.arrays import check_inputs
from consilience.errors import InputError, brief, suggestion
from consilience.learners.packing import packing_of
from consilience.learning import export
from consilience.learning.coefficients import Coefficients, check_linear, coefficients_of
from consilience.learning.export import Exported
from consilience.learning.frameworks import as_model
from consilience.learning.inputs import read_inputs
from consilience.learning.prediction import Prediction, Predictor
from consilience.report.tables import show
from consilience.runs import folder as files
from consilience.runs import run
from consilience.runs.checkpoint import check_arrays, read_header
from consilience.runs.record import Record
from consilience.task.consensus import ALONE, apart
from consilience.task.learnt import Learnt
from consilience.task.rule import FAMILIES, places_of

Which = Literal["pooled", "own"]


class Belief(NamedTuple):
    """An agent's posterior: means and standard deviations in the model's own tree.

    Where weights are not independent, `covariance` is that of all, in the order of the tree's leaves, each row by row.

    >>> Belief(mean={"w": 2.0}, sd={"w": 0.5}).sd["w"]
    0.5
    """

    mean: Any
    sd: Any
    covariance: Any = None


class Scores(dict[str, Any]):
    """What `Fit.summary` returns beside the table it prints: a dictionary that a prompt, or a cell, shows in a line."""

    def __repr__(self) -> str:
        return f"<scores by name: {', '.join(self)}>"


class Temporary:
    """A folder that lasts as long as somebody has this."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="consilience-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class Fit:
    """What a run learnt. `agents` are their names; wherever one is asked for, its number does too.

    A belief is `pooled` (what an agent holds at the end of a round, having heard the others: what it predicts with) or
    `own` (what it published: its own update of what it had pooled before).

    >>> import consilience as cs
    >>> x = np.linspace(-1, 1, 12)[:, None]
    >>> fit = cs.learn(
    ...     cs.mlp((1,), 1, hidden=()), {"a": (x[::2], x[::2, 0]), "b": (x[1::2], x[1::2, 0])}, cs.complete(2),
    ...     likelihood=cs.Gaussian(noise=0.1), rounds=2, progress=False,
    ... )  # fmt: skip
    >>> fit.agents, fit.number("b"), sorted(fit.predict(x, agent="b").columns)
    (('a', 'b'), 1, ['aleatoric', 'epistemic', 'high', 'low', 'prediction', 'sd'])
    >>> fit.belief("b").mean[-1]["w"].shape
    (1, 1)
    """

    def __init__(self, folder: Path, model: Any = None, likelihood: Any = None, kept: Temporary | None = None) -> None:
        self.folder = folder
        self._kept = kept  # a temporary folder, for as long as somebody has this
        config = run.opened(folder)
        shares = files.shares(folder) if experiments.has_shares(config) else {}
        made = None if model is None else as_model(model, tuple(shares.get("input_shape", ())))
        self.config = experiments.with_given(config, made, likelihood)
        self.learnt: Learnt = experiments.learnt(self.config, shares)
        self.agents = self.learnt.names
        self._predict = Predictor(self.learnt)
        self._file = _checked(folder)

    @property
    def record(self) -> Record:
        """What happened, round by round: `record.to_pandas()`, `record.to_polars()`."""
        return run.recorded(self.folder)[1]

    @property
    def arms(self) -> tuple[str, ...]:
        """The ways in which it was learnt; the first is meant where none is named."""
        return tuple(self.record.arms())

    @property
    def of_points(self) -> bool:
        """Whether beliefs are points (FedAvg, gossip, …), which do not say how sure they are."""
        return self._beliefs(self.arms[0])[0] is Point

    def number(self, agent: int | str) -> int:
        """An agent's number from its name or number."""
        if isinstance(agent, str) and agent in self.agents:
            return self.agents.index(agent)
        if isinstance(agent, str) and agent.isdecimal():
            agent = int(agent)
        if isinstance(agent, str):
            raise InputError(f"agent: no agent {brief(agent)}; {suggestion(agent, self.agents)}")
        if not 0 <= agent < len(self.agents):
            raise InputError(f"agent: must be a name, or a number from 0 to {len(self.agents) - 1}, got {agent}")
        return int(agent)

    def flat_belief(
        self, agent: int | str = 0, belief: Which = "pooled", arm: str | None = None, seed: int | None = None
    ) -> MeanField | Gaussian | Point:
        """An agent's belief over all parameters, as one vector."""
        if belief not in ("pooled", "own"):
            raise InputError(f"belief: must be 'pooled' or 'own', got {brief(belief)}")
        seeds = self.config.seeds()
        if (repetition := self.config.seed if seed is None else seed) not in seeds:
            raise InputError(f"seed: must be one of the run's, {seeds[0]} to {seeds[-1]}, got {seed}")
        name = self.arms[0] if arm is None else arm
        if name not in self.arms:
            raise InputError(f"arm: no arm {brief(name)}; {suggestion(name, self.arms)}")
        row = seeds.index(repetition), self.number(agent)
        family, pooled, own = self._beliefs(name)
        place = ".".join(pooled if belief == "pooled" else own)
        with safe_open(self._file, framework="numpy") as arrays:
            kept = [arrays.get_slice(f"['{name}'].{place}.{part}") for part in family._fields]
            parts = [np.asarray(each[row]).reshape(each.get_shape()[2:]) for each in kept]
        with jax.enable_x64(self.config.precision == "float64"):
            found: MeanField | Gaussian | Point = family(*map(jnp.asarray, parts))
            return found

    def unsettled(self, agent: int | str = 0) -> float:
        """By how much of its standard deviations the next round would move some mean of a regression by `laplace`.

        0 where everybody has come to rest at the mode of all data. What a consensus takes on a part of in a round is
        counted whole.
        """
        number, arm = self.number(agent), self.arms[0]
        with safe_open(self._file, framework="numpy") as arrays:
            point = arrays.get_slice(f"['{arm}'].state.own.point")[0, number]
        with jax.enable_x64(self.config.precision == "float64"):
            mean, covariance = self.flat_belief(number).moments()
        away = np.abs(np.asarray(mean) - point.reshape(-1)) / np.sqrt(np.diagonal(np.asarray(covariance)))
        damping: float = vars(self.config)["consensus"].damping
        return float(away.max()) / damping

    def _beliefs(self, arm: str) -> tuple[Any, tuple[str, ...], tuple[str, ...]]:
        """The family of an arm's beliefs, and where a checkpoint has what was pooled and what was believed before."""
        learner, consensus = getattr(self.config, "learner", None), getattr(self.config, "consensus", None)
        if learner is None or consensus is None:
            raise InputError(f"run: '{self.config.experiment}' has no beliefs over a model's parameters")
        return FAMILIES[learner.kind], *places_of(apart(consensus) if arm == ALONE else consensus)

    def belief(self, agent: int | str = 0, belief: Which = "pooled", **which: Any) -> Belief:
        """An agent's posterior: means and standard deviations in the model's own tree; of points, sds are 0."""
        flat = self.flat_belief(agent, belief, **which)
        packing = packing_of(jax.eval_shape(self.learnt.model.init, jax.random.key(0)))
        with jax.enable_x64(self.config.precision == "float64"):
            mean, variance, covariance = _moments(flat)
            mean, sd = (packing.unpack(packing.split(v)) for v in (mean, jnp.sqrt(variance)))
            if covariance is not None:
                order = packing.in_order()
                covariance = np.asarray(covariance)[np.ix_(order, order)]
            return Belief(jax.tree.map(np.asarray, mean), jax.tree.map(np.asarray, sd), covariance)

    def predict(
        self,
        x: Any,
        agent: int | str = 0,
        level: float = 0.9,
        belief: Which | Exported = "pooled",
        samples: int | None = None,
        **which: Any,
    ) -> Prediction:
        """What an agent predicts for new inputs: probabilities, or mean, sd and interval, and its doubt in two.

        `belief` may be one that was exported (`learning.export.read(file)`); it must be of this run's model.
        """
        inputs = check_inputs(x, "x")
        if samples is not None and samples < 1:
            raise InputError(f"samples: must be at least 1, got {brief(samples)}")
        flat = belief.belief_of(self) if isinstance(belief, Exported) else self.flat_belief(agent, belief, **which)
        with jax.enable_x64(self.config.precision == "float64"):
            return self._predict(flat, inputs, samples or max(getattr(self.config, "samples", 0), 32), level=level)

    def coefficients(
        self, agent: int | str = 0, level: float = 0.95, belief: Which = "pooled", **which: Any
    ) -> Coefficients:
        """Coefficients of a model without hidden layers, in the units of the data: `to_pandas()` shows them.

        Points do not say how sure they are: their sds and intervals are no numbers (NaN).
        """
        check_linear(self.config)
        mean, sd, covariance = self.belief(agent, belief, **which)
        sd = jax.tree.map(lambda each: np.full_like(each, np.nan), sd) if self.of_points else sd
        return coefficients_of(self, mean, sd, covariance, level)

    def export(self, file: str | Path, agent: int | str = 0, belief: Which = "pooled", force: bool = False) -> Path:
        """Write an agent's belief to a safetensors file, for other programs: see docs/export.md."""
        return export.write(self, file, agent, belief, force)

    def read_inputs(self, file: str | Path, field: str = "file") -> np.ndarray:
        """New inputs from a table with the run's columns, or `x` of an .npz archive; checked as in learning."""
        return read_inputs(self.learnt, Path(file), getattr(getattr(self.config, "shares", None), "owner", None), field)

    def summary(self) -> dict[str, Any]:
        """Print everybody's scores as a table; returns them."""
        found = Scores(experiment=self.config.experiment, **experiments.summarise(self.config, self.record))
        show(experiments.table(found))
        return found

    def save(self, folder: str | Path) -> Path:
        """Keep the run in a folder: what `consilience report`, `resume`, `predict` and `load` work on."""
        to = Path(folder)
        if (to.exists() or to.is_symlink()) and (not to.is_dir() or any(to.iterdir())):
            raise InputError(f"folder: '{to}' already exists")
        shutil.copytree(self.folder, to, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".lock"))
        return to

    def __repr__(self) -> str:
        return f"Fit({len(self.agents)} agents, {self.config.experiment}, '{self.folder}')"


def _moments(flat: MeanField | Gaussian | Point) -> tuple[Any, Any, Any]:
    """Means, variances, and covariances where there are any; of a point it is sure."""
    if isinstance(flat, Point):
        return flat.value, jnp.zeros_like(flat.value), None
    mean, spread = flat.moments()
    return (mean, jnp.diagonal(spread), spread) if isinstance(flat, Gaussian) else (mean, spread, None)


def load(folder: str | Path, model: Any = None, likelihood: Any = None) -> Fit:
    """A run that is kept in a folder, by `learn`, `Fit.save` or the command.

    A model (or likelihood) that was given in Python cannot be kept there: give it again.

    >>> import tempfile
    >>> import consilience as cs
    >>> x, y = np.eye(4), np.array(["no", "yes", "no", "yes"])
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = f"{place}/run"
    ...     fit = cs.learn(
    ...         cs.mlp((4,), 2, hidden=()), [(x, y)], cs.ring(1), rounds=1, folder=folder, progress=False
    ...     )
    ...     bool((load(folder).predict(x).probabilities == fit.predict(x).probabilities).all())
    True
    """
    return Fit(Path(folder), model, likelihood)


def _checked(folder: Path) -> Path:
    """The run's last checkpoint, undamaged."""
    if (file := files.latest_checkpoint(folder)) is None:
        raise InputError(f"run: '{folder}' has learnt nothing yet; `consilience resume {folder}` carries it on")
    header = read_header(file)
    check_arrays(file, header)
    if file.name != files.CHECKPOINT or header.position["record"][0] < files.extent(folder).bytes:
        raise InputError(
            f"checkpoint: '{folder / files.CHECKPOINT}' is gone, and '{file.name}' is of round "
            f"{header.position['round']}, before the last; carry the run on to have it again"
        )
    return file
