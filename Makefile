# gpubench. `make help` lists what can be typed.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
GPUBENCH := $(BIN)/gpubench
# Bytecode is kept whatever the shell says: else every test process compiles all tests anew.
TESTS := env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest
# More test processes than cores, because tests wait. What shares a cluster or an engine stays together (tests/conftest.py).
SIDE_BY_SIDE := --dist loadgroup --no-loadscope-reorder --numprocesses

# These count only when given on the command line (make bench NODES=2), never from the environment: a login shell
# that happens to export SITE or NODES must not change a benchmark.
given = $(if $(filter command line,$(origin $(1))),$(2))
given_each = $(if $(filter command line,$(origin $(1))),$(foreach word,$(value $(1)),$(2) '$(word)'))
PLANNING = \
	$(call given,SITE,--site '$(SITE)') \
	$(call given,UCX,--ucx '$(UCX)') \
	$(call given,VARIANTS,--variants '$(VARIANTS)') \
	$(call given,NODES,--nodes '$(NODES)') \
	$(call given,SUITE,--suite '$(SUITE)') \
	$(call given,BLOCKS,--blocks '$(BLOCKS)') \
	$(call given,REPS,--reps '$(REPS)') \
	$(call given,WORKERS,--workers '$(WORKERS)') \
	$(call given,PROTOCOL,--protocol '$(PROTOCOL)') \
	$(call given,RUNTIME,--runtime '$(RUNTIME)') \
	$(call given,ARRANGEMENT,--arrangement '$(ARRANGEMENT)') \
	$(call given,BASE,--base '$(BASE)') \
	$(call given,DATE,--date '$(DATE)') \
	$(call given,BUDGET,--budget '$(BUDGET)') \
	$(call given,SEED,--seed '$(SEED)') \
	$(call given_each,SET,--set)
ONE_CAMPAIGN = $(call given,CAMPAIGN,'$(CAMPAIGN)')

IMAGE_OPTIONS = \
	$(call given,SITE,--site '$(SITE)') \
	$(call given,UCX,--ucx '$(UCX)') \
	$(call given,DATE,--date '$(DATE)') \
	$(call given_each,SET,--set)
BUILD_OPTIONS = $(IMAGE_OPTIONS) \
	$(call given,RUNTIME,--runtime '$(RUNTIME)') \
	$(call given,BASE,--base '$(BASE)') \
	$(call given,OUT,--out '$(OUT)') \
	$(call given,PUSH,$(if $(filter 0,$(PUSH)),--no-push,--push))

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@awk '/^#:/{sub(/^#: ?/, ""); print}' $(MAKEFILE_LIST)
#:
#: variables of make bench, plan, render and submit, and the option of the command of that name that each becomes:
#:   SITE --site         profile in sites/, default local
#:   UCX --ucx           versions, e.g. UCX="1.16.0 1.22.0"; the first is the baseline
#:   VARIANTS --variants [LABEL=]SPEC[,KEY=VALUE...], parted by blanks
#:   NODES --nodes       node counts, e.g. NODES="1 2"
#:   SUITE --suite       suite in suites/, default quick
#:   BLOCKS --blocks     this many blocks, fixed
#:   BUDGET --budget     the most blocks that fit, e.g. BUDGET=10m
#:   REPS --reps         timed repetitions of each workload
#:   WORKERS --workers   workers per node, or a sweep: WORKERS="1 2 4"
#:   PROTOCOL --protocol tcp or ucx
#:   RUNTIME --runtime   how runs enter their image: venv, conda, modules, docker, pyxis, enroot, apptainer or charliecloud
#:   ARRANGEMENT --arrangement  sequential, interleaved (the clusters of all variants alive at once, repetitions in turns), or auto
#:   BASE --base         image that container builds start from
#:   DATE --date         YYYYMMDD: images of that day, default the newest in images.lock.toml
#:   SEED --seed         seed of the order
#:   SET --set           any key of the site profile, e.g. SET=limits.start=2m
#:   CAMPAIGN            directory; bench: run only what is missing there (--campaign); the others: this one, not a new one
#:   OUT --out           make render: directory for the scripts
#: make images takes UCX SITE RUNTIME BASE DATE SET, and OUT=dir for the Dockerfiles, PUSH=0 not to push (default: if the site names a registry);
#: make import takes UCX SITE DATE SET, and OUT=dir to write the script only.
#: They count only on the command line: the environment of the shell never changes a benchmark.

