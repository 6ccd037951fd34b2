"""How JAX is set up, and where compiled programs are kept."""

import sys
from pathlib import Path

from consilience import runtime
from consilience.runtime import cache_folder


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
