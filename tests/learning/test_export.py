"""Belief files: what is written reads back, other libraries give the same outputs, anything else is one line."""

import json
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save

import consilience as cs
from consilience.errors import InputError
from consilience.learning import export

BLOCKS = re.findall(r"## (\w+)\n\n```python\n(.*?)```", Path("docs/export.md").read_text(encoding="utf-8"), re.DOTALL)
BEGINNING = re.search(r"```python\n(.*?)```", Path("docs/export.md").read_text(encoding="utf-8"), re.DOTALL)[1]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3)).astype(np.float32)
    return x, np.where(x.sum(1) > 0, "yes", "no")


@pytest.fixture(scope="module")
def fits(data, tmp_path_factory):
    """Networks with hidden layers, of both kinds of units, and one without."""
    x, y = data
    shares = {"north": (x[:20], y[:20]), "south": (x[20:], y[20:])}
    place = tmp_path_factory.mktemp("runs")
    models = {
        "deep": cs.mlp((3,), 2, (5, 5)),
        "sigmoid": cs.mlp((3,), 2, (4, 4), "sigmoid"),
        "flat": cs.mlp((3,), 2, ()),
    }
    return {
        name: cs.learn(model, shares, cs.ring(2), rounds=2, test=(x, y), progress=False, folder=place / name)
        for name, model in models.items()
    }


def test_what_is_written_reads_back(fits, tmp_path):
    file = fits["deep"].export(tmp_path / "b.safetensors", "south", "own")
    found, belief = export.read(file), fits["deep"].belief("south", "own")
    assert sorted(found.mean) == ["1.c", "1.w", "3.c", "3.w", "5.c", "5.w"]
    np.testing.assert_array_equal(found.mean["3.w"], belief.mean[3]["w"])
    np.testing.assert_array_equal(found.sd["5.c"], belief.sd[5]["c"])
    about = found.about
    assert about["model"] == {"kind": "mlp", "hidden": [5, 5], "activation": "relu"}
    assert about["likelihood"] == {"kind": "categorical"}
    assert (about["agent"], about["belief"], about["rounds"], about["format_version"]) == ("south", "own", 2, 1)
    assert (about["labels"], about["input_shape"], about["columns"]) == (["no", "yes"], [3], None)
    assert set(about["versions"]) == {"consilience", "jax", "numpy"}


def test_a_file_predicts_what_its_agent_predicts(fits, data, tmp_path):
    fit, (x, _) = fits["deep"], data
    found = export.read(fit.export(tmp_path / "b.safetensors", 1))
    mine, theirs = fit.predict(x, agent=1), fit.predict(x, agent=0, belief=found)
    np.testing.assert_allclose(theirs.probabilities, mine.probabilities, atol=1e-5)
    with pytest.raises(InputError, match=r"belief: is of another model than '.*': its model: .*, the run's: "):
        fits["flat"].predict(x, belief=found)


def test_learnt_noise_and_tables_are_told(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 2))
    shares = [(x[:15], x[:15].sum(1)), (x[15:], x[15:].sum(1))]
    fit = cs.learn(cs.mlp((2,), 1, ()), shares, cs.ring(2), rounds=1, folder=tmp_path / "run", precision="float64")
    found = export.read(fit.export(tmp_path / "b.safetensors"))
    assert sorted(found.mean) == ["log_noise", "network.1.c", "network.1.w"]
    assert found.mean["network.1.w"].dtype == np.float64
    np.testing.assert_array_equal(found.mean["network.1.w"], fit.belief().mean["network"][1]["w"])
    low, high = (fit.predict(x, belief=kind) for kind in ("pooled", found))
    np.testing.assert_allclose(low.prediction, high.prediction, atol=1e-6)


