"""Reports: figures from a run's record, and nothing but the record."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from consilience.config import RunConfig
from consilience.record import Record
from consilience.report import linear_regression, theorem_1

FIGURES: dict[str, Callable[[Any, Record, Path], list[Path]]] = {
    "linear-regression": linear_regression.draw,
    "theorem-1": theorem_1.draw,
}


def draw(config: RunConfig, record: Record, folder: Path) -> list[Path]:
    """Draw the figures of a run into a folder; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    return FIGURES[config.experiment](config, record, folder)
