# make setup   everything the other targets need: .venv from requirements.lock, simulators from the system's packages
# make demo    one YAML file -> Verilog, lint, co-simulation, hit rates, build/demo/report.html
# make test    lint and all tests but the long ones
# make study   the long ones: wide proofs, all mutants, every figure of the papers
# make docs    the site, build/site/index.html; first the pages that are written from code and data (make pages)
# make gallery, make notebooks    the pictures of docs/start/gallery.md, the outputs of docs/notebooks
# make house   docs/pictures/house.svg and its figures: rooms, floors, imports
# make lock    requirements.lock anew from pyproject.toml
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help setup system demo test lint pytest study docs pages site gallery notebooks house lock clean distclean FORCE

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.hopforge-setup
JOBS ?= 2
# what a Python without the user's own settings sees is what everybody sees
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV

help:
	@sed -n 's/^# make/make/p' Makefile

# The stamp holds the folder it was made for: a venv that was copied or moved here is made anew.
ifneq ($(shell cat $(STAMP) 2>/dev/null),$(CURDIR))
$(STAMP): FORCE
endif
FORCE:

setup: system $(STAMP)

# command=package pairs; Verilator is a program in Perl and needs more of it than perl-base; sta and chromium are
# optional (OpenSTA timing, test of the report page)
SYSTEM_PACKAGES := iverilog=iverilog g++=g++ pod2usage=perl sta=opensta chromium=chromium
sudo = $$([ "$$(id -u)" = 0 ] || echo sudo)
apt-update = $(sudo) apt-get -qq update || true
apt-install = $(sudo) env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -qq -y --no-install-recommends install

system:
	@missing=(); \
	for pair in $(SYSTEM_PACKAGES); do command -v "$${pair%%=*}" >/dev/null || missing+=("$${pair##*=}"); done; \
	[ $${#missing[@]} -gt 0 ] || exit 0; \
	if ! command -v apt-get >/dev/null || { [ "$$(id -u)" != 0 ] && ! command -v sudo >/dev/null; }; then \
	  echo "make setup: please install with your system's package manager: $${missing[*]} (see hopforge doctor)" >&2; exit 0; fi; \
	echo "make setup: installing $${missing[*]}"; \
	$(apt-update); \
	for package in "$${missing[@]}"; do \
	  $(apt-install) "$$package" >/dev/null || echo "make setup: apt-get could not install $$package (see hopforge doctor)" >&2; done

# pip works on one core only: two of them, a half each, and bytecode afterwards on all cores, without that of tests
$(STAMP): requirements.lock pyproject.toml
	@if [ ! -x $(BIN)/python ] || ! $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11) or sys.prefix != "$(CURDIR)/$(VENV)")' 2>/dev/null; then \
	  python=; for name in $(PYTHON) python3.11 python3.12 python3.13 python3; do \
	    if "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$$name; break; fi; done; \
	  [ -n "$$python" ] || { echo "make setup: needs Python 3.11 or newer (or say make setup PYTHON=...)" >&2; exit 1; }; \
	  "$$python" -c 'import ensurepip' 2>/dev/null || { $(apt-update); $(apt-install) python3-venv >/dev/null; } || { echo "make setup: $$python has no venv: install python3-venv" >&2; exit 1; }; \
	  echo "make setup: $(VENV) with $$($$python --version)"; \
	  "$$python" -m venv --clear $(VENV); \
	fi
	@echo "make setup: packages of requirements.lock"
	@half() { $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile -r <(awk "NR % 2 == $$1" requirements.lock); }; \
	half 0 & other=$$!; half 1 || { wait; exit 1; }; wait $$other
	@$(BIN)/python -m compileall -q -j 0 -x '/(tests|_tests|test)/' $(VENV)/lib >/dev/null || true
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/find_libpython | grep -q . || { $(apt-update); $(apt-install) libpython3.11 >/dev/null; } || \
	  echo "make setup: cocotb needs the shared library of Python (Debian: libpython3.11)" >&2
	@printf '%s' '$(CURDIR)' > $(STAMP)

demo: setup
	@$(BIN)/hopforge demo -o build/demo

test: setup lint pytest

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/mypy --num-workers $(JOBS)
	$(BIN)/lint-imports

# Bytecode first: where PYTHONDONTWRITEBYTECODE is set, each of the hundreds of commands that tests start would translate
# all modules again. The order of the files is that of tests/conftest.py.
pytest: $(STAMP)
	$(BIN)/python -m compileall -q src/hopforge hw model gen sim
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder --max-worker-restart 0

study: setup
	HOPFORGE_STUDY=1 $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder -m study

docs: pages site

site: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "make docs: build/site/index.html"

pages: $(STAMP)
	@mkdir -p build
	$(BIN)/hopforge schema --markdown > build/configuration.md
	mv build/configuration.md docs/definitions/configuration.md
	$(BIN)/python -m hopforge.model.output.column_page > build/columns.md
	mv build/columns.md docs/definitions/columns.md
	$(BIN)/python -m hopforge.sim.reproduce.pages docs/results

gallery: $(STAMP)
	$(BIN)/python .ci/gallery.py

notebooks: $(STAMP)
	$(BIN)/python .ci/notebooks.py

house: $(STAMP)
	@$(BIN)/python .ci/house.py --svg docs/pictures/house.svg

lock: $(STAMP)
	@{ echo "# Every package of every extra, pinned; written by 'make lock' (uv pip compile), installed by 'make setup'."; \
	  $(BIN)/uv pip compile pyproject.toml --all-extras --upgrade --python-version 3.11 --no-emit-index-url --no-header --no-annotate -q; \
	} > requirements.lock.new
	@mv requirements.lock.new requirements.lock

clean:
	rm -rf build dist

distclean: clean
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
