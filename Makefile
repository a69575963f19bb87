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

#:
#: variables, and the targets that take them:
#:   SITE      bench, plan, render, submit, images, import: site in sites/, or a .toml file; default: local
#:   UCX       bench, plan, render, submit, images, import: versions; the first is the baseline, e.g. UCX="1.16.0 1.22.0"
#:   VARIANTS  bench, plan, render, submit: [LABEL=]VERSION[,PACKAGE==VERSION...][,KEY=VALUE...], separated by blanks
#:   NODES     bench, plan, render, submit: node counts, e.g. NODES="1 2"
#:   SUITE     bench, plan, render, submit: suite in suites/, or a .toml file; default: the site's
#:   BLOCKS    bench, plan, render, submit: number of blocks; with CAMPAIGN (bench, resume), BLOCKS=+N: N more
#:   BUDGET    bench, plan, render, submit: time, like 10m: as many blocks as fit
#:   OUT       plan, render, images, import: directory for scripts, Dockerfiles or import.sh
#:   CAMPAIGN  bench, plan, render, submit, status, cancel, resume, report: directory of a campaign
#:   PUSH      images: push to the site's registry; PUSH=0: don't
#:   ARGS      all of these targets: any other option, quoted as for the shell, e.g. ARGS='--reps 20 --workers "1 2"'
#: They count only on the command line: the environment of the shell never changes a benchmark.
planning := SITE UCX VARIANTS NODES SUITE BLOCKS BUDGET
takes_bench := $(planning) CAMPAIGN
takes_plan := $(planning) CAMPAIGN OUT
takes_render := $(takes_plan)
takes_submit := $(planning) CAMPAIGN
takes_resume := CAMPAIGN BLOCKS
takes_status := CAMPAIGN
takes_cancel := CAMPAIGN
takes_report := CAMPAIGN
takes_images := SITE UCX OUT PUSH
takes_import := SITE UCX OUT
variables := $(sort $(takes_plan) $(takes_images)) ARGS

given := $(foreach name,$(.VARIABLES),$(if $(filter command line,$(origin $(name))),$(name)))
# Make ignores a variable that nothing reads: a misspelt one would measure the default.
unknown := $(filter-out $(variables) PYTEST VENV GPUBENCH PYTHON,$(given))
$(if $(unknown),$(error there is no variable $(unknown): `make help` lists the variables, `gpubench --help` all options))
taken = $(if $(takes_$(1)),$(takes_$(1)) ARGS)
$(foreach goal,$(MAKECMDGOALS),$(foreach name,$(filter $(filter-out $(call taken,$(goal)),$(variables)),$(given)),\
	$(error make $(goal) takes no $(name)$(if $(call taken,$(goal)),; it takes $(call taken,$(goal))))))
define newline


endef
# A recipe's line ends there, whatever the quotes around it.
$(foreach name,$(filter $(variables),$(given)),$(if $(findstring $(newline),$(value $(name))),\
	$(error $(name) has a line break: write it in one line)))
# The value as it was typed: make expands no $ in it, and the shell gets it in quotes. ARGS is quoted by the user.
option = $(if $(filter $(1),$(given)),$(2) '$(subst ','\'',$(value $(1)))')
PLANNING = $(call option,SITE,--site) $(call option,UCX,--ucx) $(call option,VARIANTS,--variants) \
	$(call option,NODES,--nodes) $(call option,SUITE,--suite) $(call option,BLOCKS,--blocks) $(call option,BUDGET,--budget)
IMAGES = $(call option,SITE,--site) $(call option,UCX,--ucx) $(call option,OUT,--out)
MORE = $(if $(filter ARGS,$(given)),$(value ARGS))
unexport $(variables)

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@awk '/^#:/{sub(/^#: ?/, ""); print}' $(MAKEFILE_LIST)

bench: $(VENV)/.tool ## compare real UCX versions on this machine; the variables are below
	@$(GPUBENCH) bench $(PLANNING) $(call option,CAMPAIGN,--campaign) $(MORE)

plan: $(VENV)/.tool ## jobs, blocks, runs, what is skipped and why, time, node-hours; runs and writes nothing
	@$(GPUBENCH) plan $(PLANNING) $(call option,CAMPAIGN) $(call option,OUT,--out) $(MORE)

render: $(VENV)/.tool ## write scripts into OUT=dir, offline; the same command gives the same bytes
	@$(if $(filter OUT CAMPAIGN,$(given)),,echo "type: make render OUT=dir" >&2; exit 2;) \
	$(GPUBENCH) plan $(PLANNING) $(call option,OUT,--out) $(call option,CAMPAIGN,--out) $(MORE)

submit: $(VENV)/.tool ## plan, and submit the jobs to the scheduler of SITE
	@$(GPUBENCH) submit $(PLANNING) $(call option,CAMPAIGN) $(MORE)

status: $(VENV)/.tool ## status of the jobs and runs of CAMPAIGN (default: the newest)
	@$(GPUBENCH) status $(call option,CAMPAIGN) $(MORE)

cancel: $(VENV)/.tool ## end the jobs of CAMPAIGN that wait or run
	@$(GPUBENCH) cancel $(call option,CAMPAIGN) $(MORE)

resume: $(VENV)/.tool ## the same as make bench CAMPAIGN=dir
	@$(if $(filter CAMPAIGN,$(given)),,echo "type: make resume CAMPAIGN=dir" >&2; exit 2;) \
	$(GPUBENCH) bench $(PLANNING) $(call option,CAMPAIGN,--campaign) $(MORE)

images: $(VENV)/.tool ## a container image per UCX version: Dockerfile, build, push
	@$(GPUBENCH) images build $(IMAGES) $(if $(filter PUSH,$(given)),$(if $(filter 0,$(value PUSH)),--no-push,--push)) $(MORE)

import: $(VENV)/.tool ## import pushed images into squashfs files (by enroot or Apptainer), here or as the site file says
	@$(GPUBENCH) images import $(IMAGES) $(MORE)

report: $(VENV)/.tool ## verdicts and report.html of CAMPAIGN (default: the newest with results)
	@$(GPUBENCH) report $(call option,CAMPAIGN) $(MORE)

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

clean: ## remove .venv and caches; outputs/ stays
	rm -rf $(VENV) site .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/.tool: requirements/tool.txt requirements/uv.txt pyproject.toml
	@bash requirements/install.sh $(VENV) tool

$(VENV)/.dev: $(VENV)/.tool requirements/dev.txt
	@bash requirements/install.sh $(VENV) dev

.PHONY: help bench plan render submit status cancel resume images import report test test-system test-long test-testbed lint docs format install lock clean
