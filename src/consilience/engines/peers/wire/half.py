"""Mean-field beliefs in half the bytes: a weight's mean and sd in one word of 32 bits.

Twelve bits hold log₂ σ in steps of 1/128 from −20 up, twenty hold the mean in steps of σ/256. What is lost is then the
same for every weight, whatever its σ: with σ̂ the rounded sd, |log σ̂/σ| ≤ log 2 / 256 and |μ̂ − μ| ≤ σ̂/512, so

    KL(N(μ, σ²) ‖ N(μ̂, σ̂²)) ≤ (log 2 / 256)² + ½ / 512² + O(10⁻⁸) < 10⁻⁵.

Means as plain float16, with eleven bits whatever σ is, would not do: at σ = .001 a mean near 2 moves by half an sd.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from consilience.engines.peers.wire.schema import Leaf, Schema

PER_OCTAVE = 128  # steps of log₂ σ
PER_SD = 256  # steps of the mean
LOWEST = -20  # the smallest log₂ σ
SD_STEPS = 1 << 12
MIDDLE = 1 << 19  # the code of a mean of 0
FURTHEST = MIDDLE - 1
FORMS = ("exact", "half")
WORD = "half"  # what a belief's two arrays are sent as

# What each step of log₂ σ stands for: σ, as 1/σ² and 1/σ.
_LOG_SD = np.arange(SD_STEPS) / PER_OCTAVE + LOWEST
_PRECISION = np.exp2(-2 * _LOG_SD)
_ROOT = np.exp2(-_LOG_SD)


def on_wire(schema: Schema, form: str) -> Schema:
    """What a message of this schema holds when it is sent in this form.

    >>> belief = Schema.of({".precision": np.ones(3, np.float32), ".precision_mean": np.ones(3, np.float32)})
    >>> on_wire(belief, "half")
    Schema(leaves=(Leaf(name='.half', dtype='uint32', shape=(3,)),))
    """
    if form not in FORMS:
        raise ValueError(f"there is no form '{form}', only {' and '.join(FORMS)}")
    if form == "exact":
        return schema
    pairs = _pairs({leaf.name: leaf.shape for leaf in schema.leaves})
    if not pairs:
        raise ValueError(f"only beliefs with independent coordinates can be sent in half the bytes, not {schema}")
    words = {
        name: Leaf(word, "uint32", leaf.shape) for leaf in schema.leaves for name, word in pairs if leaf.name == name
    }
    means = {f"{name}_mean" for name, _ in pairs}
    return Schema(tuple(words.get(leaf.name, leaf) for leaf in schema.leaves if leaf.name not in means))


def halved(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Beliefs as words; arrays that are no part of one stay as they are. Precisions must be positive and finite.

    What a word cannot say is said less surely: σ below 2⁻²⁰ is sent as that, and where |μ| is more than 2,000 σ, σ is
    sent as wide as |μ| needs. A σ of 2¹² and more is sent as nearly 2¹², and a mean that would need more is a mistake.

    >>> words = halved({"precision": np.array([4.0]), "precision_mean": np.array([1.0])})
    >>> restored(words, Schema.of({"precision": np.ones(1), "precision_mean": np.ones(1)}))
    {'precision': array([4.]), 'precision_mean': array([1.])}
    """
    sent = dict(arrays)
    for name, word in _pairs({name: array.shape for name, array in arrays.items()}):
        precision, shift = np.asarray(sent.pop(name)), np.asarray(sent.pop(f"{name}_mean"))
        with np.errstate(all="ignore"):  # what is no belief is refused at the end
            step = _step(-0.5 * np.log2(precision))
            mean = np.divide(shift, precision, dtype=np.float64)
            place = np.rint(mean * PER_SD * _ROOT[step])
        for far in np.nonzero(np.abs(place) > FURTHEST):
            step[far] = _step(np.log2(np.abs(mean[far]) * PER_SD / FURTHEST), np.ceil)
            place[far] = np.rint(mean[far] * PER_SD * _ROOT[step[far]])
        if not ((precision > 0) & np.isfinite(precision) & (np.abs(place) <= FURTHEST)).all():
            raise ValueError(f"{name}: only positive precisions and means below 8e6 can be sent in half the bytes")
        sent[word] = step.astype(np.uint32) << 20 | (place + MIDDLE).astype(np.uint32)
    return sent


def restored(arrays: Mapping[str, np.ndarray], schema: Schema) -> dict[str, np.ndarray]:
    """The beliefs that words stand for, in the types of the schema. Every word stands for one."""
    heard = dict(arrays)
    types = {leaf.name: leaf.dtype for leaf in schema.leaves}
    for name, word in _pairs({leaf.name: leaf.shape for leaf in schema.leaves}):
        words = heard.pop(word)
        step, place = words >> 20, (words & (2 * MIDDLE - 1)).astype(np.int32) - MIDDLE
        heard[name] = _PRECISION.astype(types[name])[step]
        shift = (_ROOT / PER_SD).astype(types[f"{name}_mean"])[step]
        heard[f"{name}_mean"] = np.multiply(shift, place, out=shift, dtype=shift.dtype, casting="same_kind")
    return heard


def _step(log_sd: np.ndarray, rounded: Any = np.rint) -> Any:
    """The step of the scale of log₂ σ that is nearest, or next; the first or the last one beyond its ends."""
    return np.clip(np.nan_to_num(rounded((log_sd - LOWEST) * PER_OCTAVE)), 0, SD_STEPS - 1).astype(np.int32)


def _pairs(shapes: Mapping[str, tuple[int, ...]]) -> list[tuple[str, str]]:
    """The precisions of beliefs with independent coordinates, and what each is called together with its mean."""
    return [
        (name, name.removesuffix("precision") + WORD)
        for name, shape in shapes.items()
        if name.endswith("precision") and shapes.get(f"{name}_mean") == shape
    ]
