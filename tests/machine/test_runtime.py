"""How JAX is set up, and where compiled programs are kept."""

import os
import sys
from pathlib import Path

import pytest

from consilience.errors import InputError
from consilience.machine import runtime
from consilience.machine.runtime import cache_folder, check_flags, use_all_cores


def test_the_cache_is_the_users_own(monkeypatch):
    monkeypatch.setenv("CONSILIENCE_CACHE", "/somewhere")
    assert cache_folder() == Path("/somewhere")
    monkeypatch.delenv("CONSILIENCE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_folder() == Path("/caches/consilience")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "consilience"


def test_large_pages_restart_the_command_and_nothing_else(monkeypatch):
    started = []
    monkeypatch.setattr(runtime.os, "execv", lambda program, words: started.append(words))
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    runtime.use_large_pages()  # this is a test, not the command
    assert not started
    monkeypatch.setattr(sys, "orig_argv", ["python", "/usr/bin/consilience", "run", "star-digits"])
    runtime.use_large_pages()
    assert started == [[sys.executable, "/usr/bin/consilience", "run", "star-digits"]]
    runtime.use_large_pages()  # the new process has the setting and goes on
    assert len(started) == 1
    monkeypatch.delenv("GLIBC_TUNABLES")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--xla_nonsense=1", "Unknown flag in XLA_FLAGS: --xla_nonsense=1"),
        ("--xla_force_host_platform_device_count=x", "Couldn't interpret value x"),
        ("--xla_force_host_platform_device_count=0", "does not start with '--xla_force_host"),
        ("nowhere", "'nowhere' is neither flags nor a file of flags"),
    ],
)
def test_flags_that_would_abort_the_process_are_one_line(monkeypatch, tmp_path, flags, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XLA_FLAGS", flags)
    with pytest.raises(InputError, match=said) as refused:
        check_flags()
    assert str(refused.value).startswith("XLA_FLAGS: ")
    assert len(str(refused.value).splitlines()) == 1


def test_flags_in_a_file_stay_and_ours_are_added(monkeypatch, tmp_path):
    file = tmp_path / "flags"
    file.write_text("--xla_force_host_platform_device_count=3\n--xla_cpu_enable_fast_min_max=false\n")
    monkeypatch.setenv("XLA_FLAGS", str(file))
    monkeypatch.setenv("CONSILIENCE_CACHE", str(tmp_path / "cache"))
    check_flags()
    with monkeypatch.context() as patch:
        patch.delattr(runtime, "subprocess")
        check_flags()  # tried once is enough
    use_all_cores()
    assert os.environ["XLA_FLAGS"].split() == [*file.read_text().split(), runtime.FUSION_FLAG]


def test_a_process_among_others_has_one_device_and_as_many_threads_as_it_may(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", f"{runtime.COUNT_FLAG}=2 {runtime.FUSION_FLAG}")
    monkeypatch.setenv("NPROC", "7")
    runtime.use_cores(1)
    assert sorted(os.environ["XLA_FLAGS"].split()) == sorted([f"{runtime.COUNT_FLAG}=1", runtime.FUSION_FLAG])
    assert os.environ["NPROC"] == "1"
