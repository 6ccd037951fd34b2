# Two commands: `make run` and `make test`. Each makes its own environment in .venv the first time.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile  # what is imported is compiled then
unexport PYTHONDONTWRITEBYTECODE  # and kept: else every process compiles all of it again

.PHONY: run test lint types unit bench soak clean help

help:  ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

run: $(VENV)/run.stamp  ## nine agents come to recognise digits that they never saw (about two minutes)
	@$(BIN)/consilience run star-digits --rule sites-corrected --set learner.epochs=20 --set learner.decay=0.95

test: lint  ## lint, types, unit tests, doctests
	@$(MAKE) --no-print-directory --jobs 2 types unit

lint: $(VENV)/dev.stamp
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/dev.stamp
	@$(BIN)/mypy

unit: $(VENV)/dev.stamp
	@$(BIN)/pytest -n 2 --dist worksteal --durations 12

bench: $(VENV)/bench.stamp  ## every benchmark, printed as tables
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

SEED ?= 1
FUZZ_CASES ?= 20000
REFERENCE_CASES ?= 5000
WIRE_CASES ?= 100000
GUIDED_CASES ?= 1000000

soak: $(VENV)/soak.stamp  ## the machines that look for mistakes, at length (about an hour; SEED=2 for other cases)
	@$(BIN)/pytest -n 2 --dist worksteal -m soak
	@$(BIN)/python tests/soak_fuzz.py --cases $(FUZZ_CASES) --seed $(SEED) --jobs 2
	@$(BIN)/python tests/soak_reference.py --cases $(REFERENCE_CASES)
	@$(BIN)/python tests/soak_wire.py --cases $(WIRE_CASES) --seed $(SEED)
	@$(BIN)/python tests/soak_atheris.py -runs=$(GUIDED_CASES) -seed=$(SEED) -max_len=4096 -verbosity=0 -print_final_stats=1

clean:  ## remove the environment and the caches (runs are kept)
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "consilience needs Python 3.11 or newer, found " + sys.version.split()[0] + "; try: make PYTHON=python3.12")'
	@echo "Setting up .venv (once) ..."
	@$(PYTHON) -m venv $(VENV)

$(VENV)/run.stamp: $(VENV)/pyvenv.cfg pyproject.toml
	@echo "Installing consilience (once) ..."
	@$(PIP) --editable .
	@touch $@

$(VENV)/dev.stamp: $(VENV)/pyvenv.cfg pyproject.toml
	@echo "Installing consilience and its development tools (once) ..."
	@$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/run.stamp

$(VENV)/soak.stamp: $(VENV)/dev.stamp
	@echo "Installing what looks for mistakes (once) ..."
	@$(PIP) --editable '.[soak]'
	@touch $@

$(VENV)/bench.stamp: $(VENV)/dev.stamp
	@echo "Installing what the benchmarks compare with (once) ..."
	@$(PIP) --editable '.[bench]'
	@touch $@
