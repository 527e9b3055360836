# Every target builds the environment it needs: the first one takes minutes, the next ones a moment.
PYTHON ?= python3
BIN := .venv/bin
ONLY ?=
# Tests wait as often as they compute, so four worker processes use two cores.
WORKERS ?= 4
# Where it is set, each of the processes that tests start would compile the same modules again.
unexport PYTHONDONTWRITEBYTECODE

# Folders with tests that need no database server, Java or browser; --quick skips the others in them.
QUICK := tests/unit tests/contract tests/property tests/outbox

.DEFAULT_GOAL := help
.PHONY: help setup demo test suite quick check internals docs changelog dist sbom bench bench-scale soak chaos fuzz mutants proto lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Build .venv from requirements/dev.lock
	@$(PYTHON) tools/bootstrap.py dev

demo: setup ## Run a demonstration of one minute (KEEP=1 leaves the console running)
	@$(BIN)/tape demo $(if $(KEEP),--keep)

test: setup ## Run the checks and the whole suite (WORKERS=4 processes)
	@$(MAKE) --no-print-directory --jobs 2 check suite

suite: setup
	@$(BIN)/python -m tests.servers.chromium
	@$(BIN)/python -m tests.servers.spark_archive
	@$(BIN)/pytest --quiet -n $(WORKERS) --ignore tests/architecture

quick: setup ## Run the tests that need no server, Java or browser, with a fifth of the generated examples
	@$(BIN)/pytest --quiet -n 3 --quick $(QUICK)

check: setup ## Check style, types, layers and sizes
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff check --quiet --preview --select ASYNC119
	@$(BIN)/ruff format --quiet --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/pytest --quiet tests/architecture

internals: setup ## Record the request paths of docs/internals.md anew
	@WRITE_INTERNALS=1 $(BIN)/pytest --quiet tests/internals

docs: setup ## Build the documentation into build/docs
	@$(BIN)/python -m tools.docs

changelog: setup ## Write newsfragments/ into CHANGELOG.md (VERSION=1.2.0 makes a release)
	@$(BIN)/python -m tools.changelog $(VERSION)

dist: setup ## Build the wheel, the sdist and the bill of materials into dist
	@$(BIN)/python -m hatchling build
	@$(BIN)/python -m tools.sbom

sbom: setup ## Write the bill of materials to dist/sbom.cdx.json
	@$(BIN)/python -m tools.sbom

bench: ## Compare with peers, into bench/latest.json (ONLY=name for one area, SIZE=0.05 to try it)
	@$(PYTHON) tools/bootstrap.py bench
	@.venv-bench/bin/python -m tests.bench "$(ONLY)" "$(SIZE)"

bench-scale: ## Compare the cost of a row in a lake of 100 k, 3 M and 10 M entries
	@$(PYTHON) tools/bootstrap.py bench
	@.venv-bench/bin/python -m tests.bench.scale

soak: setup ## Run most suites with more work, 100 minutes at most, into docs/soak.md (ONLY=name for one, MINUTES=5)
	-@$(PYTHON) tools/bootstrap.py fuzz
	@$(BIN)/python -m tests.soak $(ONLY) --minutes $(or $(MINUTES),100)

chaos: setup ## Break a whole installation by a seed, and judge what its clients saw (SEED=1 SECONDS=40)
	@$(BIN)/python -m tests.chaos $(or $(SEED),1) --seconds $(or $(SECONDS),40)

fuzz: ## Look for inputs that break a parser, SECONDS=60 for each (ONLY=name for one)
	@$(PYTHON) tools/bootstrap.py fuzz
	@.venv-fuzz/bin/python -m tests.fuzz "$(ONLY)" $(or $(SECONDS),60)

mutants: setup ## Make seeded mistakes and see which test notices, into docs/mutants.md (ONLY=name for one, JOBS=n at a time)
	@$(BIN)/python -m tests.mutants $(if $(JOBS),--jobs $(JOBS)) $(ONLY)

proto: setup ## Generate the Python code of src/tape/wire/tape.proto
	@$(BIN)/python tools/proto.py

lock: setup ## Resolve requirements/*.in again (with Python 3.11)
	@$(BIN)/python tools/lock.py

clean: ## Delete the environments and the files of tools
	@rm -rf .venv .venv.lock .venv-bench .venv-bench.lock .venv-fuzz .venv-fuzz.lock .hypothesis .import_linter_cache .mypy_cache .pytest_cache
	@rm -rf .browser .browser.lock .ruff_cache build dist tests/browser/shots
	@find src tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
