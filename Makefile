# Requirements: make, Python 3.11 or newer with venv and pip.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Bytecode is written where a module is first imported, also where the environment forbids it: of 8,700 modules that the
# demo installs, it imports 3,500, and pip would compile all of them. The tests import most, in two processes, and turn
# warnings of the compiler into errors: for them all is compiled beforehand, on all cores.
PIP := $(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt
export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-slow check docs look bench release format clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.demo  ## train a small model on a shipped sample and use it, in a few minutes on a laptop
	$(BIN)/python examples/demo.py

# The tests start hundreds of processes.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

# Those of how the code is written are run by 'make check'.
test: $(VENV)/.test  ## run all tests but the slow ones
	$(PYTEST) -m 'not slow' --ignore tests/test_house.py --ignore tests/test_imports.py

test-slow: $(VENV)/.test  ## run the slow tests: laws of all models, tracing all models, two machines, the site
	$(PYTEST) -m 'slow or hypothesis' --hypothesis-profile thorough \
	  $$(grep -rlE --include='test_*.py' 'mark\.slow|import (few|only)|@given' tests)

check: $(VENV)/.test  ## lint, format, types and the directions of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict structpe
	$(BIN)/python -m pytest -q tests/test_imports.py tests/test_house.py

ifdef PAGE
docs: $(VENV)/.test
	@OMP_NUM_THREADS=1 $(BIN)/python docs/site/one.py $(PAGE)
else
docs: $(VENV)/.test  ## build the pages, run the gallery; needs no network: build/docs/index.html; PAGE=docs/x.md: one page
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx --jobs 2 --quiet --fail-on-warning --keep-going docs build/docs
	@echo build/docs/index.html
endif

look: $(VENV)/.test  ## open built pages in a browser, on a desk and on a phone, and say what is wrong; needs Chromium
	$(BIN)/python docs/site/look.py build/docs

bench: $(VENV)/.test  ## time encodings, other libraries, and all position models; about six minutes
	@OMP_NUM_THREADS=1 $(BIN)/python experiments/speed/bench

release:  ## the wheel and the source archive from a clean clone, tried in an empty environment; needs a network: dist/
	PYTHON=$(PYTHON) .ci/release

format: $(VENV)/.test  ## format the code
	$(BIN)/ruff check --fix --exit-zero .
	$(BIN)/ruff format .

clean:  ## remove the environment and the files of tools; keep trained models
	rm -rf $(VENV) build dist docs/api docs/auto_gallery .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is touched when an installation has succeeded; a second run installs nothing until a prerequisite changes.
# PyTorch is installed first and separately, so that no other package can install another version.

# What earlier editable installations left, an empty folder, would be imported in place of the checkout.
UNSHADOWED := rm -rf $(VENV)/lib/python3*/site-packages/structpe

$(VENV)/.torch: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "structpe needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Name another: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) torch==2.13.0
	@touch $@

$(VENV)/.demo: $(VENV)/.torch pyproject.toml
	$(PIP) --editable '.[train]'
	$(UNSHADOWED)
	@touch $@

# The packages of the tests contain those of the demo.
$(VENV)/.test: $(VENV)/.torch pyproject.toml
	$(PIP) --editable '.[dev]'
	$(UNSHADOWED)
	$(BIN)/python -W ignore -m compileall -qq -j 0 $(VENV)/lib || true  # some packages hold templates that are no Python
	@touch $(VENV)/.demo $@
