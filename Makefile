# Everything a developer or CI runs. Each target sets up what it needs; the second time is quick.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Work is spread over processes; threads inside each of them would only get in each other's way.
# Each of hundreds of processes would compile the package again where Python may not write bytecode.
WORKERS ?= 2
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=

# Tests that need neither the lab nor peers to compare with.
TEST_TOOLS := pytest pytest-xdist hypothesis polars httpx httpx2
WITHOUT_LAB := tests/tables tests/cli/test_audit_command.py tests/cli/test_bad_input.py \
  tests/cli/test_count_command.py tests/cli/test_gate_command.py tests/cli/test_explain_command.py \
  tests/report tests/auditing/counts tests/auditing/intervals tests/test_stored_audits.py \
  tests/security/test_audit_file.py tests/security/test_inputs.py

.DEFAULT_GOAL := help
.PHONY: help demo test quick test-slow test-lowest test-3.12 test-3.13 same same-store house check hooks lock format docs bench clean chromium

help:  ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/.demo-installed  ## train, compress and audit small models of handwritten digits
	$(BIN)/fairweight demo

test: $(VENV)/.dev-installed chromium  ## tests and doctests
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(WORKERS)

quick: $(VENV)/.dev-installed  ## the core and the tests of what changed since the last commit, within a minute
	$(ONE_THREAD) $(BIN)/python -m tests.quick

test-slow: $(VENV)/.dev-installed chromium  ## simulations, all combinations and cases: hours; goes on where it was stopped
	$(ONE_THREAD) $(BIN)/python -m tests.slow --jobs $(WORKERS)

test-lowest: $(BIN)/pip  ## the audit, viewer and command line at the lowest versions that are declared
	mkdir -p build && $(BIN)/python tests/lowest.py > build/lowest.txt
	$(PYTHON) -m venv --clear build/lowest
	build/lowest/bin/python -m pip install --quiet --disable-pip-version-check -c build/lowest.txt -e '.[explain,web]' $(TEST_TOOLS)
	$(ONE_THREAD) build/lowest/bin/python -m pytest -n $(WORKERS) -W default::DeprecationWarning $(WITHOUT_LAB)

# The audit without the lab: a CPU build of torch exists for Python 3.11 only.
test-3.12 test-3.13: test-3.%:  ## the same with another Python, where it is installed, at the newest versions
	@$(or $(OTHER),python3.$*) -c '' 2>/dev/null || { \
	  echo "python3.$* is not installed: nothing was tested. Say where it is: make $@ OTHER=PATH"; exit 1; }
	$(or $(OTHER),python3.$*) -m venv --clear build/python3.$*
	build/python3.$*/bin/python -m pip install --quiet --disable-pip-version-check -e '.[explain,web]' $(TEST_TOOLS)
	$(ONE_THREAD) build/python3.$*/bin/python -m pytest -n $(WORKERS) $(WITHOUT_LAB)

same: $(VENV)/.dev-installed  ## make fixed audits and studies and compare every number with the stored one
	$(ONE_THREAD) $(BIN)/python -m tests.same --jobs $(WORKERS)

same-store: $(VENV)/.dev-installed  ## store the numbers of these audits again, when they are meant to change
	$(ONE_THREAD) $(BIN)/python -m tests.same --store --jobs $(WORKERS)

house: $(VENV)/.dev-installed  ## count files, functions, names and imports of the source
	@$(ONE_THREAD) $(BIN)/python -m tests.house

check: $(VENV)/.dev-installed  ## lint, format, types, layers, and that numbers are the same
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy tests
	$(BIN)/lint-imports
	$(ONE_THREAD) $(BIN)/python -m tests.same --jobs $(WORKERS)

hooks: $(VENV)/.dev-installed  ## run lint, types and layers before every commit
	$(BIN)/pre-commit install

lock: $(VENV)/.pip-upgraded  ## write constraints.txt: what is pinned stays, what is missing is added
	$(BIN)/python -m tests.lock $(if $(NEWER),--newer)

format: $(VENV)/.dev-installed  ## let ruff repair and format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.docs-installed  ## build the documentation into build/docs, without a network
	$(ONE_THREAD) $(BIN)/python docs/generate_gallery.py build/gallery
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "Open build/docs/index.html"

bench: $(VENV)/.dev-installed  ## measure speed and memory beside peers
	$(BIN)/python -m benchmarks

clean:  ## remove the environment, caches and what demo and audits wrote
	rm -rf $(VENV) build dist fairweight-demo fairweight-audit
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# pip is what venv installs last: where it is missing, the environment was never finished.
$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "fairweight needs Python 3.11 or newer, and '$(PYTHON)' is not: $$($(PYTHON) --version 2>&1)."; \
	  echo "Name another one, for example: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)

# Dependency groups need pip 25.1, which older Pythons do not bring.
$(VENV)/.pip-upgraded: constraints.txt | $(BIN)/pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --upgrade pip
	@touch $@

# Editable in both cases, so that neither target undoes the other's installation.
$(VENV)/.demo-installed: pyproject.toml constraints.txt | $(BIN)/pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[lab,web]'
	@touch $@

# Peers that tests compare with come alone: no test needs what they would bring along (torchvision).
$(VENV)/.dev-installed: pyproject.toml constraints.txt | $(VENV)/.pip-upgraded
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[lab,ray,web]' --group dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt torchdistill pytorch-cka
	@touch $@ $(VENV)/.demo-installed

$(VENV)/.docs-installed: pyproject.toml constraints.txt | $(VENV)/.pip-upgraded
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e . --group docs
	@touch $@

# Reports are looked at in a real browser where there is one; those tests skip themselves otherwise.
chromium:
	@if { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing chromium for the tests in a browser."; \
	  { timeout 120 apt-get update -qq && timeout 300 apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1 \
	    || echo "chromium could not be installed: the tests in a browser are skipped."; \
	else echo "No chromium found: install it to run the tests in a browser; they are skipped now."; fi
