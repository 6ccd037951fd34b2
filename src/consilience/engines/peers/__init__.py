"""Peers: the agents of one task on hosts of their own; only beliefs travel, and nobody is trusted blindly."""

from importlib.util import find_spec

from consilience.errors import InputError

NEEDED = ("cryptography", "grpc")

if lacking := [name for name in NEEDED if find_spec(name) is None]:
    raise InputError(f"peers: need {' and '.join(lacking)}, not installed here; pip install 'consilience[peers]'")
