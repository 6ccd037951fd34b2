"""Matrices and turns in files: what fits is read exactly, what does not is one line with its place and the rule."""

import numpy as np
import pytest

from consilience.command.theory import describe_turns
from consilience.errors import InputError
from consilience.network import (
    Asynchronous,
    Churn,
    Fixed,
    Gossip,
    Lossy,
    Replay,
    RotatingStar,
    Unheard,
    read_network,
    read_turns,
    ring,
    star,
    turns_as_csv,
)
from consilience.network.turn_files import TURNS_HEADER, is_turns_file

HEADER = ",".join(TURNS_HEADER) + "\n"


def refusal(read, file, field: str) -> str:
    """What is said of a file: one line, of a length that can be read, that names it."""
    with pytest.raises(InputError) as refused:
        read(file)
    said = str(refused.value)
    assert said.isprintable()
    assert len(said) < 400 + len(str(file))
    assert said.startswith(f"{field}: cannot read '{file}': ")
    return said


@pytest.mark.parametrize(
    ("name", "content", "names"),
    [
        ("W.csv", "0.5,0.5\n0.25,0.75\n", ()),
        ("W.csv", "\ufeffada,bob\r\n0.5,0.5\r\n\r\n0.25,0.75", ("ada", "bob")),
        ("W.csv", '"a, b", bob\n0.5, 0.5\n,\n0.25,0.75\n\n', ("a, b", "bob")),
        ("W.toml", 'W = [[0.5, 0.5], [0.25, 0.75]]\nnames = ["ada", "bob"]', ("ada", "bob")),
    ],
)
def test_matrices(tmp_path, name, content, names):
    (tmp_path / name).write_bytes(content.encode())
    network = read_network(tmp_path / name)
    np.testing.assert_array_equal(network.W.toarray(), [[0.5, 0.5], [0.25, 0.75]])
    assert network.names == names


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("W.csv", "", "W must have at least one row, got none"),
        ("W.csv", "ada,bob\n", "W must have at least one row, got none"),
        ("W.csv", "0.5,x\n0.5,0.5\n", "row 0, column 1 must be a number, got 'x'"),
        ("W.csv", "0.5,\n0.5,0.5\n", "row 0, column 1 must be a number, got ''"),
        ("W.csv", "0.5,0.5\0\n0.5,0.5\n", "row 0, column 1 must be a number"),
        ("W.csv", "0.5,nan\n0.5,0.5\n", "row 0, column 1 must be finite, got nan"),
        ("W.csv", "0.5,0.5\n0.5," + "9" * 5000, "row 1, column 1 must be finite, got inf"),
        ("W.csv", "0.5,0.5\n1\n", "must be square, it has 2 rows but row 1 has 1 entries"),
        ("W.csv", "0.5,0.5\n0.5,0.5,0\n", "must be square, it has 2 rows but row 1 has 3 entries"),
        ("W.csv", "a,b,c\n0.5,0.5\n0.5,0.5\n", "names must be one for each of 2 agents, got 3"),
        ("W.csv", "a,a\n0.5,0.5\n0.5,0.5\n", "names must be different, two agents are called 'a'"),
        ("W.csv", "a,\n0.5,0.5\n0.5,0.5\n", "the name of agent 1 must be a line of text, got ''"),
        ("W.csv", '"a\nb",c\n0.5,0.5\n0.5,0.5\n', "the name of agent 0 must be a line of text"),
        ("W.csv", '"0.5,0.5\n0.5,0.5\n', "line 2: unexpected end of data"),
        ("W.csv", "0.5," + "9" * 200_000 + "\n", "line 1: field larger than field limit"),
        ("W.csv", b"\xff\xfe\x00", "it is not UTF-8 text"),
        ("W.toml", "", "must have a key W that holds a list of rows"),
        ("W.toml", "W = 3", "must have a key W that holds a list of rows"),
        ("W.toml", "W = [1]", "must have a key W that holds a list of rows"),
        ("W.toml", "W = []", "W must have at least one row, got none"),
        ("W.toml", "W = [", "it is not TOML"),
        ("W.toml", "W = [[1\0]]", "it is not TOML"),
        ("W.toml", f"W = {'[' * 5000}", "it is not TOML"),
        ("W.toml", f"W = [[{'9' * 5000}]]", "it is not TOML"),
        ("W.toml", f"W = [[0x{'f' * 5000}]]", "row 0, column 0 must be a number, got something too long to show"),
        ("W.toml", f"W = [[{10**400}]]", "row 0, column 0 must be a number, got 1000"),
        ("W.toml", "W = [[nan]]", "row 0, column 0 must be finite, got nan"),
        ("W.toml", "W = [[true]]", "row 0, column 0 must be a number, got True"),
        ("W.toml", 'W = [["1"]]', "row 0, column 0 must be a number, got '1'"),
        ("W.toml", "W = [[2020-01-01]]", "row 0, column 0 must be a number, got datetime.date"),
        ("W.toml", "W = [[[1]]]", "row 0, column 0 must be a number, got [1]"),
        ("W.toml", "W = [[1]]\nnames = 'a'", "names must be a list of text"),
        ("W.toml", "W = [[1]]\nnames = [1]", "names must be a list of text"),
        ("W.toml", "W = [[1]]\nnames = ['']", "the name of agent 0 must be a line of text"),
        ("W.toml", "W = [[0, 1], [1, 0]]\nnames = ['a', 'a']", "names must be different, two agents are called 'a'"),
    ],
)
def test_bad_matrices_are_explained(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert message in refusal(read_network, tmp_path / name, "network")


def test_what_is_not_a_matrix_file_is_explained(tmp_path):
    with pytest.raises(InputError, match=r"is read from \.csv or \.toml, got"):
        read_network(tmp_path / "W.txt")
    assert "No such file" in refusal(read_network, tmp_path / "W.csv", "network")
    (tmp_path / "W.csv").mkdir()
    assert "Is a directory" in refusal(read_network, tmp_path / "W.csv", "network")
    with pytest.raises(InputError, match="embedded null byte"):
        read_network("a\0b.csv")


@pytest.mark.parametrize(
    "schedule",
    [
        Fixed(star(3, 0.5)),
        RotatingStar(6, 2),
        Gossip(ring(6)),
        Gossip(ring(6), matching=True),
        Lossy(Fixed(ring(6)), 0.4),
        Churn(Fixed(ring(6)), 3, 2),
        Churn(Gossip(ring(6)), 3, 2),
        Unheard(Fixed(ring(6))),
        Asynchronous(ring(6), [1, 1, 2, 2, 3, 5], delay=0.7, staleness=4, tick=0.5),
        Lossy(Asynchronous(ring(6), [1, 1, 2, 2, 3, 5], delay=3), 0.3),
    ],
    ids=lambda schedule: type(schedule).__name__,
)
def test_turns_are_read_as_they_were_written(tmp_path, schedule):
    (tmp_path / "turns.csv").write_text(turns_as_csv(schedule, 40))
    assert is_turns_file(tmp_path / "turns.csv")
    read = read_turns(tmp_path / "turns.csv")
    Replay(schedule.agents, read)
    for number, turn in enumerate(read, start=1):
        for ours, theirs in zip(turn, schedule.turn(number), strict=True):
            np.testing.assert_array_equal(ours, theirs)
            assert np.asarray(ours).dtype == np.asarray(theirs).dtype


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("1,1.0,0,learns,,\n3,3.0,0,learns,,\n", "round 2 is missing, round 3 is in its place"),
        ("1,1,0,learns,,\n2,2,0,learns,,\n1,2,0,learns,,\n", "round 3 is missing, round 1 is in its place"),
        ("0,1.0,0,learns,,\n", "line 2, column 'round' must be from 1 to 2147483647, got 0"),
        ("1.5,1.0,0,learns,,\n", "line 2, column 'round' must be a whole number, got '1.5'"),
        ("1_0,1.0,0,learns,,\n", "line 2, column 'round' must be a whole number, got '1_0'"),
        ("1,1.0,0,learns\n", "line 2 has 4 values, the header has 6"),
        ("1,1.0,0,learns,,,\n", "line 2 has 7 values, the header has 6"),
        ("1,nan,0,learns,,\n", "line 2, column 'time' must be finite, got nan"),
        ("1,,0,learns,,\n", "line 2, column 'time' must be a number, got ''"),
        ("1,2,0,learns,,\n2,1,0,learns,,\n", "round 2 ends at 1, before round 1 does"),
        ("1,1,0,learns,,\n1,2,1,learns,,\n", "line 3: round 1 ends at 1, got 2"),
        ("1,1,-1,learns,,\n", "line 2, column 'agent' must be from 0 to 2147483647, got -1"),
        (f"1,1,{2**31},learns,,\n", "line 2, column 'agent' must be from 0 to 2147483647, got 2147483648"),
        (f"1,1,{10**30},learns,,\n", "line 2, column 'agent' must be a whole number"),
        ("1,1," + "9" * 5000 + ",learns,,\n", "line 2, column 'agent' must be a whole number"),
        ("1,1,0.0,learns,,\n", "line 2, column 'agent' must be a whole number, got '0.0'"),
        ("1,1,,learns,,\n", "line 2, column 'agent' must be a whole number, got ''"),
        ("1,1,0,,,\n", "line 2, column 'hears' must be a whole number, got ''"),
        ("1,1,0,speaks,,\n", "line 2, column 'hears' must be a whole number, got 'speaks'"),
        ("1,1,0,-1,1.0,0\n", "line 2, column 'hears' must be from 0 to 2147483647, got -1"),
        ("1,1,0,1,,0\n", "line 2, column 'weight' must be a number, got ''"),
        ("1,1,0,1,inf,0\n", "line 2, column 'weight' must be finite, got inf"),
        ("1,1,0,1,1.0,\n", "line 2, column 'age' must be a whole number, got ''"),
        ("1,1,0,1,1.0,-1\n", "line 2, column 'age' must be from 0 to 0, got -1"),
        (f"1,1,0,1,1.0,{2**31 - 1}\n", "line 2, column 'age' must be from 0 to 0, got 2147483647"),
        ("1,1,0,learns,0.5,\n", "line 2: who learns has no weight and no age, got '0.5,'"),
        ("1,1,1,learns,,\n1,1,0,learns,,\n", "line 3: learners must be in order, got 0 after 1"),
        ("1,1,0,learns,,\n1,1,0,learns,,\n", "line 3: learners must be in order, got 0 after 0"),
        ("1,1,0,1,0.5,0\n1,1,0,1,0.5,0\n", "line 3: agent 0 hears agent 1 twice in a round"),
        ("1,1,,,,\n1,1,0,learns,,\n", "line 3: a round in which nobody does anything has one line"),
        ("1,1,0,learns,,\n1,1,,,,\n", "line 3: a round in which nobody does anything has one line"),
        ('1,1,0,"learns,,\n', "line 2: unexpected end of data"),
        (b"1,1,0,\xff,,\n", "it is not UTF-8 text"),
    ],
)
def test_bad_turns_are_explained(tmp_path, rows, message):
    file = tmp_path / "turns.csv"
    file.write_bytes(HEADER.encode() + (rows if isinstance(rows, bytes) else rows.encode()))
    assert is_turns_file(file)
    assert message in refusal(read_turns, file, "turns")


@pytest.mark.parametrize("content", ["", "\n", "round,time\n1,1\n", HEADER.replace("age", "old"), "0.5,0.5\n"])
def test_files_without_turns_are_told_apart(tmp_path, content):
    (tmp_path / "turns.csv").write_text(content)
    assert not is_turns_file(tmp_path / "turns.csv")
    assert "its first line must be round,time,agent" in refusal(read_turns, tmp_path / "turns.csv", "turns")


def test_what_is_not_a_file_of_turns_is_explained(tmp_path):
    for name in ("none.csv", ".", "a\0b"):
        assert not is_turns_file(tmp_path / name)
    assert "No such file" in refusal(read_turns, tmp_path / "none.csv", "turns")
    assert "Is a directory" in refusal(read_turns, tmp_path, "turns")


def test_turns_of_too_many_agents_have_no_theory(tmp_path):
    """Everybody's share in everybody's belief is a number for each pair."""
    (tmp_path / "turns.csv").write_text(f"{HEADER}1,1.0,{2**31 - 1},learns,,\n")
    with pytest.raises(InputError, match=r"turns: .* names 2,147,483,648 agents: needs about .* GB, there are"):
        describe_turns(str(tmp_path / "turns.csv"))
