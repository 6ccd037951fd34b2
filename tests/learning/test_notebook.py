"""In a notebook: a bar that fills in one place, an interruption and the same call again, values that read well."""

import re

import nbformat
import pytest
from children import heard, quickly
from nbclient import NotebookClient

BEGIN = """
import os, signal
import numpy as np
import consilience as cs
from consilience.learning import from_arrays

x = np.linspace(-1, 1, 40)[:, None]
y = np.where(x[:, 0] > 0, "yes", "no")
shares = [(x[::2], y[::2]), (x[1::2], y[1::2])]

def learn(folder):
    return cs.learn(cs.mlp((1,), 2, hidden=()), shares, cs.ring(2), rounds=6, checkpoint_every=6, folder=folder)

whole = learn("whole")
"""
INTERRUPT = """
carry_on = from_arrays.run.carry_on

def interrupted(folder, on_round, asked, **named):
    def on_round_then(done, words):
        on_round(done, words)
        if done == 2:
            os.kill(os.getpid(), signal.SIGINT)  # Kernel → Interrupt
    return carry_on(folder, on_round_then, asked, **named)

from_arrays.run.carry_on = interrupted
learn("stopped")
"""
AGAIN = """
from_arrays.run.carry_on = carry_on
fit = learn("stopped")
"""
SAME = "open('stopped/record.csv').read() == open('whole/record.csv').read()"
CELLS = [BEGIN, INTERRUPT, AGAIN, SAME, "fit.summary()", "fit.record", "fit.predict(x[:3], agent=1)"]
CODES = re.compile(r"\x1b\[[\d;]*m")


def kinds(outputs):
    return [output.output_type for output in outputs]


def text(output):
    return CODES.sub("", output.data["text/plain"]).strip()


@pytest.mark.soak
def test_a_notebook(tmp_path, monkeypatch):
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "jupyter"))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    place = {"metadata": {"path": str(tmp_path)}}
    with heard():
        NotebookClient(notebook, kernel_name="python3", allow_errors=True, resources=place).execute(env=quickly())
    begin, interrupt, again, same, summary, record, prediction = (cell.outputs for cell in notebook.cells)

    assert kinds(begin) == kinds(again) == ["display_data"]  # and no warning
    for bar in (*begin, *again):
        assert re.search(r"━ 6/6 rounds  accuracy [\d.]+%", text(bar))
        assert "━" in bar.data["text/html"]
    assert kinds(interrupt) == ["display_data", "error"]
    assert "4/6 rounds" in text(interrupt[0])
    assert interrupt[1].ename == "KeyboardInterrupt"
    assert interrupt[1].evalue == "stopped after round 4 of 6; the same call carries it on"
    assert text(same[0]) == "True"

    assert kinds(summary) == ["display_data", "execute_result"]
    assert text(summary[0]).startswith("After 6 rounds, by 8 rows that agents held out")
    assert text(summary[1]).startswith("<scores by name: experiment, rounds,")
    assert text(record[0]).startswith("Record(together: 2 recorded rounds from 5 to 6, 2 agents, ")
    header, *rows = text(prediction[0]).splitlines()
    assert header.split() == ["prediction", "p_no", "p_yes", "aleatoric", "epistemic"]
    assert len(rows) == 3
