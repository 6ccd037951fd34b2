"""Where compiled programs are kept."""

from pathlib import Path

from consilience.runtime import cache_folder


def test_the_cache_is_the_users_own(monkeypatch):
    monkeypatch.setenv("CONSILIENCE_CACHE", "/somewhere")
    assert cache_folder() == Path("/somewhere")
    monkeypatch.delenv("CONSILIENCE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_folder() == Path("/caches/consilience")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "consilience"
