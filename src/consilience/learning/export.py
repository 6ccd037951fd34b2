"""A belief as a file of its own: means and standard deviations by name, with all that is needed to use them."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import safe_open
from safetensors.numpy import save

from consilience import __version__
from consilience.beliefs import Gaussian, MeanField, Point
from consilience.errors import InputError, brief
from consilience.files.reading import reading
from consilience.files.whole import write_atomically
from consilience.learners.packing import packing_of
from consilience.learning.written import check_out
from consilience.machine.memory import require
from consilience.runs import folder as files
from consilience.task.columns import features
from consilience.task.learnt import Learnt

if TYPE_CHECKING:
    from consilience.learning.fit import Fit

FORMAT, VERSION = "consilience-belief", 1
ENDING = ".safetensors"
LONGEST_HEADER = 1 << 26
SEAL = "sha256"  # of everything else in the file
MEAN, SD, COVARIANCE = "mean", "sd", "covariance"
MEANT = ("model", "likelihood", "columns", "labels", "input_shape")  # what a belief is about


@dataclass(frozen=True)
class Exported:
    """What a belief file holds: `mean` and `sd` of every parameter by its name, and `about` them: model, columns, …

    `covariance`, where parameters are not independent: of all of them, in the order of their names in `mean`, each row
    by row.
    """

    mean: Mapping[str, np.ndarray]
    sd: Mapping[str, np.ndarray]
    about: Mapping[str, Any]
    covariance: np.ndarray | None = None

    def belief_of(self, fit: Fit, field: str = "belief") -> MeanField | Gaussian:
        """The same as one vector, for the model of a run; refused where it is of another model."""
        for name in MEANT:
            if (own := self.about.get(name)) != (wished := _meant(fit)[name]):
                raise InputError(
                    f"{field}: is of another model than '{fit.folder}': its {name.replace('_', ' ')}: "
                    f"{brief(own)}, the run's: {brief(wished)}"
                )
        shapes = _shapes(fit.learnt)
        found = {name: array.shape for name, array in self.mean.items()}
        if found != shapes:
            differing = sorted(name for name in {*found, *shapes} if found.get(name) != shapes.get(name))[0]
            got, wanted = (each.get(differing, "none") for each in (found, shapes))
            raise InputError(f"{field}: is of another model: its parameter {differing} has shape {got}, not {wanted}")
        packing = packing_of(jax.eval_shape(fit.learnt.model.init, jax.random.key(0)))

        def flat(parts: Mapping[str, np.ndarray]) -> Any:
            tree = jax.tree.unflatten(packing.structure, [jnp.asarray(parts[name]) for name in shapes])
            return packing.flatten(packing.pack(tree))

        with jax.enable_x64(fit.config.precision == "float64"):
            if self.covariance is None:
                return MeanField.from_moments(flat(self.mean), flat(self.sd) ** 2)
            order = np.argsort(packing.in_order())
            return Gaussian.from_moments(flat(self.mean), jnp.asarray(self.covariance[np.ix_(order, order)]))


def write(fit: Fit, file: str | Path, agent: int | str = 0, belief: Any = "pooled", force: bool = False) -> Path:
    """Write an agent's belief to a safetensors file; `read` and any library for this format read it.

    Its arrays are `mean.NAME` and `sd.NAME`, NAME being a parameter's place in the model's tree, such as `1.w`; and
    `covariance` where parameters are not independent.
    """
    file = Path(file)
    check_out(file, (ENDING,), force, "out")
    if isinstance(fit.flat_belief(agent, belief), Point):
        raise InputError("run: was learnt with point weights, which have no sds to export")
    found = fit.belief(agent, belief)
    arrays = {f"{MEAN}.{name}": array for name, array in named(found.mean).items()}
    arrays |= {f"{SD}.{name}": array for name, array in named(found.sd).items()}
    arrays |= {} if found.covariance is None else {COVARIANCE: np.ascontiguousarray(found.covariance)}
    about = {
        "format": FORMAT,
        "format_version": VERSION,
        **_meant(fit),
        "features": None if fit.learnt.columns is None else [f._asdict() for f in features(fit.learnt.columns)],
        "experiment": fit.config.experiment,
        "agent": fit.agents[fit.number(agent)],
        "belief": belief,
        "order": list(named(found.mean)),
        "arm": fit.arms[0],
        "seed": fit.config.seed,
        "rounds": files.played(fit.folder),
        "precision": fit.config.precision,
        "versions": {"consilience": __version__, "jax": jax.__version__, "numpy": np.__version__},
    }
    texts = {name: json.dumps(value, ensure_ascii=False) for name, value in about.items()}
    write_atomically(file, save(arrays, texts | {SEAL: json.dumps(_checksum(arrays, texts))}))
    return file


def read(file: str | Path, field: str = "belief") -> Exported:
    """A belief file, checked: nothing in it was changed since it was written, and every number can be used."""
    file = Path(file)
    with reading(field, file):
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if not 0 < length <= LONGEST_HEADER:
                raise InputError("it is not a safetensors file")
        require(2.0 * file.stat().st_size, "read")
        with safe_open(file, framework="numpy") as opened:
            texts = dict(opened.metadata() or {})
            if texts.get("format") != json.dumps(FORMAT):
                raise InputError("it is not a belief that `consilience export` wrote")
            arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        seal = texts.pop(SEAL, None)
        if seal != json.dumps(_checksum(arrays, texts)):
            raise InputError("it is damaged or was changed: it does not have its checksum")
        about = {name: json.loads(text) for name, text in texts.items()}
        if about["format_version"] != VERSION:
            raise InputError(f"must have the format version {VERSION}, got {brief(about['format_version'])}")
        mean, sd = ({name[len(word) + 1 :]: array for name, array in arrays.items() if name.startswith(f"{word}.")}
                    for word in (MEAN, SD))  # fmt: skip
        covariance = arrays.get(COVARIANCE)
        _check(mean, sd, len(arrays) - (covariance is not None))
        mean, sd = ({name: part[name] for name in _in_order(part, about)} for part in (mean, sd))
        if covariance is not None:
            _check_covariance(covariance, sd)
    return Exported(mean, sd, about, covariance)


def named(tree: Any) -> dict[str, np.ndarray]:
    """The arrays of a tree by their places in it.

    >>> list(named([(), {"w": np.ones((1, 2)), "c": np.ones(1)}]))
    ['1.c', '1.w']
    """
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    found = {jax.tree_util.keystr(path, simple=True, separator="."): np.asarray(leaf) for path, leaf in leaves}
    if len(found) < len(leaves):
        raise InputError("model: two of its parameters have the same name")
    return found


def _shapes(learnt: Learnt) -> dict[str, tuple[int, ...]]:
    """The shape of every parameter, in the order of the model's tree."""
    leaves = jax.tree_util.tree_flatten_with_path(jax.eval_shape(learnt.model.init, jax.random.key(0)))[0]
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf.shape for path, leaf in leaves}


