"""What several processes need is compiled by one of them, and nobody waits for ever."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from consilience.machine import compiling
from consilience.machine.compiling import one_at_a_time


def test_who_comes_second_goes_on_when_the_first_has_done(tmp_path):
    file, events = tmp_path / "compiling" / "program", []

    def second():
        with one_at_a_time(file):
            events.append("second")

    with ThreadPoolExecutor(1) as beside:
        with one_at_a_time(file):
            waiting = beside.submit(second)
            with pytest.raises(TimeoutError):
                waiting.result(3 * compiling.GLANCE)
            events.append("first")
        waiting.result(10)
    assert events == ["first", "second"]
    assert list(file.parent.iterdir()) == []


def test_nobody_waits_for_ever_and_a_folder_that_cannot_be_made_is_no_reason_to_fail(tmp_path):
    (tmp_path / "file").write_text("")
    with one_at_a_time(tmp_path / "a"), one_at_a_time(tmp_path / "a", patience=2 * compiling.GLANCE):
        pass
    with one_at_a_time(tmp_path / "file" / "a"):
        pass


STORED = """
import jax, sys
from pathlib import Path
from consilience.machine.compiling import compiled
from consilience.machine.runtime import keep_compiled_programs
keep_compiled_programs()
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
found = []
jax.monitoring.register_event_listener(lambda event, **_: found.append(event))
print(float(compiled(jax.jit(lambda x: x * 3).lower(2.0))(2.0)))
print(sum("cache_hits" in event for event in found))
"""


def test_what_one_process_has_compiled_another_finds(tmp_path, monkeypatch):
    monkeypatch.setenv("CONSILIENCE_CACHE", str(tmp_path))
    told = [
        subprocess.run([sys.executable, "-c", STORED], capture_output=True, text=True, check=True).stdout.split()
        for _ in range(2)
    ]
    assert told == [["6.0", "0"], ["6.0", "1"]]
