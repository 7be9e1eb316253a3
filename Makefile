# make lab    set up, open the workshop
# make test   set up, run every test
# make run    set up, run every notebook without a browser: SCALE=test, workshop or full
# make bench  set up, compare speeds
# make check  set up, lint, formats and types

.DEFAULT_GOAL := help
.PHONY: help lab test run bench check setup clean
.DELETE_ON_ERROR:

SCALE ?= test
bin := .venv/bin
ready := .venv/.ready

# The first of these that is a Python from 3.11 to 3.13.
candidates := python3 python3.13 python3.12 python3.11 python
suits := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
ifndef PYTHON
PYTHON := $(shell for name in $(candidates); do $$name -c '$(suits)' 2>/dev/null && echo $$name && break; done)
endif

help:
	@sed -n 's/^# \(make.*\)/\1/p' Makefile

setup: $(ready)

$(ready): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "No Python from 3.11 to 3.13 found: install one, or name it: make PYTHON=/path/to/python"; exit 1; }
	@test -x $(bin)/python || $(PYTHON) -m venv .venv || { rm -rf .venv; echo "$(PYTHON) cannot make a virtual environment: on Debian and Ubuntu install python3-venv"; exit 1; }
	@echo "Installing into .venv: some minutes, once"
	$(bin)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test]'
	@touch $@

# On copies: what is written in them survives an update of the lessons, and hinders none.
# Jupyter wants to be told that root is meant: in a plain container there is nobody else.
lab: $(ready)
	$(bin)/python -m helpers.cells.working_copies notebooks my_notebooks
	$(bin)/python -m jupyterlab $(if $(filter 0,$(shell id -u)),--allow-root) $(LAB_OPTIONS) my_notebooks/00_start_here.ipynb

test: $(ready)
	$(bin)/python -m pytest

run: $(ready)
	$(bin)/python tests/run_notebooks.py --scale $(SCALE)

bench: $(ready)
	$(bin)/python -m pytest tests/benchmarks -m benchmark --capture=no

check: $(ready)
	$(bin)/ruff check
	$(bin)/ruff format --check
	$(bin)/python tests/format_notebooks.py --check
	$(bin)/mypy

clean:
	rm -rf .venv build .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info
