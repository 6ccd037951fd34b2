"""Reports: figures from a run's record, and nothing but the record."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from consilience.config import RunConfig
from consilience.experiments import module_of
from consilience.record import Record
from consilience.report import changing_rates, classification, linear_regression, theorem_1

FIGURES: dict[str, Callable[[Any, Record, Path], list[Path]]] = {
    "linear_regression": linear_regression.draw,
    "theorem_1": theorem_1.draw,
    "changing_rates": changing_rates.draw,
    "classification": classification.draw,
}


def draw(config: RunConfig, record: Record, folder: Path) -> list[Path]:
    """Draw the figures of a run into a folder; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    kind = module_of(config.experiment).__name__.rpartition(".")[2]
    return FIGURES[kind](config, record, folder)
