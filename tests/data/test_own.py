"""A user's own files: what fits is read exactly, what does not is one line with its place and the rule."""

import gzip
import io
import zipfile
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from consilience.data import load_dataset
from consilience.errors import InputError
from consilience.machine import memory

SIX = "".join(f"{k},{k % 2}\n" for k in range(6))
GOOD = {"x": np.ones((4, 2)), "y": np.arange(4), "x_test": np.ones((2, 2)), "y_test": np.arange(2)}


def refusal(file) -> str:
    """What is said of a file: one line, of a length that can be read, that names it."""
    with pytest.raises(InputError) as refused:
        load_dataset(str(file))
    said = str(refused.value)
    assert said.isprintable()
    assert len(said) < 400 + len(str(file))
    assert said.startswith(f"dataset: cannot read '{file}': ")
    return said


def npz(folder, **arrays):
    np.savez(folder / "a.npz", **(GOOD | arrays))
    return folder / "a.npz"


def parquet(folder, **columns):
    table = {"x": np.arange(6.0), "label": ["a", "b", "c"] * 2} | columns
    pq.write_table(pa.table(table), folder / "a.parquet")
    return folder / "a.parquet"


def test_own_files(tmp_path):
    x, y = np.random.default_rng(0).normal(size=(10, 3)), np.array(["cat", "dog"] * 5)
    np.savez(tmp_path / "own.npz", x=x[:8], y=y[:8], x_test=x[8:], y_test=y[8:])
    table = {"a": x[:, 0], "b": x[:, 1], "label": y, "test": np.array([0] * 8 + [1] * 2)}
    pq.write_table(pa.table(table), tmp_path / "own.parquet")
    lines = ["a,b,label,test"] + [
        f"{r[0]},{r[1]},{label},{int(k >= 8)}" for k, (r, label) in enumerate(zip(x, y, strict=True))
    ]
    (tmp_path / "own.csv").write_text("\n".join(lines))
    for name, width in (("own.npz", 3), ("own.csv", 2), ("own.parquet", 2)):
        own = load_dataset(str(tmp_path / name))
        np.testing.assert_array_equal(own.inputs, x[:8, :width].astype(np.float32))
        np.testing.assert_array_equal(own.test_inputs, x[8:, :width].astype(np.float32))
        assert own.inputs.dtype == np.float32
        assert own.labels.dtype == np.int32
        assert own.labels.tolist() == [0, 1] * 4
        assert own.test_labels.tolist() == [0, 1]
        assert own.label_names == ("cat", "dog")


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("x,label\n" + SIX, ("0", "1")),
        ("\ufeffx,label\n" + SIX, ("0", "1")),
        (("x,label\n" + SIX).replace("\n", "\r\n"), ("0", "1")),
        ("\nx,label\n\n" + SIX + "\n\n", ("0", "1")),
        ("x,label\n" + SIX + '7,"a, ""b"""\n', ("0", "1", 'a, "b"')),
        ('"x\ny",label\n' + SIX, ("0", "1")),
        ("x,label,test\n1,a,0\n2,b,1\n", ("a", "b")),
    ],
)
def test_ways_to_write_csv(tmp_path, content, names):
    (tmp_path / "a.csv").write_bytes(content.encode())
    own = load_dataset(str(tmp_path / "a.csv"))
    assert own.label_names == names
    assert own.inputs[0] == (1 if "test" in content else 0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "it is empty"),
        ("x,label\n", "must have rows, got none"),
        ("x,label\n1,0\n", "must have 5 rows, one of them to test on"),
        ("label\n1\n", "must have a column of inputs"),
        ("label,test\n1,0\n", "must have a column of inputs"),
        ("x,y\n1,0\n", "must have a column 'label', got 'x', 'y'"),
        ("x,x,label\n1,2,3\n", "column 'x' is there twice"),
        ("x,label,label\n1,2,3\n", "column 'label' is there twice"),
        (",x,label\n0,1,2\n", "column 0 has no name"),
        ("x, label\n1, 2\n", "must not begin or end with a space, got ' label'"),
        ("x,label\n1\n", "line 2 has 1 values, the header has 2"),
        ("x,label\none,0\n", "line 2, column 'x' must be a number, got 'one'"),
        ("x,label\n,0\n", "line 2, column 'x' must be a number, got ''"),
        ("x,label\n1j,0\n", "line 2, column 'x' must be a number, got '1j'"),
        ("x,label\n1\0,0\n", "line 2, column 'x' must be a number"),
        ("x,label\n" + "q" * 9999 + ",0\n", "line 2, column 'x' must be a number"),
        ("x,label\n\n" + SIX + "nan,1\n", "line 9, column 'x' must be finite, got nan"),
        ("x,label\n" + "9" * 5000 + ",1\n" + SIX, "line 2, column 'x' must be finite, got inf"),
        ("x,label\n" + SIX + "1e300,1\n", "line 8, column 'x' must be at most 3.4e+38 in size, got 1e+300"),
        ("x,label\n" + SIX + "7,\n", "line 8, column 'label' must not be empty"),
        ("x,label\n" + SIX + "7, 1\n", "line 8, column 'label' must not begin or end with a space, got ' 1'"),
        ("x,label\n" + SIX + "7,NaN\n", "line 8, column 'label' must not be a missing or infinite number"),
        ("x,label\n" + SIX + '7,"a\nb"\n', "line 9, column 'label' must be one line of printable text"),
        ("x,label\n" + SIX + "7,a\u2028b\n", "line 8, column 'label' must be one line of printable text"),
        ("x,label\n" + SIX + "7,1\0\n", "line 8, column 'label' must be one line of printable text"),
        ("x,label\n" + SIX + "7," + "a" * 101 + "\n", "line 8, column 'label' must have at most 100 characters"),
        ("x,label\n" + SIX + "7," + "a" * 200_000 + "\n", "line 8: field larger than field limit"),
        ("x,label\n" + SIX + "7,1.0\n", "labels '1' and '1.0' are the same number"),
        ("x,label\n" + SIX + "7,a\n8,a_se\n", "labels 'a' and 'a_se' would share a column of the record"),
        ("x,label\n" + SIX + '7,"a\n', "line 8: unexpected end of data"),
        ("x,label,test\n1,1,nan\n", "line 2, column 'test' must be 0 or 1, got nan"),
        ("x,label,test\n1,1,2\n", "line 2, column 'test' must be 0 or 1, got 2"),
        ("x,label,test\n1,1,-1\n", "line 2, column 'test' must be 0 or 1, got -1"),
        ("x,label,test\n1,1,1\n", "column 'test' is 1 in every row, so there is none for training"),
        ("x,label,test\n1,1,0\n", "column 'test' is 0 in every row, so there is none for testing"),
        (gzip.compress(b"x,label\n1,1\n", mtime=0), "it is not UTF-8 text"),
    ],
)
def test_bad_csv_is_explained(tmp_path, content, message):
    file = tmp_path / "a.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert message in refusal(file)


