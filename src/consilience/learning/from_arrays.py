"""Learn from arrays: the same run as the command's, from ten lines of Python."""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from consilience import experiments
from consilience.data.arrays import as_archive, check_alike, check_pair, numbered_or_numbers
from consilience.described.networks import AnyNetwork, Matrix
from consilience.described.settings import validate
from consilience.errors import InputError, brief
from consilience.experiments.learn.arms import check_outputs
from consilience.experiments.learn.description import Config
from consilience.files.whole import sha256_of
from consilience.learning.fit import Fit, Temporary
from consilience.learning.watching import interruptible, watched
from consilience.machine.runtime import keep_compiled_programs
from consilience.models import Likelihood, Model
from consilience.network import Network, from_networkx
from consilience.runs import folder as files
from consilience.runs import run
from consilience.runs.description import pinned
from consilience.runs.folder import CONFIG
from consilience.task.likelihoods import OfCounts, written
from consilience.task.models import GivenModel
from consilience.task.rules import ruled
from consilience.task.shares import ARRAYS, agent_name

Share = tuple[Any, Any]


def learn(
    model: Model | Any,
    shares: Sequence[Share] | Mapping[str, Share],
    network: Network | AnyNetwork | Any,
    *,
    rounds: int = 60,
    seed: int = 0,
    test: Share | None = None,
    likelihood: Likelihood | str | None = None,
    held_out: float | None = None,
    alone: bool = False,
    replicates: int = 1,
    rule: str | None = None,
    learner: Mapping[str, Any] | None = None,
    folder: str | Path | None = None,
    progress: bool | None = None,
    **more: Any,
) -> Fit:
    """Let agents with private data learn one model over a network; returns what everybody learnt.

    model: `mlp`, `cnn`, a `Model(init, apply)`, a Flax module (`nn.Module`), or an Equinox module.
    shares: one pair (x, y) an agent, of any sizes, none included; or such pairs by the agents' names.
    network: who hears whom: a `Network` (`ring(6)`, `star(8)`, …), a networkx graph (neighbours are trusted alike), or
    a description that may change.
    test: a pair (x, y) that is nobody's; without it everybody is judged by a fifth of its own rows (`held_out`).
    likelihood: what is predicted: a value such as `Gaussian(noise=0.5)`, or "categorical", "bernoulli", "gaussian",
    "poisson"; by default categorical for labels (text, whole numbers) and gaussian for floats.
    rule: how agents learn and evidence comes together, by name: "paper" if none is given, "sites", "fedavg", …
    (`consilience rules` lists them). learner: settings of the local update, e.g. `{"epochs": 10, "batch": 16}`;
    `more`: of the run, e.g. `record_every`, or `consensus`.
    folder: where the run is kept, for `load` and the command; without it, as long as the result lives.
    An interrupted run (Ctrl-C, a notebook's Interrupt) with a folder is carried on by the same call.

    >>> import numpy as np
    >>> from consilience import mlp, ring
    >>> x = np.random.default_rng(0).normal(size=(90, 2)).astype(np.float32)
    >>> y = (x.sum(1) > 0).astype(int)
    >>> fit = learn(mlp((2,), 2, hidden=()), [(x[i::3], y[i::3]) for i in range(3)], ring(3), rounds=4, progress=False)
    >>> fit.predict(x[:5], agent=1).probabilities.shape
    (5, 2)
    """
    kept = Temporary() if folder is None else None
    place = kept.path / "run" if kept is not None else Path(str(folder))
    with tempfile.TemporaryDirectory(prefix="consilience-") as staged:
        config, given = described(
            model, shares, network, test, likelihood, rule, Path(staged),
            rounds=rounds, seed=seed, held_out=held_out, alone=alone, replicates=replicates,
            learner=learner, **more,
        )  # fmt: skip
        if not (place / CONFIG).is_file():
            if (place.exists() or place.is_symlink()) and (not place.is_dir() or any(place.iterdir())):
                raise InputError(f"folder: '{place}' already exists and is no run's folder")
            run.begin(config, place, "consilience.learn")
        elif _apart(run.opened(place)) != _apart(pinned(config)):
            raise InputError(f"folder: '{place}' holds another run; give it another folder")
    if note := files.shares(place).get("note"):
        warnings.warn(note, stacklevel=2)
    keep_compiled_programs()
    complete = lambda read: experiments.with_given(read, *given)  # noqa: E731
    try:
        with watched(config.rounds, progress) as on_round, interruptible() as asked:
            run.carry_on(place, on_round, asked, complete=complete)
    except run.Stopped as stopped:
        again = "the same call carries it on" if kept is None else "with a folder the same call would carry it on"
        raise KeyboardInterrupt(f"stopped after round {stopped} of {config.rounds}; {again}") from None
    return Fit(place, *given, kept=kept)


def described(
    model: Any, shares: Any, network: Any, test: Any, likelihood: Any, rule: Any, staged: Path, **values: Any
) -> tuple[Config, tuple[Any, Any]]:
    """The description of what `learn` was given, and what of it cannot be written down."""
    kind = likelihood if isinstance(likelihood, str) else getattr(likelihood, "name", None)
    arrays, label_names = arrays_of(shares, test, kind is not None and kind not in OF_LABELS)
    content = as_archive(arrays)
    (staged / ARRAYS).write_bytes(content)
    shape = arrays["x"].shape[1:]
    made, given_model, model_values = _model(model, shape)
    given_likelihood, likelihood_values = _likelihood(likelihood, label_names, arrays["y"])
    wanted = {
        "experiment": "learn",
        "shares": {"kind": "arrays", "sha256": sha256_of(content)},
        "network": _network(network, len(arrays["sizes"])),
        "model": model_values,
        "likelihood": likelihood_values,
        **_by_rule(rule, {name: value for name, value in values.items() if value is not None}),
    }
    config = experiments.lying_in(validate(Config, wanted), staged)
    complete = experiments.with_given(config, given_model, given_likelihood)
    assert isinstance(complete, Config)
    # What is written down of a model leaves out what the data says: it must say the same.
    check_outputs(made, shape, complete.likelihood.build(label_names, None))
    return complete, (given_model, given_likelihood)


