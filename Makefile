# Every target works from a clean clone: it makes .venv, installs what it needs and runs.

PYTHON ?= python3
# The newest first. What pyenv has installed is looked up in its folder: its own `python3.13` runs only where it is chosen.
SUPPORTED := 3.13 3.12 3.11
PYENV := $(or $(PYENV_ROOT),$(HOME)/.pyenv)/versions
PYTHONS := $(foreach version,$(SUPPORTED),python$(version) $(wildcard $(PYENV)/$(version).*/bin/python$(version)))
# Tried in turn when python3 is too old and no other was asked for.
NEWER := $(if $(filter file,$(origin PYTHON)),$(PYTHONS))
VENV := .venv
BIN := $(VENV)/bin
# The libraries that the benchmarks compare with live apart: the project depends on none of them.
PEERS := .venv-peers
# The lowest versions of all dependencies that pyproject.toml allows.
LOWEST := .venv-lowest
# The newest Python of the machine.
NEWEST := .venv-newest
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet
# uv looks where pip was told to look.
UV := $(if $(PIP_INDEX_URL),UV_DEFAULT_INDEX=$(PIP_INDEX_URL)) UV_PYTHON_DOWNLOADS=never $(BIN)/uv
EDITABLE := --editable '.[openai-compatible,shared]'
GROUPS := --group dev --group benchmarks --group loops --group release
# Installs with uv, or with pip where uv cannot be had, in both cases the versions that dev.lock names.
INSTALL = { if [ -x $(BIN)/uv ]; then $(UV) pip install --quiet --python $(BIN)/python --constraint dev.lock $(1); \
	else $(PIP) install --constraint dev.lock $(1); fi; }
# A folder with git directories of the data sets that `make bench-real` needs; without it, they are cloned.
DATA ?=
# `make bench-real SEALED=1` plays the sealed half of that data, for a release; SAVE=FILE saves the figures of either half.
SEALED ?=
SAVE ?=
REAL_OPTIONS = $(if $(SEALED),--sealed) $(if $(SAVE),--save $(SAVE))
# Tests run side by side, those of one file in one process; `make test WORKERS=0` runs all in one process.
WORKERS ?= auto
PYTEST := pytest -n $(WORKERS) --maxprocesses 8 --dist loadfile --no-loadscope-reorder
# `make test TESTS=tests/unit` runs a part of them.
TESTS ?=
# What CI runs at full size and with many random examples.
LONG_TESTS := $(patsubst %,benchmarks/tests/test_%.py,day report) tests/docs tests/host/test_wheel.py tests/unit/redaction \
	$(patsubst %,tests/behaviour/test_%.py,anthropic hostile_input injection long_session notes races) \
	$(patsubst %,tests/properties/test_%.py,manager notes resume state_machine)
# What CI runs with the newest Python: what waits, has threads or files, or meets a host. With python3 it runs all.
NEWEST_TESTS := tests/behaviour tests/host $(patsubst %,tests/unit/%,cli history_file recall session stores)
# What CI runs with the lowest versions: whatever calls a library.
LOWEST_TESTS := tests/unit/stores tests/unit/tokens tests/unit/recall tests/unit/providers \
	tests/behaviour/test_manager.py

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench bench-peers bench-field bench-real dist test-long test-lowest test-newest lock clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | awk -F '\t' '{ printf "  make %-12s %s\n", $$1, $$2 }'

demo: $(VENV)/installed ## replay a real 120,000-token session with a 40,000-token window, and ask what was said early
	$(BIN)/python examples/demo.py

test: $(VENV)/installed-dev ## run the tests, with small inputs and few random examples; some 90 seconds on two idle cores
	@echo "Tests, side by side: all take some 90 seconds on two idle cores, and a skipped one is listed with its reason …"
	$(BIN)/python -m $(PYTEST) -m 'not wheel' $(TESTS)

test-long: $(VENV)/installed-dev ## run all tests as CI does: properties and more at full size, the wheel, the commands of the pages
	CONTEXT_SUMMARIZE_LONG=1 $(BIN)/python -m $(PYTEST) $(LONG_TESTS)
	$(BIN)/python -m $(PYTEST) $(patsubst %,--ignore=%,$(LONG_TESTS))

test-lowest: $(LOWEST)/installed-lowest ## run some tests with the lowest versions that pyproject.toml allows
	$(LOWEST)/bin/python -m $(PYTEST) -W default $(LOWEST_TESTS)

