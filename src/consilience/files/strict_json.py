"""JSON as its standard has it, which every reader understands: it knows no infinity and no NaN."""

from __future__ import annotations

import json
import math
from typing import Any


def strict_json(value: Any, indent: int | None = 2) -> str:
    """A value as JSON text, indented or in one line; numbers that are not finite are null.

    >>> strict_json(float("inf"))
    'null'
    """
    return json.dumps(_finite(value), indent=indent, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
