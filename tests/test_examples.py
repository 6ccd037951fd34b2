"""Every example and benchmark runs as its first lines say."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@functools.cache
def output_of(script: Path, *words: str) -> str:
    environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(ROOT / ".pytest_cache" / "programs")}
    done = subprocess.run(
        [sys.executable, script, *words], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda s: s.name)
def test_examples_run(script):
    assert output_of(script)


def test_the_florentine_example_measures_what_it_predicts():
    for line in output_of(ROOT / "examples" / "bring_your_graph.py").splitlines()[1:]:
        words = line.replace(",", "").split()
        assert float(words[-1]) == pytest.approx(float(words[3]), rel=0.05)


def test_the_model_example_is_short_and_both_frameworks_learn():
    script = ROOT / "examples" / "bring_your_model.py"
    assert len(script.read_text(encoding="utf-8").splitlines()) < 40
    for line in output_of(script).splitlines():
        assert float(line.split()[1].rstrip("%")) > 85


def test_the_regression_example_has_calibrated_intervals():
    for line in output_of(ROOT / "examples" / "regression.py").splitlines()[1:]:
        _, _, error, covered, _ = line.split()
        assert 85 <= float(covered.rstrip("%")) <= 95
        assert float(error) < 60


def test_the_counts_example_finds_the_truth_together():
    rows = [line.split() for line in output_of(ROOT / "examples" / "counts.py").splitlines()[2:]]
    for column, truth, together, _ in rows:
        assert float(together) == pytest.approx(float(truth), rel=0.15), column


def test_the_own_likelihood_example_resists_outliers():
    gaussian, student = (
        float(line.split()[-1]) for line in output_of(ROOT / "examples" / "own_likelihood.py").splitlines()
    )
    assert student < gaussian / 2


@pytest.mark.parametrize("script", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda s: s.name)
def test_benchmarks_explain_themselves(script):
    assert "--json" in output_of(script, "--help")


def test_one_benchmark_gives_json():
    row = json.loads(output_of(ROOT / "benchmarks" / "exact.py", "--one", "4"))
    assert row["rounds_per_second"] > 0