def _by_rule(rule: str | None, values: dict[str, Any]) -> dict[str, Any]:
    """A rule's learner and consensus, with what was given of them besides."""
    if rule is None:
        return values
    chosen = ruled({"learner": {}}, str(rule))
    given = {part: values.get(part, {}) for part in ("learner", "consensus")}
    return values | {
        part: {**chosen[part], **more} if isinstance(more, Mapping) else more for part, more in given.items()
    }


def arrays_of(shares: Any, test: Any, of_numbers: bool = False) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """All shares one after another, as they are kept, and the labels' names."""
    if not isinstance(shares, Mapping | Sequence) or isinstance(shares, str):
        raise InputError(f"shares: must be a list of pairs (x, y), or pairs by name, got {type(shares).__name__}")
    named = _named(shares) if isinstance(shares, Mapping) else {f"agent {k}": pair for k, pair in enumerate(shares)}
    if not named:
        raise InputError("shares: must hold a pair (x, y) for at least one agent, got none")
    pairs = {name: _pair(pair, f"shares[{brief(name)}]") for name, pair in named.items()}
    if not any(len(x) for x, _ in pairs.values()):
        raise InputError("shares: nobody has any data")
    if test is not None:
        pairs[TESTED] = _pair(test, "test")
        if not len(pairs[TESTED][1]):
            raise InputError("test: must have rows, got none")
    check_alike({name: x for name, (x, _) in pairs.items() if len(x)}, "shares")
    y, label_names = numbered_or_numbers({name: pair[1] for name, pair in pairs.items()}, "shares", of_numbers)
    learnt = np.concatenate([y[name] for name in named])
    if test is not None and label_names and (unknown := np.setdiff1d(y[TESTED], learnt)).size:
        raise InputError(f"test: has a label that no share has, {brief(label_names[unknown[0]])}")
    arrays = {
        "x": np.concatenate([pairs[name][0] for name in named if len(pairs[name][0])]),
        "y": learnt,
        "sizes": np.array([len(y[name]) for name in named], np.int64),
        "names": np.array(list(named), np.str_),
        "labels": np.array(label_names, np.str_),
    }
    return arrays | ({} if test is None else {"x_test": pairs[TESTED][0], "y_test": y[TESTED]}), label_names


TESTED = "the test set "  # no agent's name: those do not end with a space
OF_LABELS = ("categorical", "bernoulli")


def _named(shares: Mapping[Any, Any]) -> dict[str, Any]:
    """Shares by the agents' names, which must be fit to be shown."""
    named = {}
    for key, pair in shares.items():
        try:
            name = agent_name(str(key))
        except ValueError as error:
            raise InputError(f"shares: {error}, got {brief(key)}") from None
        if name in named:
            raise InputError(f"shares: two agents are called {brief(name)}")
        named[name] = pair
    return named


def _pair(pair: Any, where: str) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise InputError(f"{where}: must be a pair (x, y), got {brief(type(pair).__name__)}")
    x, y = pair
    if np.shape(x) == (0,) and np.shape(y) == (0,):  # nothing at all, whatever its shape would be
        return np.zeros((0, 1), np.float32), np.zeros(0)
    return check_pair(x, y, where)


def _model(model: Any, shape: tuple[int, ...]) -> tuple[Model, Model | None, dict[str, Any]]:
    """The model, the same where it cannot be written down, and its description."""
    from consilience.learning.frameworks import as_model

    made = as_model(model, shape)
    if made.described is not None:
        return made, None, made.described
    return made, made, GivenModel(parameters=made.size).model_dump()


def _likelihood(likelihood: Any, label_names: tuple[str, ...], y: np.ndarray) -> tuple[Any, dict[str, Any]]:
    if likelihood is None:
        likelihood = "categorical" if label_names else "gaussian"
    if isinstance(likelihood, str):
        if likelihood == "gaussian" and not label_names:  # what the network need not learn
            return None, {"kind": likelihood, "centre": float(y.mean()), "scale": float(y.std()) or 1.0}
        if likelihood == "poisson" and not label_names:
            if rule := OfCounts().refuses(y):
                raise InputError(f"shares: {rule}")
            return None, {"kind": likelihood, "centre": float(y.mean()) or 1.0}
        return None, {"kind": likelihood}
    return written(likelihood)


def _network(network: Any, agents: int) -> Any:
    networkx = sys.modules.get("networkx")  # who has a graph has imported it; nobody else should wait for it
    if networkx is not None and isinstance(network, networkx.Graph):
        network = from_networkx(network, weight=None)
    if isinstance(network, Network):
        if network.agents != agents:
            raise InputError(f"network: must have an agent for each of the {agents} shares, got {network.agents}")
        return Matrix(W=network.W.toarray().tolist()).model_dump(exclude_none=True)
    if isinstance(network, AnyNetwork):
        return network.model_dump(mode="json", exclude_none=True)
    kinds = f"a Network (cs.ring({agents}), cs.from_matrix(W), …), a networkx graph or a description"
    raise InputError(f"network: must be {kinds}, got {type(network).__name__}")


def _apart(config: Any) -> dict[str, Any]:
    """A description without what a place notes in it."""
    values: dict[str, Any] = config.model_dump(mode="json", exclude={"files"}, exclude_none=True)
    return values
