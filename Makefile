# Two commands, each with all of its own set-up: `make reproduce` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
SETUP := .venv/.installed

.PHONY: reproduce test lint types benchmark clean

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

$(SETUP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all]'
	touch $@

clean:
	rm -rf .venv report .pytest_cache .ruff_cache
