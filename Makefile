# Two commands, each with all of its own set-up: `make reproduce` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
SETUP := .venv/.installed

.PHONY: reproduce test lint types benchmark docs clean

reproduce: $(SETUP)
	$(BIN)/partwise reproduce --out report

test: lint types
	$(BIN)/python -m pytest -n 2 --durations 10

lint: $(SETUP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(SETUP)
	$(BIN)/pyright --pythonpath $(BIN)/python

benchmark: $(SETUP)
	$(BIN)/python -m benchmarks.throughput

docs: .venv/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir site

.venv/.docs: $(SETUP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

$(SETUP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all]'
	touch $@

clean:
	rm -rf .venv report site .pytest_cache .ruff_cache