@pytest.mark.parametrize(
    ("arrays", "names"),
    [
        ({}, ("0", "1", "2", "3")),
        ({"y": np.array([0.0, 1, 2, 3])}, ("0", "1", "2", "3")),
        ({"y": np.array([2**53, 2**53 + 1, 0, 1])}, ("0", "1", str(2**53), str(2**53 + 1))),
        ({"y": np.array([1, 2, 3, 10], np.uint64)}, ("0", "1", "2", "3", "10")),
        ({"y": np.array([b"a"] * 4), "y_test": np.array(["a", "b"])}, ("a", "b")),
        ({"y": np.array([True, False] * 2), "y_test": np.array([True, True])}, ("False", "True")),
        ({"x": np.ones(4), "x_test": np.ones(2)}, ("0", "1", "2", "3")),
        ({"x": np.ones((4, 2), np.longdouble)}, ("0", "1", "2", "3")),
    ],
)
def test_kinds_of_labels_and_inputs(tmp_path, arrays, names):
    own = load_dataset(str(npz(tmp_path, **arrays)))
    assert own.label_names == names
    assert own.inputs.dtype == np.float32


def test_bytes_stay_bytes(tmp_path):
    x = np.arange(8, dtype=np.uint8).reshape(4, 2)
    np.testing.assert_array_equal(load_dataset(str(npz(tmp_path, x=x, x_test=x[:2]))).inputs, x)
    assert load_dataset(str(npz(tmp_path, x=x, x_test=x[:2]))).inputs.dtype == np.uint8
    assert load_dataset(str(parquet(tmp_path, x=np.arange(6, dtype=np.uint8)))).inputs.dtype == np.uint8
    mixed = parquet(tmp_path, x=np.arange(6, dtype=np.uint8), z=np.arange(6.0))
    assert load_dataset(str(mixed)).inputs.tolist() == [[k, k] for k in (0, 1, 2, 3, 5)], "numbers, not images"


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.float64(3)}, "x must be an array with one entry for each example"),
        ({"x": np.ones((0, 2)), "y": np.ones(0)}, "x must have at least one example, got none"),
        ({"x": np.ones((4, 0)), "x_test": np.ones((2, 0))}, "x must have no empty axis, its shape is (4, 0)"),
        ({"x_test": np.ones((2, 3))}, "x and x_test must have examples of one shape, got 2 and 3"),
        ({"x_test": np.ones(2)}, "x and x_test must have examples of one shape, got 2 and single numbers"),
        ({"x": np.ones((4, 2), np.uint8)}, "x and x_test must both be bytes or neither, got uint8 and float64"),
        ({"x": np.array([["a", "b"]] * 4)}, "x must hold numbers, it holds <U1"),
        ({"x": np.ones((4, 2)) * 1j}, "x must hold numbers, it holds complex128"),
        ({"x": np.zeros((4, 2), "M8[s]")}, "x must hold numbers, it holds datetime64[s]"),
        ({"x": np.zeros(4, [("a", float)])}, "x must hold numbers, it holds [('a', '<f8')]"),
        ({"x": np.array([[None]] * 4, object)}, "Object arrays cannot be loaded"),
        ({"x": np.full((4, 2), 1e300)}, "x[0, 0] must be at most 3.4e+38 in size, got 1e+300"),
        ({"x_test": np.array([[1, 2], [3, np.inf]])}, "x_test[1, 1] must be finite, got inf"),
        ({"y": np.int64(3)}, "y must be an array with one entry for each example"),
        ({"y": np.ones((4, 1))}, "y must hold 4 labels, one for each example in x, got 4 × 1"),
        ({"y": np.ones(3)}, "y must hold 4 labels, one for each example in x, got 3"),
        ({"y": np.array([0, 0.5, 1, 2])}, "y[1] must be text or a whole number, held exactly, got 0.5"),
        ({"y": np.array([0, np.nan, 1, 2])}, "y[1] must be text or a whole number, held exactly, got nan"),
        ({"y_test": np.array([1e300, 0])}, "y_test[0] must be text or a whole number, held exactly, got 1e+300"),
        ({"y": np.array([2**63, 0, 1, 2], np.uint64)}, "y[0] must be text or a whole number, held exactly"),
        ({"y": np.ones(4) * 1j}, "y[0] must be text or a whole number, got complex128"),
        ({"y": np.zeros(4, "M8[s]")}, "y[0] must be text or a whole number, got datetime64[s]"),
        ({"y": np.array(list("0123"))}, "labels must be of one kind, got text for training and whole numbers to test"),
        ({"y": np.array([True] * 4)}, "labels must be of one kind, got booleans for training and whole numbers"),
        ({"y": np.array(["a", "b", "", "c"])}, "y[2] must not be empty"),
    ],
)
def test_bad_arrays_are_explained(tmp_path, arrays, message):
    assert message in refusal(npz(tmp_path, **arrays))


