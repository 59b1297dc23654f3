# Two commands on a fresh machine with Python 3.11+ and make: `make demo` and `make test`.
# Both create .venv and install what they need; a second run reuses it.

VENV   := .venv
PY     := $(VENV)/bin/python
# the first interpreter on the path that is new enough
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)

.PHONY: demo test lint types unit long nightly dist pyz wheel floors browser paper docs walk size clean

demo: $(VENV)/.demo
	$(VENV)/bin/consistruct demo

test: lint types unit

lint: $(VENV)/.test
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: $(VENV)/.test
	$(PY) -m mypy

# two workers with one BLAS thread each: more would fight over two cores
unit: $(VENV)/.test
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -n 2 --dist loadfile --ignore=tests/long --ignore=tests/browser --ignore=tests/site_pages

long: $(VENV)/.test
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -n 2 tests/long

# what takes hours, with full counts; writes benchmarks/results/nightly.md, to be committed
nightly: $(VENV)/.test
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PY) tools/nightly.py

# what is uploaded: source distribution and wheel in dist/
dist:
	$(PYTHON) tools/wheel.py build

# the check of certificates in one file, for a Python with nothing installed
pyz:
	$(PYTHON) tools/check_zipapp.py dist/consistruct-check.pyz

# the wheel in empty environments with the newest versions, on every Python found; the README from it
wheel: dist
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PYTHON) tools/wheel.py newest

# the same with the oldest versions that pyproject.toml allows
floors: dist
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PYTHON) tools/wheel.py floors

# headless Chromium drives the explorer and opens reports; pictures in test-artifacts/
browser: $(VENV)/.test
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PY) -m pytest tests/browser

# every claim of the paper, its figures and simulations: pages for the site, and exit code 1 if a
# claim is not decided as expected
PAGES := docs/generated/paper
REPRODUCE = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PY) -m paper pages $(PAGES)
paper: $(VENV)/.test
	$(REPRODUCE)

$(PAGES)/index.md: $(shell find paper src -name '*.py') | $(VENV)/.test
	$(REPRODUCE)

# the site, warnings are errors; then what only the built pages can show
docs: $(VENV)/.docs $(PAGES)/index.md
	rm -rf build/docs
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PY) -m sphinx -W --keep-going -q -d build/doctrees docs build/docs
	$(PY) -m pytest -q tests/site_pages
	@echo "the site is in build/docs/index.html"

# files and functions that the main flows enter, in order; docs/design/architecture.md lists the files
walk: $(VENV)/.test
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PY) tools/walk.py

# code, comments, docstrings and numbers by room; tools/size.py states how they are counted
size: $(VENV)/.test
	$(PY) tools/size.py

$(PY):
	@test -n "$(PYTHON)" || { echo "consistruct needs Python 3.11 or newer; install it, or run: make PYTHON=/path/to/python"; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(PY) pyproject.toml
	$(PY) -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.test: $(PY) pyproject.toml
	$(PY) -m pip install --quiet --disable-pip-version-check "pip>=25.1"  # knows dependency groups
	$(PY) -m pip install --quiet --disable-pip-version-check -e ".[test]" --group paper
	@touch $@ $(VENV)/.demo

$(VENV)/.docs: $(VENV)/.test
	$(PY) -m pip install --quiet --disable-pip-version-check -e ".[docs,test]"
	@touch $@

.DELETE_ON_ERROR:  # pages with a claim that is not decided as expected are made again

clean:
	rm -rf $(VENV) build docs/generated dist .mypy_cache .ruff_cache .pytest_cache