test-newest: ## run some tests with the newest Python of 3.13, 3.12 and 3.11 that is found here, unless .venv has it
	@echo "Looking for the newest Python: $(PYTHONS)"; \
	for candidate in $(PYTHONS); do \
		if "$$candidate" -c 'import ensurepip, venv' 2>/dev/null; then \
			version=$$("$$candidate" --version); \
			if [ "$$version" = "$$($(BIN)/python --version 2>/dev/null)" ]; then \
				echo "$(VENV) has the newest, $$version: make test-long runs all tests with it"; exit 0; \
			fi; \
			echo "The tests run with the newest, $$version ($$candidate)"; \
			exec $(MAKE) --no-print-directory test VENV=$(NEWEST) PYTHON="$$candidate" TESTS="$(NEWEST_TESTS)"; \
		fi; \
	done; \
	echo "None of them is here, or none has venv: make test-long runs the tests with $(PYTHON) alone"

lock: $(VENV)/created ## resolve all dependencies anew and write their versions into dev.lock
	$(UV) pip compile --quiet --universal --upgrade --no-annotate --no-header --no-emit-index-url --python-version 3.11 \
		--extra openai-compatible --extra shared $(GROUPS) --output-file dev.lock pyproject.toml

lint: $(VENV)/installed-dev ## run ruff, mypy --strict, and the check of the layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/installed ## measure this module: kept facts, CPU, blocks of the event loop, functions of a request; three minutes
	$(BIN)/python -m benchmarks.speed

bench-peers: $(PEERS)/installed-peers ## install the project and its pinned peers (benchmarks/peers.txt) into .venv-peers

bench-field: bench-peers ## compare with other libraries, with a stand-in for the summariser: facts, dollars, a kit from outside
	$(PEERS)/bin/python -m benchmarks.field
	$(PEERS)/bin/python -m benchmarks.kit
	$(PEERS)/bin/python -m benchmarks.speed --ratio

bench-real: bench-peers ## compare on real conversations, fetched first (DATA=DIR: from git directories there)
	$(PEERS)/bin/python -m benchmarks.real.fetch $(if $(DATA),--from $(DATA)) $(if $(SEALED),--sealed)
	$(PEERS)/bin/python -m benchmarks.real.conversations $(REAL_OPTIONS)
	$(PEERS)/bin/python -m benchmarks.prospective $(REAL_OPTIONS)
	$(PEERS)/bin/python -m benchmarks.cuts $(REAL_OPTIONS)
	$(PEERS)/bin/python -m benchmarks.lasting $(REAL_OPTIONS)

dist: $(VENV)/installed-dev ## build sdist and wheel into dist/, and check them
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*
	@if grep -q '\.example' pyproject.toml; then echo "Not for upload: pyproject.toml still has a placeholder for the repository's address"; fi

clean: ## remove .venv, .venv-newest, .venv-peers, .venv-lowest, caches and build results
	rm -rf $(VENV) $(NEWEST) $(PEERS) $(LOWEST) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

$(VENV)/created:
	@found=; for candidate in "$(PYTHON)" $(NEWER); do \
		if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found=$$candidate; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
		echo "Python 3.11 or newer is needed, and $(PYTHON) is none: install it, or run make PYTHON=/path/to/python3.13" >&2; exit 1; \
	fi; \
	if ! "$$found" -c 'import ensurepip, venv' 2>/dev/null; then \
		echo "$$found has no venv with pip: install it (Debian, Ubuntu: apt-get install python3-venv)" >&2; exit 1; \
	fi; \
	echo "Making $(VENV) with $$("$$found" --version), once …"; \
	"$$found" -m venv --clear $(VENV)
	@$(PIP) install 'pip>=25.1' # earlier ones know no groups
	@$(PIP) install 'uv>=0.9' || echo "uv cannot be had here: pip installs everything"
	@touch $@

$(VENV)/installed: pyproject.toml dev.lock | $(VENV)/created
	@echo "Installing the package into $(VENV) …"
	@$(call INSTALL,--editable .)
	@touch $@

$(VENV)/installed-dev: pyproject.toml dev.lock | $(VENV)/created
	@echo "Installing the package and its development tools into $(VENV) …"
	@$(call INSTALL,$(EDITABLE) $(GROUPS))
	@touch $@ $(VENV)/installed

$(PEERS)/installed-peers: pyproject.toml benchmarks/peers.txt benchmarks/peers-alone.txt
	@$(MAKE) --no-print-directory VENV=$(PEERS) $(PEERS)/installed
	@echo "Installing the peers into $(PEERS) …"
	@$(PEERS)/bin/python -m pip --disable-pip-version-check --quiet --quiet install --requirement benchmarks/peers.txt
	@$(PEERS)/bin/python -m pip --disable-pip-version-check --quiet --quiet install --no-deps \
		--requirement benchmarks/peers-alone.txt
	@touch $@

# uv resolves to the lowest versions, which pip cannot.
$(LOWEST)/installed-lowest: pyproject.toml | $(VENV)/created
	@echo "Installing the package, its lowest dependencies and the development tools into $(LOWEST) …"
	@$(UV) venv --quiet --clear --python $(BIN)/python $(LOWEST)
	@$(UV) pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct \
		$(EDITABLE) --group dev
	@touch $@
