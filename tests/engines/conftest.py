"""Engines are tested on all devices."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def _on_all_devices(all_devices):
    pass
