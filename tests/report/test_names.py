"""Figures of a user's own data: whatever the labels are called, however many there are, and with one agent too."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from consilience.experiments.images import figures
from consilience.experiments.images.arms import Config
from consilience.runs.record import Record

pytestmark = pytest.mark.usefixtures("real_figures")
METRICS = ("accuracy", "pooled_accuracy", "time")


def record_of(names: tuple[str, ...], agents: int) -> Record:
    """Two rounds of an arm in which nothing happens."""
    columns = {name: np.full(2 * agents, 0.5) for name in (*METRICS, *(f"confidence_{name}" for name in names))}
    rounds, agent = np.repeat([1, 2], agents), np.tile(np.arange(agents), 2)
    counts = np.arange(agents * len(names)).reshape(agents, len(names)) % 3
    shares = {"label_names": list(names), "counts": counts.tolist()}
    return Record({"arm": np.full(2 * agents, "_arm"), "round": rounds, "agent": agent, **columns}, shares)


@pytest.mark.parametrize(
    ("names", "agents"),
    [
        (("$x", "y$", "$\\frac$", "$$"), 3),
        (("_hidden", "\\$", "%d", "{}"), 3),
        (("猫", "🐈", "Ψ", "a^b_c"), 3),
        (("a" * 100, "b" * 100, "c", "d"), 3),
        (("cat", "dog"), 1),
        (tuple(map(str, range(1000))), 3),
    ],
    ids=["formulas", "marks", "scripts", "long", "one agent", "many"],
)
def test_every_name_can_be_drawn(names, agents, tmp_path, monkeypatch):
    texts = []
    saved = Figure.savefig

    def kept(figure, file, **options):
        saved(figure, file, **options)
        texts.extend(text.get_text() for legend in figure.legends for text in legend.get_texts())

    monkeypatch.setattr(Figure, "savefig", kept)
    clocks = {"kind": "complete", "agents": agents, "changes": {"clocks": {}}}
    config = Config(experiment="own", networks={"_arm": clocks}, watched=list(names[:4]), validation=0)
    for file in figures.draw(config, record_of(names, agents), tmp_path):
        assert file.stat().st_size > 1000
    drawn = [text for text in texts if "(known)" in text or "(never seen)" in text]
    assert len(drawn) == min(agents, 2) * min(len(names), 4), "nothing is left out of the legend"