def _meant(fit: Fit) -> dict[str, Any]:
    """What a belief is about, as JSON has it."""
    described = fit.config.model_dump(mode="json", exclude_none=True, include={"model", "likelihood", "columns"})
    learnt = fit.learnt
    return {
        "model": described["model"],
        "likelihood": described.get("likelihood", {"kind": learnt.likelihood.name}),
        "columns": described.get("columns"),
        "labels": list(learnt.label_names),
        "input_shape": list(learnt.shape),
    }


def _checksum(arrays: Mapping[str, np.ndarray], texts: Mapping[str, str]) -> str:
    """Of all arrays and all that is said of them."""
    total = hashlib.sha256(json.dumps(dict(texts), sort_keys=True).encode())
    for name in sorted(arrays):
        total.update(f"{name} {arrays[name].dtype.name} {arrays[name].shape}".encode())
        total.update(np.ascontiguousarray(arrays[name]).tobytes())
    return total.hexdigest()


def _in_order(part: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> list[str]:
    """The names of parameters as the model's tree has them."""
    order = about.get("order")
    return order if isinstance(order, list) and sorted(order) == sorted(part) else sorted(part)


def _check_covariance(covariance: np.ndarray, sd: Mapping[str, np.ndarray]) -> None:
    """It is of these parameters, with these sds."""
    sds = np.concatenate([array.reshape(-1) for array in sd.values()])
    if covariance.shape != (len(sds), len(sds)) or covariance.dtype.kind != "f":
        raise InputError(f"covariance must be of {len(sds)} parameters, got the shape {covariance.shape}")
    if not np.isfinite(covariance).all() or not np.allclose(np.diagonal(covariance), sds**2, rtol=1e-3):
        raise InputError("covariance must be finite and have the squares of the sds on its diagonal")


def _check(mean: Mapping[str, np.ndarray], sd: Mapping[str, np.ndarray], arrays: int) -> None:
    """Every mean has a standard deviation, and all are numbers that can be used."""
    if not mean or len(mean) + len(sd) != arrays or set(mean) != set(sd):
        raise InputError("must have mean.NAME and sd.NAME for each parameter, and nothing else")
    for name in mean:
        if mean[name].dtype.kind != "f" or sd[name].dtype.kind != "f":
            raise InputError(f"{name} must hold floats, it holds {mean[name].dtype} and {sd[name].dtype}")
        if mean[name].shape != sd[name].shape:
            raise InputError(f"{name} must have means and sds of one shape, got {mean[name].shape}, {sd[name].shape}")
        if not (np.isfinite(mean[name]).all() and np.isfinite(sd[name]).all()):
            raise InputError(f"{name} must be finite, it is not everywhere")
        if sd[name].size and not (lowest := float(sd[name].min())) > 0:
            raise InputError(f"sd.{name} must be greater than 0, got {lowest:g}")
        if sd[name].size and math.isinf(float(sd[name].max()) ** 2):
            raise InputError(f"sd.{name} is too large, got {sd[name].max():g}")
