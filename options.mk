# `make options` writes this file from the dataclasses and commands of gpubench/cli/.
#:
#: variables, the option that each becomes, and its targets (none named: bench, plan, submit):
#:   SITE --site               Profile in sites/, or a .toml file; default: local, e.g. SITE=mine.toml (also images,
#:                             import)
#:   UCX --ucx                 UCX versions, separated by commas or blanks; the first is the baseline, e.g.
#:                             UCX="1.16.0 1.22.0"
#:   VARIANTS --variants       [LABEL=]VERSION[,PACKAGE==VERSION...][,KEY=VALUE...], separated by blanks; the first is
#:                             the baseline
#:   NODES --nodes             Node counts, separated by commas or blanks, e.g. NODES="1 2"
#:   SUITE --suite             Suite in suites/, or a .toml file; default: the profile's
#:   BLOCKS --blocks           This many blocks, fixed; +N with bench --campaign: N more blocks
#:   BUDGET --budget           Time budget, like 10m: plan the largest number of blocks that fits
#:   REPS --reps               Timed repetitions of every workload
#:   WORKERS --workers         Workers per node: "2", or a sweep: "1 2 4"
#:   PROTOCOL --protocol       tcp or ucx
#:   RUNTIME --runtime         How runs enter their image: venv, conda, modules, docker, pyxis, enroot, apptainer or
#:                             charliecloud (also images)
#:   ARRANGEMENT --arrangement How a block runs its variants: sequential (one cluster after the other), interleaved (all
#:                             alive, repetitions in turns), or auto (interleaved where that is possible)
#:   BASE --base               Image that container builds start from; default: the profile's (also images)
#:   DATE --date               YYYYMMDD: images of that day; default: the newest in images.lock.toml (also images,
#:                             import)
#:   SEED --seed               Seed of the order; the same seed gives the same order
#:   SET --set                 KEY=VALUE: any key of the site profile, dotted, like launcher=ssh (also images, import)
#:   CAMPAIGN --campaign       Continue this campaign: run what is missing; with --blocks +N, run N more blocks (bench)
#:   CAMPAIGN                  Directory of a planned campaign, instead of the options that plan one (plan, submit)
#:   OUT --out                 Directory for plan, scripts and run specs. Alone, for an existing plan: write its scripts
#:                             again (plan)
#:   CAMPAIGN                  Directory of the campaign, or a pack if the command only reads; default: the newest in
#:                             outputs/ (status, cancel)
#:   ENDED --ended             End nothing: keep with the job that you say that it has ended. For one whose scheduler
#:                             can't tell (cancel)
#:   UCX --ucx                 UCX versions, separated by commas or blanks, e.g. UCX="1.16.0 1.22.0" (images, import)
#:   PUSH --push               Push to the site's registry; default: push if the site names one; PUSH=0: --no-push
#:                             (images)
#:   OUT --out                 Where to write Dockerfiles; default: outputs/images (images)
#:   OUT --out                 Only write import.sh there; don't run it (import)
#:   CAMPAIGN                  A campaign (any path inside of it), a pack or an import; default: the newest with results
#:                             in outputs/ (report)
#: They count only on the command line: the environment of the shell never changes a benchmark.

VARIABLES = \
	SITE \
	UCX \
	VARIANTS \
	NODES \
	SUITE \
	BLOCKS \
	BUDGET \
	REPS \
	WORKERS \
	PROTOCOL \
	RUNTIME \
	ARRANGEMENT \
	BASE \
	DATE \
	SEED \
	SET \
	CAMPAIGN \
	OUT \
	ENDED \
	PUSH

PLANNING = \
	$(call given,SITE,--site) \
	$(call given,UCX,--ucx) \
	$(call given,VARIANTS,--variants) \
	$(call given,NODES,--nodes) \
	$(call given,SUITE,--suite) \
	$(call given,BLOCKS,--blocks) \
	$(call given,BUDGET,--budget) \
	$(call given,REPS,--reps) \
	$(call given,WORKERS,--workers) \
	$(call given,PROTOCOL,--protocol) \
	$(call given,RUNTIME,--runtime) \
	$(call given,ARRANGEMENT,--arrangement) \
	$(call given,BASE,--base) \
	$(call given,DATE,--date) \
	$(call given,SEED,--seed) \
	$(call given_each,SET,--set)

BENCH_OPTIONS = \
	$(PLANNING) \
	$(call given,CAMPAIGN,--campaign)

PLAN_OPTIONS = \
	$(PLANNING) \
	$(call given,CAMPAIGN,) \
	$(call given,OUT,--out)

SUBMIT_OPTIONS = \
	$(PLANNING) \
	$(call given,CAMPAIGN,)

STATUS_OPTIONS = \
	$(call given,CAMPAIGN,)

CANCEL_OPTIONS = \
	$(call given,CAMPAIGN,) \
	$(call given,ENDED,--ended)

IMAGES_OPTIONS = \
	$(call given,UCX,--ucx) \
	$(call given,SITE,--site) \
	$(call given,RUNTIME,--runtime) \
	$(call given,BASE,--base) \
	$(call given,DATE,--date) \
	$(call given_flag,PUSH,--push,--no-push) \
	$(call given,OUT,--out) \
	$(call given_each,SET,--set)

IMPORT_OPTIONS = \
	$(call given,UCX,--ucx) \
	$(call given,SITE,--site) \
	$(call given,DATE,--date) \
	$(call given,OUT,--out) \
	$(call given_each,SET,--set)

REPORT_OPTIONS = \
	$(call given,CAMPAIGN,)