bench: $(VENV)/.tool ## compare real UCX versions on this machine; the variables are below
	@$(GPUBENCH) bench $(PLANNING) $(call given,CAMPAIGN,--campaign '$(CAMPAIGN)')

plan: $(VENV)/.tool ## jobs, blocks, runs, what is skipped and why, time, node-hours; runs nothing
	@$(GPUBENCH) plan $(ONE_CAMPAIGN) $(PLANNING)

render: $(VENV)/.tool ## scripts into OUT=dir, offline; the same words give the same bytes
	@$(GPUBENCH) render $(ONE_CAMPAIGN) $(PLANNING) $(call given,OUT,--out '$(OUT)')

submit: $(VENV)/.tool ## plan, and hand the jobs to the scheduler of SITE
	@$(GPUBENCH) submit $(ONE_CAMPAIGN) $(PLANNING)

status: $(VENV)/.tool ## what became of the jobs and runs of CAMPAIGN (default: the newest)
	@$(GPUBENCH) status $(ONE_CAMPAIGN)

cancel: $(VENV)/.tool ## end the jobs of CAMPAIGN that wait or run
	@$(GPUBENCH) cancel $(ONE_CAMPAIGN)

resume: $(VENV)/.tool ## run what is missing in CAMPAIGN
	@$(GPUBENCH) resume $(ONE_CAMPAIGN)

images: $(VENV)/.tool ## a container image per UCX version: Dockerfile, build, push
	@$(GPUBENCH) images build $(BUILD_OPTIONS)

import: $(VENV)/.tool ## import pushed images into squashfs files (enroot), here or as the site wants
	@$(GPUBENCH) images import $(IMAGE_OPTIONS) $(call given,OUT,--out '$(OUT)')

report: $(VENV)/.tool ## merge, verdicts and report.html of CAMPAIGN (default: the newest)
	@$(GPUBENCH) report $(ONE_CAMPAIGN)

test: $(VENV)/.dev ## unit, golden, property and integration tests
	@$(TESTS) $(SIDE_BY_SIDE) 3 -m 'not system and not testbed and not long' $(PYTEST)

test-system: $(VENV)/.dev ## tests on the real thing that are too slow for `make test`
	@bash requirements/system.sh
	@$(TESTS) $(SIDE_BY_SIDE) 4 -m 'system and not long' --timeout 600 $(PYTEST)

test-long: $(VENV)/.dev ## tests that take long, and property tests with ten times the examples; before a release
	@bash requirements/system.sh
	@PYTEST_THOROUGH=10 $(TESTS) $(SIDE_BY_SIDE) 3 -m 'long or property' --timeout 3600 $(PYTEST)

test-testbed: $(VENV)/.dev ## tests of the Slurm test cluster and the stand-ins themselves; when those change
	@bash requirements/system.sh
	@$(TESTS) -m testbed --timeout 600 $(PYTEST)

lint: $(VENV)/.dev ## ruff, mypy --strict, import-linter, shellcheck
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/mypy --config-file requirements/mypy-node.ini
	@$(BIN)/lint-imports
	@$(BIN)/shellcheck requirements/*.sh .ci/run docker/locks/lock.sh docker/context/gpubench

docs: $(VENV)/.dev ## the manual: docs/ into site/, which opens from disk
	@$(BIN)/python docs/generate.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict && echo "open site/index.html"

format: $(VENV)/.dev ## let ruff format the code
	@$(BIN)/ruff check --fix-only -q . ; $(BIN)/ruff format .

install: $(VENV)/.tool ## .venv with gpubench, from the hashed lock

lock: $(VENV)/.dev ## compile requirements/*.txt anew from pyproject.toml
	@bash requirements/lock.sh

clean: ## remove .venv and caches; outputs/ stays
	rm -rf $(VENV) site .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/.tool: requirements/tool.txt requirements/uv.txt pyproject.toml
	@bash requirements/install.sh $(VENV) tool

$(VENV)/.dev: $(VENV)/.tool requirements/dev.txt
	@bash requirements/install.sh $(VENV) dev

.PHONY: help bench plan render submit status cancel resume images import report test test-system test-long test-testbed lint docs format install lock clean
