# Every target sets itself up: it needs a Python 3.11 or newer with pip, and nothing else.
#   make PYTHON=python3.12 test     to choose the interpreter

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
RUN := $(BIN)/python
# Two processes; the tests of a file stay together, so that they share what they have compiled and solved.
PYTEST := $(RUN) -m pytest -n 2 --dist loadfile
INSTALL := $(RUN) -m pip install -qq --disable-pip-version-check --no-input

.DEFAULT_GOAL := help
.PHONY: help demo test test-quick test-all test-generic test-device test-cpus lint format bench bench-smoke docs \
	wheel dist check-site check-release publish clean

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.demo  ## fit and certify a sparse classifier, follow its path, cross-validate, race solvers, draw
	@$(RUN) examples/demo.py

test: $(VENV)/.dev  ## run the tests of every part, doctests included
	@$(PYTEST)

test-quick: $(VENV)/.dev  ## run those that take a minute or two once their kernels are compiled
	@$(PYTEST) -m "not slow and not campaign"

test-all: $(VENV)/.dev  ## run everything: all combinations, the campaigns, other processors; an hour or more
	@$(PYTEST) -m ""
	@$(RUN) tests/campaigns/judge_certificates.py
	@$(RUN) tests/campaigns/mutate_files.py
	@$(RUN) tests/machines.py

test-generic: $(VENV)/.dev  ## run the tests that compare numbers with kernels for any x86-64 processor
	@$(RUN) tests/machines.py generic

test-device: $(VENV)/.dev  ## run the tests of data on a device, on the GPU too if there is one
	@$(PYTEST) -m "" -rs $$(grep -rl --include='test_*.py' stand_in_device tests)

# make test-cpus MACHINES="oldest generic"     to choose some of them
test-cpus: $(VENV)/.dev  ## run these tests as other processors, BLAS kernels, threads and versions would
	@$(RUN) tests/machines.py $(MACHINES)

lint: $(VENV)/.dev  ## check style, formatting, types and workflows
	@$(RUN) -m ruff check --quiet .
	@$(RUN) -m ruff format --check --quiet . || { echo "Some files are not formatted: run 'make format'." >&2; exit 1; }
	@$(RUN) -m mypy
	@$(BIN)/check-jsonschema -q --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@$(BIN)/check-jsonschema -q --builtin-schema vendor.dependabot .github/dependabot.yml
	@$(BIN)/check-jsonschema -q --builtin-schema vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	@$(BIN)/zizmor --quiet --offline --no-progress --config .github/zizmor.yml .github/workflows

format: $(VENV)/.dev  ## sort imports and format the code
	@$(RUN) -m ruff check --quiet --select I --fix .
	@$(RUN) -m ruff format --quiet .

bench: $(VENV)/.bench  ## time the deterministic solvers side by side with C-OPT
	@$(RUN) benchmarks/peers/deterministic.py

bench-smoke: $(VENV)/.dev  ## run small benchmarks that need no data and no peers; times go to build/benchmarks/*.json
	@$(RUN) benchmarks/auto_sweep.py --quick --only l1 box simplex --json build/benchmarks/auto_sweep.json
	@$(RUN) benchmarks/peers/logistic.py --quick --cpu --only dense --json build/benchmarks/logistic.json

docs: $(VENV)/.docs  ## build the documentation into docs/_build/html
	@$(RUN) -m sphinx -W --keep-going -j 2 -b html docs docs/_build/html
	@echo "The documentation is in docs/_build/html/index.html."

check-site: $(VENV)/.created  ## walk the built documentation: links, titles, formulas, errors in a browser if there is one
	@$(RUN) .ci/check_site.py docs/_build/html

wheel: $(VENV)/.created  ## build the wheel with its kernels into dist/, and try it in an environment of its own
	@$(INSTALL) "build>=1.2"
	@HATCH_BUILD_HOOK_ENABLE_CUSTOM=true $(RUN) -m build --wheel --outdir dist .
	@$(RUN) .ci/try_wheel.py "$$(ls -t dist/condgrad-*.whl | head -n 1)"

dist: $(VENV)/.created  ## build the sdist and from it the pure wheel, install it in an environment of its own, test it there
	@$(INSTALL) "build>=1.2"
	@rm -rf dist/pure
	@$(RUN) -m build --outdir dist/pure .
	@$(RUN) .ci/try_dist.py dist/pure

# make check-release TAG=v0.1.0
check-release: $(VENV)/.created  ## check that the version, the tag, the changelog and the citation agree
	@$(RUN) .ci/check_release.py $(TAG)

# The identity of the workflow that runs this is the password: it works in the release workflow and nowhere else.
publish: $(VENV)/.created
	@$(INSTALL) "uv>=0.5"
	@$(RUN) -m uv publish --trusted-publishing always dist/*

clean:  ## remove the virtual environment and everything that was generated
	@rm -rf $(VENV) build dist docs/_build docs/generated docs/auto_examples docs/sg_execution_times.rst .mypy_cache .pytest_cache .ruff_cache .hypothesis .benchmarks
	@rm -f condgrad-demo.png
	@find condgrad tests examples benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# One stamp per set of extras; all are installed again when pyproject.toml changes.
$(VENV)/.demo: EXTRAS = plot,progress
$(VENV)/.dev: EXTRAS = dev
$(VENV)/.bench: EXTRAS = bench
$(VENV)/.docs: EXTRAS = docs
$(VENV)/.demo $(VENV)/.dev $(VENV)/.bench $(VENV)/.docs: pyproject.toml | $(VENV)/.created
	@echo "Installing condgrad[$(EXTRAS)] into $(VENV) ..."
	@$(INSTALL) -e ".[$(EXTRAS)]" || { echo "The installation of condgrad[$(EXTRAS)] failed: see pip's message above." >&2; exit 1; }
	@touch $@

# The stamp is written last, so that an interrupted setup is taken up again.
$(VENV)/.created:
	@command -v "$(PYTHON)" > /dev/null || { \
	  echo "condgrad needs Python 3.11 or newer, but '$(PYTHON)' was not found: run make with PYTHON=/path/to/python." >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "condgrad needs Python 3.11 or newer, but '$(PYTHON)' is $$("$(PYTHON)" --version 2>&1): run make with PYTHON=/path/to/python." >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2> /dev/null || { \
	  echo "'$(PYTHON)' lacks the venv module: install it (on Debian or Ubuntu, the package python3-venv) and run make again." >&2; exit 1; }
	@"$(PYTHON)" -m venv $(VENV)
	@touch $@
