# gpubench. `make help` lists what can be typed.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
GPUBENCH := $(BIN)/gpubench
# Then messages name a target as the way on, not a command.
BY_MAKE := GPUBENCH_BY_MAKE=1
# Bytecode is kept whatever the shell says: else every test process compiles all tests anew.
TESTS := env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest
# More test processes than cores, because tests wait. What shares a cluster or an engine stays together (tests/conftest.py).
SIDE_BY_SIDE := --dist loadgroup --no-loadscope-reorder --numprocesses

# These count only when given on the command line (make bench NODES=2), never from the environment: a login shell
# that happens to export SITE or NODES must not change a benchmark.
given = $(if $(filter command line,$(origin $(1))),$(2) '$($(1))')
given_each = $(if $(filter command line,$(origin $(1))),$(foreach word,$(value $(1)),$(2) '$(word)'))
given_flag = $(if $(filter command line,$(origin $(1))),$(if $(filter 0,$($(1))),$(3),$(2)))
include options.mk

# Make ignores a variable that nothing reads: a misspelt one would measure the default.
unknown = $(strip $(foreach name,$(.VARIABLES),$(if $(filter command line,$(origin $(name))),\
	$(filter-out $(VARIABLES) PYTEST VENV GPUBENCH PYTHON,$(name)))))
$(if $(unknown),$(error there is no variable $(unknown): `make help` lists the variables, `gpubench --help` all options))

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@awk '/^#:/{sub(/^#: ?/, ""); print}' $(MAKEFILE_LIST)

bench: $(VENV)/.tool ## compare real UCX versions on this machine; the variables are below
	@$(BY_MAKE) $(GPUBENCH) bench $(BENCH_OPTIONS)

plan: $(VENV)/.tool ## jobs, blocks, runs, what is skipped and why, time, node-hours; runs and writes nothing
	@$(BY_MAKE) $(GPUBENCH) plan $(PLAN_OPTIONS)

render: $(VENV)/.tool ## write scripts into OUT=dir, offline; the same command gives the same bytes
	@$(if $(call given,OUT)$(call given,CAMPAIGN),,echo "type: make render OUT=dir" >&2; exit 2;) \
	$(BY_MAKE) $(GPUBENCH) plan $(PLANNING) $(call given,OUT,--out) $(call given,CAMPAIGN,--out)

submit: $(VENV)/.tool ## plan, and submit the jobs to the scheduler of SITE
	@$(BY_MAKE) $(GPUBENCH) submit $(SUBMIT_OPTIONS)

status: $(VENV)/.tool ## status of the jobs and runs of CAMPAIGN (default: the newest)
	@$(BY_MAKE) $(GPUBENCH) status $(STATUS_OPTIONS)

cancel: $(VENV)/.tool ## end the jobs of CAMPAIGN that wait or run
	@$(BY_MAKE) $(GPUBENCH) cancel $(CANCEL_OPTIONS)

resume: $(VENV)/.tool ## the same as make bench CAMPAIGN=dir
	@$(if $(call given,CAMPAIGN),,echo "type: make resume CAMPAIGN=dir" >&2; exit 2;) \
	$(BY_MAKE) $(GPUBENCH) bench $(BENCH_OPTIONS)

images: $(VENV)/.tool ## a container image per UCX version: Dockerfile, build, push
	@$(BY_MAKE) $(GPUBENCH) images build $(IMAGES_OPTIONS)

import: $(VENV)/.tool ## import pushed images into squashfs files (by enroot or Apptainer), here or as the site file says
	@$(BY_MAKE) $(GPUBENCH) images import $(IMPORT_OPTIONS)

report: $(VENV)/.tool ## verdicts and report.html of CAMPAIGN (default: the newest with results)
	@$(BY_MAKE) $(GPUBENCH) report $(REPORT_OPTIONS)

test: $(VENV)/.dev ## unit, golden, property and integration tests
	@$(TESTS) $(SIDE_BY_SIDE) 3 -m 'not system and not testbed and not long' $(PYTEST)

test-system: $(VENV)/.dev ## tests with the real programs that are too slow for `make test`
	@bash requirements/system.sh
	@$(TESTS) $(SIDE_BY_SIDE) 4 -m 'system and not long' --timeout 600 $(PYTEST)

test-long: $(VENV)/.dev ## tests that take long, and property tests with ten times the examples; before a release
	@bash requirements/system.sh
	@PYTEST_THOROUGH=10 $(TESTS) $(SIDE_BY_SIDE) 3 -m 'long or property' --timeout 3600 $(PYTEST)

test-testbed: $(VENV)/.dev ## tests of the Slurm test cluster and the stand-ins themselves; run them when those change
	@bash requirements/system.sh
	@$(TESTS) -m testbed --timeout 600 $(PYTEST)

lint: $(VENV)/.dev ## ruff, mypy --strict, import-linter, shellcheck
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/mypy --config-file requirements/mypy-node.ini
	@$(BIN)/lint-imports
	@$(BIN)/shellcheck requirements/*.sh .ci/run docker/locks/lock.sh docker/context/gpubench tests/gpu/lock.sh

docs: $(VENV)/.dev ## the manual: docs/ into site/, which opens from disk
	@$(BIN)/python docs/generate.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict && echo "open site/index.html"

format: $(VENV)/.dev ## let ruff format the code
	@$(BIN)/ruff check --fix-only -q . ; $(BIN)/ruff format .

install: $(VENV)/.tool ## .venv with gpubench, from the hashed lock

lock: $(VENV)/.dev ## compile requirements/*.txt anew from pyproject.toml
	@bash requirements/lock.sh

options: $(VENV)/.dev ## write options.mk anew: what make knows of the commands' options
	@$(BIN)/python docs/make_options.py >$(VENV)/options.mk && mv $(VENV)/options.mk options.mk

clean: ## remove .venv and caches; outputs/ stays
	rm -rf $(VENV) site .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/.tool: requirements/tool.txt requirements/uv.txt pyproject.toml
	@bash requirements/install.sh $(VENV) tool

$(VENV)/.dev: $(VENV)/.tool requirements/dev.txt
	@bash requirements/install.sh $(VENV) dev

.PHONY: help bench plan render submit status cancel resume images import report test test-system test-long test-testbed lint docs format install lock options clean
