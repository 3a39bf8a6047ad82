PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# matrices of robots are small: more BLAS threads than one take the processors from the other workers of the tests
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
export VECLIB_MAXIMUM_THREADS := 1

.PHONY: install demo test check style types golden verify lowest bench docs browser clean

# One stamp for everything: the wheel is rebuilt when sources or the project file change, as tests run what users install.
SOURCES := pyproject.toml $(shell find src -name '*.py' -o -name '*.toml' -o -name '*.npz' -o -name '*.c' -o -name '*.css' -o -name '*.js' 2>/dev/null)

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(STAMP): $(VENV)/bin/python $(SOURCES)
	$(BIN)/python -m pip uninstall --quiet --yes parflex  # else pip keeps an older source of the same version
	$(BIN)/python -m pip install --quiet --upgrade ".[test,check,docs]"
	@rm -rf build
	@touch $(STAMP)

install: $(STAMP)

demo: $(STAMP)
	$(BIN)/parflex reproduce --report out

test: $(STAMP)
	$(BIN)/python -m pytest -n auto --dist loadfile

check: style types

style: $(STAMP)
	$(BIN)/ruff format --check src tests examples benchmarks docs/hooks
	$(BIN)/ruff check src tests examples benchmarks docs/hooks
	$(BIN)/codespell $(wildcard *.md) docs src examples benchmarks

types: $(STAMP)
	$(BIN)/mypy
	PYTHONPATH=tests $(BIN)/lint-imports

# answers of every public function and every robot of the catalogue, compared with stored ones
golden: $(STAMP)
	$(BIN)/python tests/golden.py --compare

verify: $(STAMP)
	$(BIN)/python tests/verify.py --output out/verify.md

# the oldest Python and the oldest packages that pyproject.toml allows; takes its own environment, and PYTHON=python3.11
lowest:
	$(PYTHON) tests/lowest.py --environment .venv-lowest

bench: $(STAMP)
	$(BIN)/python -m pip install --quiet ".[bench]"
	$(BIN)/python benchmarks/run.py --output out/bench.json

docs: $(STAMP)
	PYTHONPATH=docs/hooks $(BIN)/zensical build --clean --strict

# pages in a real browser: the viewer and the report; 'make test' runs them too where a browser is installed
browser: $(STAMP)
	@command -v chromium >/dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium; } \
	  || { echo "no browser: install chromium (Debian: apt-get install chromium)"; exit 1; }
	$(BIN)/python -m pytest tests/view/test_viewer.py tests/reproduction/test_reproduce.py

clean:
	rm -rf $(VENV) .venv-lowest build dist out site src/*.egg-info
