# Every target sets itself up from nothing but Python 3.11 or later.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
DATA   ?= data

.PHONY: demo test lint docs bench clean

$(BIN)/discreet: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/dev: $(BIN)/discreet pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

demo: $(BIN)/discreet  ## private answers and synthetic rows for an invented population
	@rm -rf demo-release
	$(BIN)/discreet demo --out demo-release

test: $(VENV)/dev  ## every test that needs no data, on all cores
	$(BIN)/python -m pytest --numprocesses auto --dist loadscope

lint: $(VENV)/dev  ## format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: $(VENV)/dev  ## the command-line reference, and tables and picture from the last results
	$(BIN)/python -m tests.docs.reference > docs/cli.md
	$(BIN)/python -m benchmarks.summary
	$(BIN)/python -m tests.docs.reproduction

bench: $(VENV)/dev  ## the figures of docs/benchmarks.md; DATA=folder with adult.csv and adult-domain.json
	$(BIN)/python -m benchmarks --data $(DATA)

clean:
	rm -rf $(VENV) demo-release