def archive(**members: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as members_of:
        for name, content in members.items():
            members_of.writestr(f"{name}.npy", content)
    return packed.getvalue()


def array_header(shape: tuple[int, ...]) -> bytes:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return header.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is not an archive"),
        (b"nothing", "it is not an archive"),
        (b"\x80\x04pickled", "it is not an archive"),
        (array_header((0,)), "it is not an archive"),
        (b"PK\x03\x04 and no more", "not a zip file"),
        (archive(x=b""), "must have x, y, x_test, y_test, it has no y, x_test, y_test"),
        (archive(**dict.fromkeys(GOOD, b"hello")), "x must be an array"),
        (archive(**dict.fromkeys(GOOD, array_header((10**13,)))), ""),
        (archive(**dict.fromkeys(GOOD, array_header((10**30,)))), ""),
    ],
)
def test_bad_archives_are_explained(tmp_path, content, message):
    (tmp_path / "a.npz").write_bytes(content)
    assert message in refusal(tmp_path / "a.npz")


@pytest.mark.parametrize("kind", ["npz", "parquet"])
def test_damaged_files_are_refused_or_whole(tmp_path, kind):
    """Bytes changed at random: a refusal or a dataset, and nothing else."""
    file = npz(tmp_path) if kind == "npz" else parquet(tmp_path)
    whole, rng = file.read_bytes(), np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(whole)
        for place in rng.integers(len(whole), size=3):
            damaged[place] = rng.integers(256)
        file.write_bytes(damaged[: rng.integers(len(whole))] if rng.random() < 0.2 else damaged)
        with suppress(InputError):
            load_dataset(str(file))


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ({"label": [10, 9, 8] * 2}, ("8", "9", "10")),
        ({"label": [1.0, 2.0] * 3}, ("1", "2")),
        ({"label": [True, False] * 3}, ("False", "True")),
        ({"label": pa.array(["b", "a"] * 3).dictionary_encode()}, ("a", "b")),
        ({"x": [True, False] * 3}, ("a", "b", "c")),
        ({"x": [Decimal("1.5")] * 6}, ("a", "b", "c")),
        ({"x": pa.array([1.5, 2.5] * 3).dictionary_encode()}, ("a", "b", "c")),
        ({"test": [True, False] * 3}, ("a", "b", "c")),
    ],
)
def test_kinds_of_parquet_columns(tmp_path, columns, names):
    own = load_dataset(str(parquet(tmp_path, **columns)))
    assert own.label_names == names
    assert own.inputs.dtype == np.float32


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"x": [date(2020, 1, 1)] * 6}, "column 'x' must hold numbers, it holds date32[day]"),
        ({"x": [datetime(2020, 1, 1)] * 6}, "column 'x' must hold numbers, it holds timestamp[us]"),
        ({"x": [timedelta(1)] * 6}, "column 'x' must hold numbers, it holds duration[us]"),
        ({"x": ["1"] * 6}, "column 'x' must hold numbers, it holds string"),
        ({"x": [[1]] * 6}, "column 'x' must hold numbers, it holds list"),
        ({"x": pa.nulls(6)}, "row 0, column 'x' has no value"),
        ({"x": [1, 2, None] * 2}, "row 2, column 'x' has no value"),
        ({"x": [1.0, np.nan] * 3}, "row 1, column 'x' must be finite, got nan"),
        ({"x": [1e300] * 6}, "row 0, column 'x' must be at most 3.4e+38 in size"),
        ({"label": ["a", None] * 3}, "row 1, column 'label' has no value"),
        ({"label": pa.array(["a", None] * 3).dictionary_encode()}, "row 1, column 'label' has no value"),
        ({"label": [1.0, np.nan] * 3}, "row 1, column 'label' must be text or a whole number, held exactly, got nan"),
        ({"label": [1.0, 2.5] * 3}, "row 1, column 'label' must be text or a whole number, held exactly, got 2.5"),
        ({"label": [date(2020, 1, 1)] * 6}, "column 'label' must hold numbers or text, it holds date32[day]"),
        ({"label": [b"a"] * 6}, "column 'label' must hold numbers or text, it holds binary"),
        ({"test": [0, 1, 2] * 2}, "row 2, column 'test' must be 0 or 1, got 2"),
        ({"test": ["no", "yes"] * 3}, "column 'test' must hold numbers, it holds string"),
        ({"__index_level_0__": range(6)}, "column '__index_level_0__' is the index of a data frame"),
    ],
)
def test_bad_parquet_is_explained(tmp_path, columns, message):
    assert message in refusal(parquet(tmp_path, **columns))


@pytest.mark.parametrize("file", [npz, parquet], ids=["npz", "parquet"])
def test_what_does_not_fit_into_memory_is_not_unpacked(tmp_path, monkeypatch, file):
    packed = file(tmp_path)
    monkeypatch.setattr(memory, "available", lambda: 100)
    assert "unpacked: needs about" in refusal(packed)


def test_parquet_columns_of_one_name_are_refused(tmp_path):
    twice = pa.Table.from_arrays([pa.array([1])] * 3, ["x", "x", "label"])
    pq.write_table(twice, tmp_path / "a.parquet")
    assert "column 'x' is there twice" in refusal(tmp_path / "a.parquet")


@pytest.mark.parametrize("name", ["a.csv", "a.npz", "a.parquet"])
def test_what_is_not_a_file_is_explained(tmp_path, name):
    assert "No such file" in refusal(tmp_path / name)
    (tmp_path / name).mkdir()
    assert "Is a directory" in refusal(tmp_path / name)
    with pytest.raises(InputError, match=r"cannot read 'b\\x00a\.[a-z]+': embedded null byte"):
        load_dataset(f"b\0{name}")
