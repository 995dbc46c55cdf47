# `make` alone lists the targets. Each of them first sets up .venv from envs/requirements.lock.
PYTHON ?= python3
CORES ?= all
SNAKEMAKE_ARGS ?=
PYTEST_ARGS ?=

BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest -n logical --maxprocesses 8
SNAKEMAKE := $(BIN)/snakemake
# Progress bars, of snakemake-logger-plugin-rich. Ten seconds: see profiles/default.
ARGUMENTS = --profile profiles/make --max-jobs-per-timespan 1000/10s --cores $(CORES) $(SNAKEMAKE_ARGS)
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Written last and named after the lock's checksum: it is missing after an interrupted set-up and
# whenever the lock has changed.
READY := .venv/ready-$(firstword $(shell cksum < envs/requirements.lock))

.DEFAULT_GOAL := help
.PHONY: help setup reproduce arena test test-all report site multiverse schema reliability golden bench lint types coverage wheel test-lowest crate metadata clean

help: ## list the targets
	@echo "Concord: reproduce and compare decentralized Bayesian samplers"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile
	@echo "Settings: CORES=4 (default: all), SNAKEMAKE_ARGS='--config scale=smoke' (tiny, in minutes), PYTEST_ARGS='-k topology' ('-n 0': in one process), PYTHON=python3.12 (makes .venv)"

setup: $(READY) ## create .venv from envs/requirements.lock (every other target does it too)

reproduce: $(READY) ## every figure and table that needs no download, into results/; no verdicts
	$(SNAKEMAKE) $(ARGUMENTS)
	@echo "Figures and tables are made. Next: '$(SNAKEMAKE) ledger' makes the verdicts and the runs that only they read, 'make site' shows what has been made."

arena: $(READY) ## every sampler on the same tasks, at the same price, into results/arena
	$(SNAKEMAKE) arena $(ARGUMENTS)

test: $(READY) ## whether it works: all tests but those that take long or need an extra
	$(PYTEST) --dist worksteal -m 'not thorough' $(PYTEST_ARGS)

# A file of tests stays in one process: there can be but one SLURM on a machine.
test-all: $(READY) ## every test, on all cores
	$(PYTEST) --dist loadfile $(PYTEST_ARGS)

# The lower bounds of pyproject.toml as exact versions, and of what tests need beside them any.
LOWEST = $$(sed -n '/^dependencies/,/^]/s/^ *"\(.*\)>=\([^",]*\).*/\1==\2/p' pyproject.toml)
OF_LIBRARY = tests/concord/laws tests/concord/test_calls.py tests/concord/test_dependencies.py

coverage: $(READY) ## which lines of the library its own tests run; fewer than the floor fail
	$(PYTEST) -m 'not thorough' --cov --cov-report=term tests/concord $(PYTEST_ARGS)

test-lowest: ## the library's tests with the oldest versions that pyproject.toml allows
	$(PYTHON) -m venv --clear .venv-lowest
	.venv-lowest/bin/python -m pip --disable-pip-version-check install -q $(LOWEST) hypothesis jsonschema packaging pytest pytest-xdist
	PYTHONPATH=src .venv-lowest/bin/python -m pytest -n logical --maxprocesses 8 -m 'not thorough and not workflow' $(OF_LIBRARY) $(PYTEST_ARGS)

wheel: $(READY) ## dist/concord_bayes-*.whl, to be installed elsewhere
	$(BIN)/python -m build --wheel --no-isolation

report: reproduce ## results/report.html: figures and tables that have been made, in one file
	$(SNAKEMAKE) ledger made $(ARGUMENTS)
	$(SNAKEMAKE) made $(ARGUMENTS) --report results/report.html
	@! grep -o 'System Message: [^&]*' results/report.html || { echo "Captions of the report are no valid reStructuredText: mend what docutils says above." >&2; exit 1; }

site: $(READY) ## site/: findings, figures, tables and documents as pages, of whatever has been made
	@$(BIN)/python -c 'import furo, myst_parser' 2> /dev/null || $(PIP) install -q --no-build-isolation -c envs/extras.txt -e '.[docs]'
	$(SNAKEMAKE) site $(ARGUMENTS)

crate: $(READY) ## results/crate.zip: what was made, in one file
	@$(BIN)/python -c 'import rocrate' 2> /dev/null || $(PIP) install -q --no-build-isolation -c envs/extras.txt -e '.[crate]'
	$(SNAKEMAKE) crate $(ARGUMENTS)

