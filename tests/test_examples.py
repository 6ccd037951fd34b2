"""Every example and benchmark runs as its first lines say."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from children import environment, quickly

ROOT = Path(__file__).parent.parent


PLAY_LONG = ("bring_your_model.py",)  # longer than it takes to compile them well


def output_of(script: Path, *words: str) -> str:
    known = environment() if script.name in PLAY_LONG else quickly()
    done = subprocess.run([sys.executable, script, *words], capture_output=True, text=True, check=False, env=known)
    assert done.returncode == 0, done.stderr
    return done.stdout


def measures_what_it_predicts(lines):
    for line in lines[1:]:
        words = line.replace(",", "").split()
        assert float(words[-1]) == pytest.approx(float(words[3]), rel=0.05)


def both_frameworks_learn(lines):
    assert len(lines) == 2
    for line in lines:
        assert float(line.split()[1].rstrip("%")) > 85


def intervals_are_calibrated(lines):
    for line in lines[1:]:
        _, _, error, covered, _ = line.split()
        assert 85 <= float(covered.rstrip("%")) <= 95
        assert float(error) < 60


def the_truth_is_found_together(lines):
    for column, truth, together, _ in (line.split() for line in lines[2:]):
        assert float(together) == pytest.approx(float(truth), rel=0.15), column


def outliers_are_resisted(lines):
    gaussian, student = (float(line.split()[-1]) for line in lines)
    assert student < gaussian / 2


CLAIMS = {
    "bring_your_graph.py": measures_what_it_predicts,
    "bring_your_model.py": both_frameworks_learn,
    "regression.py": intervals_are_calibrated,
    "counts.py": the_truth_is_found_together,
    "own_likelihood.py": outliers_are_resisted,
}


@pytest.mark.parametrize(
    "script",
    [pytest.param(script, id=script.name) for script in sorted((ROOT / "examples").glob("*.py"))],
)
def test_examples_run_and_what_they_claim_is_so(script):
    """One run for both questions, whichever process of the tests asks."""
    told = output_of(script)
    assert told
    if script.name in CLAIMS:
        CLAIMS[script.name](told.splitlines())


def test_every_claim_is_about_an_example():
    assert all((ROOT / "examples" / name).exists() for name in CLAIMS)


def test_the_model_example_is_short():
    script = ROOT / "examples" / "bring_your_model.py"
    assert len(script.read_text(encoding="utf-8").splitlines()) < 40


@pytest.mark.parametrize("script", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda s: s.name)
def test_benchmarks_explain_themselves(script):
    assert "--json" in output_of(script, "--help")


def test_one_benchmark_gives_json():
    row = json.loads(output_of(ROOT / "benchmarks" / "exact.py", "--one", "4"))
    assert row["rounds_per_second"] > 0


def test_what_is_told_of_all_rules_is_what_their_runs_told():
    """The tables of docs/rules.md and results/rules are what runs of the study have told, nothing else."""
    script, told = ROOT / "benchmarks" / "rules_table.py", ROOT / "results" / "rules"
    assert output_of(script, "--short", "--told", str(told)).strip() in (ROOT / "docs" / "rules.md").read_text()
    assert output_of(script, "--told", str(told)).strip() in (told / "table.md").read_text()
