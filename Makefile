# make demo: the whole story, end to end, on the example.
# make test: everything that continuous integration runs.
# make bench TABLE=phrase-table.gz: scoring and training, against a naive twin and the machine.
# Both set up a virtual environment first; PYTHON chooses the interpreter (3.11 or newer).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := examples/quickstart/run
TABLE ?= examples/quickstart/data/phrase-table.gz

.PHONY: demo test lint bench clean

$(VENV)/installed: setup.cfg pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: $(VENV)/installed
	PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/quickstart/demo.sh $(RUN)

test: lint
	$(BIN)/python -m pytest

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/installed
	$(BIN)/python benchmarks/scoring.py $(TABLE)
	$(BIN)/python benchmarks/training.py $(TABLE)

clean:
	rm -rf $(VENV) $(RUN) examples/quickstart/data build *.egg-info