metadata: $(READY) ## CITATION.cff, .zenodo.json and codecheck.yml of this version; the lock's SBOM, results/sbom.json
	$(BIN)/python .ci/metadata.py
	@$(PYTHON) -m venv .venv-sbom && .venv-sbom/bin/python -m pip install -q cyclonedx-bom==7.5.0
	@mkdir -p results
	.venv-sbom/bin/python .ci/metadata.py sbom results/sbom.json

multiverse: $(READY) ## all verdicts with other defensible values and other seeds, and what they depend on
	$(SNAKEMAKE) multiverse $(ARGUMENTS)
	$(SNAKEMAKE) ledger $(ARGUMENTS)

schema: $(READY) ## config/*.schema.json, by which editors complete and explain the keys of YAML files
	$(BIN)/concord schema study > config/study.schema.json
	$(BIN)/concord schema config > config/config.schema.json

reliability: $(READY) ## many more faults and laws than `make test` tries: results/reliability.md
	$(PYTEST) --dist loadfile tests/workflow/test_faults.py tests/calibration --effort 10 $(PYTEST_ARGS)

# Each part is compared whatever the others say. The workflow comes before the runs at paper scale,
# for the data that it fetches.
GOLDEN := $(BIN)/python tests/golden/compare.py
RECORDED = $(if $(RECORD),--record)
golden: $(READY) ## are all numbers those that were recorded? RECORD=1 records them
	@failed=0; \
	$(GOLDEN) $(RECORDED) || failed=1; \
	$(SNAKEMAKE) reproduce networks samplers ledger $(ARGUMENTS) --config scale=smoke results=build/golden || exit 1; \
	$(GOLDEN) build/golden/smoke --scale smoke $(RECORDED) || failed=1; \
	$(GOLDEN) build/golden/paper --scale paper --make $(RECORDED) || failed=1; \
	exit $$failed

bench: $(READY) ## time the samplers: results/bench.csv
	@mkdir -p results
	$(BIN)/python tests/bench/bench.py -o results/bench.csv

lint: $(READY) ## style of code and workflow, spelling, the conventions of scientific Python
	$(BIN)/codespell
	$(BIN)/sp-repo-review .
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/snakemake --lint

types: $(READY) ## static types of src/ and of the studies' plug-ins
	$(BIN)/mypy
	for study in config/*/*/plugins/..; do (cd $$study && MYPYPATH="$(CURDIR)/src:." \
		$(abspath $(BIN))/mypy --config-file $(CURDIR)/pyproject.toml --namespace-packages \
		--cache-dir $(CURDIR)/.mypy_cache --explicit-package-bases plugins) || exit 1; done

clean: ## delete results/ (but its README), Snakemake's records and all caches; keep .venv and downloads
	find results/. -mindepth 1 -maxdepth 1 ! -name README.md -exec rm -rf {} +
	rm -rf build/golden .snakemake .hypothesis .mypy_cache .pytest_cache .ruff_cache .coverage
	find src tests workflow -type d -name __pycache__ -prune -exec rm -rf {} +

$(READY):
	@command -v $(PYTHON) > /dev/null || { echo "Concord needs Python 3.11 or newer, but there is no '$(PYTHON)' here: install it, or name another one with PYTHON=." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Concord needs Python 3.11 or newer, but '$(PYTHON)' is $$($(PYTHON) -V 2>&1): name a newer one, as in 'make setup PYTHON=python3.12'." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null || { echo "Concord needs Python's venv module, which '$(PYTHON)' lacks: install it (Debian and Ubuntu: apt-get install python3-venv), or name another Python with PYTHON=." >&2; exit 1; }
	@echo "Setting up .venv from envs/requirements.lock: about a minute, once."
	@rm -f .venv/ready-*
	@$(PYTHON) -m venv --clear .venv
	@# setuptools first: with it in place nothing is built with a version the lock does not name
	@{ sed -n '/^setuptools==/,/[^\\]$$/p' envs/requirements.lock | $(PIP) install -q --require-hashes -r /dev/stdin \
	  && $(PIP) install -q --require-hashes --no-build-isolation -r envs/requirements.lock \
	  && $(PIP) install -q --no-deps --no-build-isolation -e . \
	  && $(PIP) check; } || { echo "The set-up of .venv stopped for the reason that pip gives above: mend it and run make again (this is $$($(PYTHON) -V))." >&2; exit 1; }
	@# where Python is told to keep no bytecode, each of a thousand jobs would compile the package
	@$(BIN)/python -m compileall -q src
	@touch $@
