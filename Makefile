# make demo: the main job on the example, end to end.
# make demo-all: the same, and a network that reads whole sentences.
# make test: linters, types and quick tests, what a contributor types.
# make test-all: the slow tests and the documentation, too.
# make fuzz: damaged files and interrupts, for an hour or two.
# make docs: the documentation, in docs/_build/html.
# make options: docs/reference/options.md, which lists all options, renewed.
# make constraints: the newest versions of everything, in constraints.txt.
# make bench TABLE=phrase-table.gz: scoring and training, against a naive twin and the machine.
# All set up a virtual environment first; PYTHON chooses the interpreter (3.11 to 3.14).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CONSTRAINTS ?= constraints.txt
RUN := examples/quickstart/run
TABLE ?= $(RUN)/system/phrase-table.gz

.PHONY: demo demo-all test test-all fuzz lint docs options constraints bench clean

$(VENV)/package: setup.cfg pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint $(CONSTRAINTS) --editable '.[build,maps,serve]'
	touch $@

$(VENV)/installed: $(VENV)/package
	$(BIN)/pip install --quiet --constraint $(CONSTRAINTS) --editable '.[dev]'
	touch $@

demo: $(VENV)/package
	PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/quickstart/demo.sh $(RUN)

demo-all: $(VENV)/package
	PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/quickstart/demo.sh --all $(RUN)

test: lint
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal -m "not slow"

test-all: lint docs
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/installed
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html

options: $(VENV)/installed
	PYTHONPATH=tests $(BIN)/python -m helpers.options_page

fuzz: $(VENV)/installed
	$(BIN)/python tests/fuzz/readers.py --examples 100000
	$(BIN)/python tests/fuzz/interrupts.py --interrupts 100

# With Python 3.11, the oldest: what it resolves to is there for newer ones, too. torch stays.
constraints:
	bash .ci/renew-constraints $(PYTHON)

bench: $(VENV)/installed
	$(BIN)/python benchmarks/scoring.py $(TABLE)
	$(BIN)/python benchmarks/training.py $(TABLE)

clean:
	rm -rf $(VENV) $(RUN) docs/_build docs/_results examples/quickstart/data examples/normalisation/data \
	    examples/normalisation/run build *.egg-info
