# Two commands on a fresh machine: "make demo" runs the main job, "make test" the tests. Both set up all they need:
# a virtual environment in .venv, the pinned packages of constraints.txt, and (tests, as root on Debian) the Debian
# packages that bring mkfs.ext4, mkfs.xfs and the like.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DISTRIBUTIONS := host plugins/hostpath plugins/emptydir plugins/projected drivers/kit plugins/csi drivers/loop
EDITABLE := $(foreach d,$(DISTRIBUTIONS),-e ./$(d))
PROJECTS := constraints.txt pyproject.toml $(foreach d,$(DISTRIBUTIONS),$(d)/pyproject.toml)
SOURCES := $(addsuffix /src,$(DISTRIBUTIONS))
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# Many tests wait for processes of their own, so that two processors serve three workers. Files go out in the order of
# "testpaths", those that take long first. A worker that died ends the run: its file would kill the next one too.
PYTEST_PARALLEL ?= -n 3 --dist loadfile --no-loadscope-reorder --max-worker-restart 0

.DEFAULT_GOAL := help
.PHONY: help demo story test check check-style check-types-oldest check-types-newest check-imports bench storm docs \
	dist system-packages clean

help:  ## What can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 24

$(VENV)/.runtime: $(PROJECTS)
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -c constraints.txt pip
	$(PIP) install -c constraints.txt $(EDITABLE)
	touch $@

$(VENV)/.development: $(VENV)/.runtime
	$(PIP) install -c constraints.txt --group dev
	touch $@

demo: $(VENV)/.runtime system-packages  ## A pod's volumes and a CSI claim mounted for real, shown, used and taken away again (as root)
	$(BIN)/volumehost demo

story: $(VENV)/.development  ## pip installs, upgrades and removes a plugin under a running host (as root)
	$(BIN)/python examples/plugin_while_running.py

test: $(VENV)/.development system-packages  ## The tests (those with real mounts as root)
	$(BIN)/python -m compileall -q -j 2 $(SOURCES)
	$(BIN)/python -m pytest $(PYTEST_PARALLEL) $(PYTEST_ARGS)

check: $(VENV)/.development  ## ruff, mypy --strict, import-linter, deptry
	$(MAKE) --no-print-directory -j 2 --output-sync check-types-oldest check-types-newest check-style check-imports

check-style:
	$(BIN)/ruff check
	$(BIN)/ruff format --check

check-types-oldest:
	$(BIN)/mypy

check-types-newest:
	$(BIN)/mypy --python-version 3.14

check-imports:
	$(BIN)/lint-imports
	for d in $(DISTRIBUTIONS); do (cd $$d && $(abspath $(BIN))/deptry src) || exit 1; done

bench: $(VENV)/.development  ## Every figure: ours, the peer's, the ratio
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m bench $(BENCH_ARGS)

storm: $(VENV)/.development system-packages  ## Processes are killed, drivers misbehave, disks fill, files rot: figures (as root)
	$(BIN)/python -m storm $(STORM_ARGS)

docs: $(VENV)/.development  ## The documentation site, in docs/_build/html
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

dist: $(VENV)/.development  ## A wheel and an sdist of each distribution, in dist/
	for d in $(DISTRIBUTIONS); do $(BIN)/python -m build --outdir dist $$d || exit 1; done

system-packages:
	@tools/system-packages

clean:  ## Remove the virtual environment and everything built
	rm -rf $(VENV) dist docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
