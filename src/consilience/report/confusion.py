"""Confusion matrices side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from consilience.report.style import canvas, plain

SHORT = 3  # letters of names that fit side by side
TITLES = {"centre": "centre", "edges": "mean of the edges"}


def confusions(matrices: Mapping[str, np.ndarray], names: Sequence[str]) -> Figure:
    """A panel for the centre and one for the edges: rows are true labels, columns what they are taken for."""
    texts = [plain(name) for name in names]
    side, long = 0.42 * len(names) + 1.5, max(map(len, texts))
    # Inches: names that are written upwards and the caption, and on the left the same names.
    below, left = (0.7, 0.2) if long <= SHORT else (0.85 + 0.08 * long, 0.1 * long)
    figure, panels = canvas(1, len(matrices), side * len(matrices) + left, side + below, sharey=True)
    for axes, (who, matrix) in zip(panels, matrices.items(), strict=True):
        axes.imshow(np.sqrt(matrix), cmap="Blues", vmin=0, vmax=1)
        for (row, column), value in np.ndenumerate(matrix):
            if (percent := f"{100 * value:.0f}") != "0":
                colour = "white" if value > 0.3 else "black"
                axes.text(column, row, percent, ha="center", va="center", fontsize=7, color=colour)
        axes.set(xticks=range(len(names)), yticks=range(len(names)), title=TITLES[who], xlabel="taken for")
        axes.set_xticklabels(texts, rotation=0 if long <= SHORT else 90)
        axes.set_yticklabels(texts)
        axes.grid(False)
    panels[0].set_ylabel("true label")
    return figure
