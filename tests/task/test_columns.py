"""Descriptions of columns: what is allowed, what is refused in one line, and what the design matrix is."""

import tomllib

import pytest

from consilience.described.fields import Described
from consilience.described.settings import to_toml, validate
from consilience.errors import InputError
from consilience.task.columns import Category, Columns, Feature, Label, Number, features, predicted


class Task(Described):
    columns: Columns


WHOLE = """
[columns.patient]
kind = "ignore"
[columns."mean radius"]
kind = "number"
unit = "mm"
low = 0
high = 40
centre = 14.1
scale = 3.5
missing = "centre"
[columns.site]
kind = "category"
levels = ["left", "right", "both"]
reference = "right"
missing = "both"
[columns.diagnosis]
kind = "label"
levels = ["benign", "malignant"]
"""


def columns(text):
    return validate(Task, tomllib.loads(text)).columns


def test_what_the_design_matrix_is():
    described = columns(WHOLE)
    assert features(described) == [
        Feature("mean radius", None, 14.1, 3.5, "mm", None),
        Feature("site", "left", 0, 1, "", "right"),
        Feature("site", "both", 0, 1, "", "right"),
    ]
    assert [feature.name for feature in features(described)] == ["mean radius", "site = left", "site = both"]
    assert predicted(described) == ("diagnosis", Label(levels=["benign", "malignant"]))
    assert features({"x": Category(levels=["a", "b"])}) == [Feature("x", "b", 0, 1, "", "a")]


def test_a_description_reads_back_as_itself():
    described = validate(Task, tomllib.loads(WHOLE))
    again = columns(to_toml(described))
    assert again == described.columns
    assert list(again) == list(described.columns), "the order of columns is the order of features"
    assert described.pinned() == described


ANSWER = '[columns.y]\nkind = "label"\nlevels = ["0", "1"]\n'
X = '[columns.x]\nkind = "number"\n'
TARGET = X + '[columns.t]\nkind = "target"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (X, "columns: should have exactly one column of kind label or target, there is none"),
        (TARGET + ANSWER, "columns: should have exactly one column of kind label or target, they are 't', 'y'"),
        (ANSWER, "columns: should have a column of kind number or category, there is none"),
        ('[columns." x"]\nkind = "number"\n' + ANSWER, "columns: a column's name must not begin or end with a space"),
        ('[columns.""]\nkind = "number"\n' + ANSWER, "columns: column 0 has no name"),
        ('[columns.x]\nkind = "numbr"\n' + ANSWER, "columns.x: unknown kind 'numbr'; did you mean 'number'?"),
        (
            "[columns.x]\nlow = 1\n" + ANSWER,
            "columns.x.kind: is required; known: category, ignore, label, number, target",
        ),
        (X + "scale = 0\n" + ANSWER, "columns.x.scale: should be greater than 0, got 0"),
        (X + "centre = nan\n" + ANSWER, "columns.x.centre: should be a finite number, got nan"),
        (X + "low = 2\nhigh = 1\n" + ANSWER, "columns.x.high: should be at least low (2), got 1"),
        (X + 'missing = "mean"\n' + ANSWER, "columns.x.missing: should be 'refuse', 'centre' or a number, got 'mean'"),
        (X + "missing = true\n" + ANSWER, "columns.x.missing: should be 'refuse', 'centre' or a number, got True"),
        (X + "high = 9\nmissing = 99\n" + ANSWER, "columns.x.missing: should be at most 9, got 99"),
        (X + "missing = inf\n" + ANSWER, "columns.x.missing: should be 'refuse', 'centre' or a number, got inf"),
        (X + "levels = []\n" + ANSWER, "columns.x.levels: no such field; known: centre, high, kind, low"),
        (X + '[columns.y]\nkind = "label"\n', "columns.y.levels: is required"),
        (X + ANSWER.replace('"0", ', ""), "columns.y.levels: should have at least 2 entries, got ['1']"),
        (X + ANSWER.replace('"0"', "0"), "columns.y.levels.0: should be text, got 0"),
        (X + ANSWER.replace('"0"', '"1"'), "columns.y.levels: a level should be named once, '1' is there twice"),
        (X + ANSWER.replace('"0"', '"1.0"'), "columns.y.levels: labels '1.0' and '1' are the same number"),
        (X + ANSWER.replace('"0"', '""'), "columns.y.levels: a level must not be empty, one is ''"),
        (X + ANSWER.replace('"0"', '"no "'), "columns.y.levels: a level must not begin or end with a space"),
        (
            TARGET + "counts = true\ncentre = 3\n",
            "columns.t.counts: should be false where there is a centre or a scale",
        ),
    ],
)
def test_what_is_refused(text, message):
    with pytest.raises(InputError) as refused:
        columns(text)
    assert str(refused.value).startswith(message)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("field", ["reference", "missing"])
def test_a_level_that_is_named_is_there(field):
    described = '[columns.x]\nkind = "category"\nlevels = ["a", "b"]\n'
    with pytest.raises(InputError, match=rf"columns.x.{field}: should be .*one of the levels 'a', 'b', got 'c'"):
        columns(described + f'{field} = "c"\n' + ANSWER)
    assert columns(described + f'{field} = "b"\n' + ANSWER)


def test_what_a_missing_number_may_mean():
    assert Number(missing=3).missing == 3.0
    assert Number().missing == "refuse"
