"""A log says what has changed, and stays small whatever happens for how long."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from consilience.engines.peers.log import LARGEST, SELDOM, Log

DAY = 86_400


class Clock:
    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds

    def wall(self):
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def log(tmp_path, clock):
    return Log(tmp_path / "log.jsonl", clock, clock.wall)


def lines(log):
    return [json.loads(line) for line in log.file.read_text().splitlines()]


def bytes_of(log):
    return sum(file.stat().st_size for file in log.file.parent.iterdir())


def test_a_change_is_written_with_its_time(log, clock):
    clock.seconds = 3.0
    log("greeted", name="east", round=3)
    assert lines(log) == [{"time": "2026-01-01T00:00:03+00:00", "what": "greeted", "name": "east", "round": 3}]


def test_rounds_are_written_where_others_are_missed(log, clock):
    for number, missed in enumerate([[], [], ["east"], ["east"], ["east", "west"], []], 1):
        clock.seconds += SELDOM / 100
        log("round", round=number, heard=[], missed=missed, scores={})
    assert [line["round"] for line in lines(log)] == [1, 3, 5]
    clock.seconds += SELDOM
    log("round", round=7, heard=[], missed=[], scores={})
    assert lines(log)[-1]["round"] == 7


@pytest.mark.parametrize("neighbours", [1, 8])
def test_a_day_with_neighbours_that_are_down_or_come_and_go_is_less_than_a_megabyte(log, clock, neighbours):
    """More than once in ten minutes is as good as every second."""
    for second in range(0, DAY, 30):
        clock.seconds = float(second)
        gone = [f"neighbour-{k}" for k in range(neighbours)]
        for name in gone:
            log("greeted", name=name, round=second, epoch=1, version="0.1.0")
            log("parted", name=name, why="the connection was lost: nobody answers at neighbour.example.org:7600")
        log("round", round=second, heard=["west"], missed=gone if second % 60 else gone[1:], scores={"accuracy": 0.9})
    assert bytes_of(log) < 1 << 20
    assert sum(line.get("also", 0) for line in lines(log)) > DAY / 60  # what was not written was counted


def test_words_that_are_never_the_same_do_not_fill_a_disk(log, clock):
    for number in range(16_000):
        log("trouble", why=f"something new, {number} {'x' * 100}")
    assert bytes_of(log) < 2.1 * LARGEST
    assert len(log._written) <= 1000


def test_a_disk_that_is_full_costs_lines_only(log):
    log.file.mkdir()
    log("greeted", name="east")