@pytest.mark.parametrize(("library", "block"), BLOCKS, ids=[name for name, _ in BLOCKS])
@pytest.mark.parametrize("network", ["deep", "sigmoid", "flat"])
def test_other_libraries_give_the_same_outputs(library, block, network, fits, data, tmp_path, monkeypatch):
    if library == "PyTorch":
        pytest.importorskip("torch")
    fit, (x, _) = fits[network], data
    monkeypatch.chdir(tmp_path)
    fit.export("belief.safetensors")
    known = {"x": x}
    exec(BEGINNING + block, known)
    ours = fit.learnt.model.apply(jax.tree.map(jnp.asarray, fit.belief().mean), jnp.asarray(x))
    np.testing.assert_allclose(np.asarray(known["outputs"]), np.asarray(ours), atol=1e-5)


def test_the_libraries_of_the_document():
    assert [name for name, _ in BLOCKS] == ["Flax", "Equinox", "PyTorch"]


@pytest.fixture
def written(fits, tmp_path):
    return fits["flat"].export(tmp_path / "b.safetensors")


def parts_of(file):
    with safe_open(file, framework="numpy") as opened:
        return {name: opened.get_tensor(name) for name in opened.keys()}, dict(opened.metadata())  # noqa: SIM118


def rewritten(file, arrays, texts):
    """As somebody would write it who knows of the checksum."""
    texts = {name: text for name, text in texts.items() if name != "sha256"}
    file.write_bytes(save(arrays, texts | {"sha256": json.dumps(export._checksum(arrays, texts))}))


def test_every_damaged_byte_is_noticed(written):
    content = written.read_bytes()
    rng = np.random.default_rng(0)
    for place in {*range(0, len(content), 97), *rng.integers(0, len(content), 20).tolist(), len(content) - 1}:
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        written.write_bytes(damaged)
        with pytest.raises(InputError) as wrong:
            export.read(written)
        assert str(wrong.value).startswith(f"belief: cannot read '{written}': ")
        assert "\n" not in str(wrong.value)
    for length in (0, 7, 100, len(content) - 1):
        written.write_bytes(content[:length])
        with pytest.raises(InputError, match="belief: cannot read"):
            export.read(written)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda arrays, texts: arrays.update({"sd.1.c": 0 * arrays["sd.1.c"]}), "sd.1.c must be greater than 0, got 0"),
        (lambda arrays, texts: arrays.update({"mean.1.c": np.inf + arrays["sd.1.c"]}), "1.c must be finite"),
        (lambda arrays, texts: arrays.pop("sd.1.c"), "must have mean.NAME and sd.NAME for each parameter"),
        (lambda arrays, texts: arrays.update({"sd.1.c": np.ones(7)}), "must have means and sds of one shape"),
        (lambda arrays, texts: arrays.update({"sd.1.c": np.ones(2, int)}), "must hold floats"),
        (lambda arrays, texts: texts.update(format_version="9"), "must have the format version 1, got 9"),
        (lambda arrays, texts: texts.update(format='"x"'), "it is not a belief that `consilience export` wrote"),
    ],
)
def test_what_cannot_be_used_is_refused(written, change, words):
    arrays, texts = parts_of(written)
    change(arrays, texts)
    rewritten(written, arrays, texts)
    with pytest.raises(InputError, match=re.escape(words)):
        export.read(written)


def test_a_parameter_of_another_shape(fits, written, data):
    arrays, texts = parts_of(written)
    rewritten(written, arrays | {"mean.1.w": np.ones((2, 9)), "sd.1.w": np.ones((2, 9))}, texts)
    with pytest.raises(InputError, match=r"its parameter 1.w has shape \(2, 9\), not \(2, 3\)"):
        fits["flat"].predict(data[0], belief=export.read(written))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("b.txt", "must end in .safetensors"),
        ("no/b.safetensors", "is no folder"),
        ("there.safetensors", "is there already"),
        ("folder.safetensors", "is a folder"),
    ],
)
def test_a_file_that_cannot_be_written(fits, tmp_path, name, words):
    (tmp_path / "there.safetensors").write_text("mine")
    (tmp_path / "folder.safetensors").mkdir()
    with pytest.raises(InputError, match=words):
        fits["flat"].export(tmp_path / name)
    assert (tmp_path / "there.safetensors").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 2
