"""Whole campaigns: run them, submit them, continue them.

A run of the baseline with a few repetitions, before ``bench`` plans: how often to repeat, and what fits.
"""

import contextlib
import dataclasses
import datetime as dt
import json
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from gpubench.cli.campaign.display import (
    plan_lines,
    require_complete,
    show_next_steps,
    show_verdicts,
    write_report,
)
from gpubench.cli.campaign.options import CampaignOptions
from gpubench.cli.campaign.planning import (
    CampaignRequest,
    check_plan,
    makes_first_pass,
    parse_request,
    plan_campaign,
    resolve_auto,
    write_scripts,
)
from gpubench.cli.campaign.preflight import place_campaign, prepare
from gpubench.cli.campaign.running import (
    Budget,
    account_now,
    continue_command,
    declare_ended,
    job_states,
    missing_words,
    require_no_doubt,
    run_here,
    run_jobs,
    submit_jobs,
    watch_jobs,
)
from gpubench.cli.images.obtain import obtain_images
from gpubench.cli.results.open_target import root_of
from gpubench.cli.say import say
from gpubench.errors import InterruptedByUserError, UsageError
from gpubench.files import locked
from gpubench.model.plan import PlanAddition
from gpubench.model.quantities import format_seconds
from gpubench.model.text import counted
from gpubench.plan.additions import plan_more, plan_repair
from gpubench.plan.block_design import interleaved, warmup_repetitions
from gpubench.plan.budget import (
    LEAST_BLOCKS,
    LEAST_REPS,
    LEAST_SCATTER,
    MOST_BLOCKS,
    FirstPass,
    PilotWorkload,
    fill_budget,
)
from gpubench.plan.feasibility import SEQUENTIAL
from gpubench.plan.make import DEFAULT_POWER
from gpubench.schedulers import BATCH, SCHEDULERS
from gpubench.spec.plain import parse_lines
from gpubench.spec.records import SAMPLES_FILE
from gpubench.stats.settings import FailOn
from gpubench.store.accounting import RunResult
from gpubench.store.campaign import Campaign
from gpubench.store.rundirs import record_seconds, remove_leftovers


def bench(options: CampaignOptions, *, fail_on: FailOn | None, over_budget: bool) -> None:
    """All steps from options to report; no block ends after a budget that the user gave, unless ``over_budget``."""
    began = time.monotonic()
    request = with_repetitions(parse_request(options))
    campaign = plan_campaign(request)
    for line in plan_lines(campaign):
        say(line)
    what = "images, first pass and plan" if request.tried else "images and plan"
    say(f"{what} took {format_seconds(time.monotonic() - began)}")
    say("")
    budget = None if over_budget else _budget_limit(options, campaign)
    with campaign_lock(campaign.directory):
        prepare(campaign)
        run_all(campaign, None, budget)
        _conclude(campaign, fail_on=fail_on)


def go_on(directory: Path, *, more: int = 0, fail_on: FailOn | None = None) -> None:
    """Run what is missing and ``more`` blocks, and judge.

    Jobs that wait or run in a queue are waited for first.
    """
    directory = root_of(directory)
    with campaign_lock(directory):
        campaign = Campaign.open(directory)
        if campaign.plan.site.scheduler in BATCH and any(state.alive for state in job_states(campaign).values()):
            with _resume_hint_on_interrupt(campaign):
                watch_jobs(campaign)
        if more:
            prepare(campaign)  # what can't be run isn't appended
        campaign, blocks = missing_blocks(campaign, more)
        if blocks:
            prepare(campaign)
            run_all(campaign, blocks)
        else:
            say("nothing is missing")
        _conclude(campaign, fail_on=fail_on)


def submit_what_is_missing(directory: Path) -> None:
    """Submit what is missing, without waiting for the queue."""
    directory = root_of(directory)
    with campaign_lock(directory):
        campaign, blocks = missing_blocks(Campaign.open(directory))
        if not blocks:
            say("nothing is missing")
            return
        prepare(campaign)
        if submit_jobs(campaign, blocks) is None:
            run_all(campaign, blocks)
            require_complete(campaign, account_now(campaign))


def plan_and_submit(options: CampaignOptions, *, here: bool) -> None:
    """Plan a campaign and submit its jobs."""
    campaign = plan_campaign(parse_request(options))
    for line in plan_lines(campaign):
        say(line)
    submit(campaign, here=here, budget=_budget_limit(options, campaign))


def _budget_limit(options: CampaignOptions, campaign: Campaign) -> Budget | None:
    """The limit of ``--budget``. A budget in the site profile is only a default; it doesn't limit the campaign."""
    seconds = campaign.plan.budget_s
    return None if options.budget is None or seconds is None else Budget(seconds)


def submit(campaign: Campaign, *, here: bool, budget: Budget | None = None) -> None:
    """Run the planned jobs of a campaign that has not been run; ``here``: on the nodes that this shell holds."""
    with campaign_lock(campaign.directory):
        _require_idle(campaign)
        if any(campaign.runs_dir.glob("*-*")):
            raise UsageError(
                f"{campaign.directory} has been run already",
                then=f"to run what is missing: {continue_command(campaign)}",
            )
        write_scripts(campaign)
        if here:
            place_campaign(campaign)
            run_here(campaign)
        else:
            prepare(campaign)
            if submit_jobs(campaign, None, budget) is not None:
                return
            run_all(campaign, None, budget)
        require_complete(campaign, account_now(campaign))


def missing_blocks(campaign: Campaign, more: int = 0) -> tuple[Campaign, dict[str, list[int]]]:
    """The blocks by job that ``campaign`` still needs, none where nothing is missing, with its scripts written.

    The campaign that comes back has a new block for every broken one, ``more`` blocks beside those at each place, and
    files that dead writers left in it are removed.
    Raises UsageError while one of its jobs lives, or may live.
    """
    _require_idle(campaign)
    remove_leftovers(campaign.directory)
    status = {outcome.run.run: outcome.status for outcome in account_now(campaign).outcomes}
    repair = plan_repair(campaign.whole_plan, status, dt.datetime.now(dt.UTC).isoformat())
    blocks: dict[str, list[int]] = dict(repair.again)
    if repair.addition is not None:
        campaign = campaign.append(repair.addition)
        say(f"{repair.addition.reason}: {counted(sum(len(job.blocks) for job in repair.addition.jobs), 'new block')}")
        blocks |= _numbers(repair.addition)
    if more:
        addition = plan_more(campaign.whole_plan, more, dt.datetime.now(dt.UTC).isoformat())
        campaign = campaign.append(addition)
        say(addition.reason)
        blocks |= _numbers(addition)
    if blocks:
        write_scripts(campaign)
    return campaign, blocks


def run_all(campaign: Campaign, blocks: Mapping[str, Sequence[int]] | None, budget: Budget | None = None) -> None:
    """Run the jobs, here or in the site's queue, and show what happens; ``blocks`` by job, None: all of them.

    No block is begun that would end beyond the ``budget``.
    """
    with _resume_hint_on_interrupt(campaign):
        left = submit_jobs(campaign, blocks, budget)
        if left is None:
            run_jobs(campaign, blocks, budget=budget)
            return
        watch_jobs(campaign)
        while left:
            every = {job.job: [block.block for block in job.blocks] for job in campaign.jobs}
            left = submit_jobs(campaign, {job: (blocks or every)[job] for job in left}, budget)
            watch_jobs(campaign)


@contextlib.contextmanager
def _resume_hint_on_interrupt(campaign: Campaign) -> Iterator[None]:
    try:
        yield
    except InterruptedByUserError as stopped:
        raise InterruptedByUserError(
            f"{stopped}; {missing_words(campaign)}",
            then=f"to go on: {continue_command(campaign)}",
        ) from None


def _numbers(addition: PlanAddition) -> dict[str, list[int]]:
    return {job.job: [block.block for block in job.blocks] for job in addition.jobs}


def _conclude(campaign: Campaign, *, fail_on: FailOn | None) -> None:
    # Late: scipy takes a second, which belongs behind the measurements.
    from gpubench.cli.results.judge import judge_campaign
    from gpubench.stats.verdict import exit_code

    judged = judge_campaign(campaign)
    say("")
    show_verdicts(judged.verdicts, judged.accounting, judged.seconds)
    page = write_report(campaign, judged)
    show_next_steps(page.steps)
    require_complete(campaign, judged.accounting)
    if code := exit_code(judged.verdicts, fail_on):
        say(f"--fail-on {fail_on}: exit {code}")
        raise typer.Exit(code)


def declare_job_ended(campaign: Campaign, job_id: str) -> None:
    """Write into the campaign that this user says that one of its jobs has ended; see ``declare_ended``."""
    with campaign_lock(campaign.directory):
        directories = {job.job: campaign.job_dir(job.job) for job in campaign.jobs}
        declare_ended(SCHEDULERS[campaign.plan.site.scheduler], directories, job_id)


@contextlib.contextmanager
def campaign_lock(directory: Path) -> Iterator[None]:
    """Lock the campaign for planning and running; raises UsageError if there is none, or it is locked."""
    Campaign.open(directory)
    try:
        with locked(directory, wait=False):
            yield
    except BlockingIOError:
        raise UsageError(
            f"another gpubench is at work on {directory}",
            then=f"wait until it ends, or check it: gpubench status {directory}",
        ) from None


def _require_idle(campaign: Campaign) -> None:
    """End a job whose front end is dead; raises UsageError unless all other jobs of the campaign have ended surely."""
    states = job_states(campaign)
    alive = {job: state for job, state in sorted(states.items()) if state.alive}
    for job in [job for job, state in alive.items() if state.orphaned]:
        say(f"job {job}: {alive.pop(job).reason}; it is ended")
        SCHEDULERS[campaign.plan.site.scheduler].cancel(campaign.job_dir(job))
    if alive:
        lost = "; ".join(
            f"{job}: {state.reason}" for job, state in alive.items() if state.phase == "running" and state.reason
        )
        raise UsageError(
            f"{campaign.directory}: job {', '.join(alive)} is still running{f' ({lost})' if lost else ''}",
            then=f"wait until it ends, or check it: gpubench status {campaign.directory}",
        )
    require_no_doubt(campaign, states)


FOLDER = "first-passes"
"""Folder below the outputs for first passes, which aren't campaigns of their own."""
REPS = 4
TURN_S = 0.05
"""Of an interleaved run, to take a turn and give it back: in eight blocks of one campaign, on two cores, the changes of
turn took about 0.5 s a block more than a first pass takes between its workloads."""

FILLED = 0.92
"""Part of the budget that is planned, because candidates may be slower than the baseline."""


def with_repetitions(request: CampaignRequest) -> CampaignRequest:
    """``request`` with the blocks and repetitions that fill the budget, if a first pass can choose them.

    It chooses repetitions where the suite says ``first_pass`` and ``--reps`` isn't given, blocks where ``--blocks``
    isn't. A first pass that fails says nothing of the versions: the repetitions are the suite's own then, and the plan
    says why.
    """
    budget_s = request.budget_s
    if budget_s is None or not makes_first_pass(request):
        return request
    check_plan(request)
    # An image that can't be had ends it here, before a run is spent; and all of them decide how processes wait.
    found = obtain_images(request.site, [variant.ucx for variant in request.variants], request.options)
    resolved = resolve_auto(request, {spec: entry[1] for spec, entry in found.items() if entry}).site
    baseline = request.variants[0]
    say(f"first pass of {baseline.label}: {REPS} repetitions of each workload, to choose how many fill the budget")
    outcome = _run(request, resolved.layout.waiting)
    together = interleaved(resolved)
    rows = _timed_rows(outcome)
    tried = _tried(request, rows, together=together)
    if not tried:
        why = f"the first pass ended {outcome.status}{f': {outcome.reason}' if outcome.reason else ' without samples'}"
        return dataclasses.replace(request, repetitions=[f"repetitions are those of suite {request.suite}: {why}"])
    seconds = record_seconds(outcome.record) if outcome.record else 0.0
    variants, fixed_blocks = len(request.variants), request.options.chosen_blocks()
    first = FirstPass(
        outcome.record.campaign if outcome.record else "",
        seconds,
        _fixed_s(request, rows, tried, seconds, together=together),
        tried,
    )
    left_s = max(budget_s - seconds, 0.0)
    blocks, reps = fill_budget(first, budget_s=FILLED * left_s, blocks=fixed_blocks or MOST_BLOCKS, variants=variants)
    workloads = [dataclasses.replace(item, reps=reps.get(item.params_id, item.reps)) for item in request.workloads]
    request = dataclasses.replace(
        request,
        tried=first,
        workloads=workloads,
        first_pass=first.campaign,
        blocks=fixed_blocks or blocks,
        budget_s=left_s,
        spent_s=seconds,
    )
    return dataclasses.replace(request, repetitions=_words(first, request))


def _run(request: CampaignRequest, waiting: str) -> RunResult:
    """One run of the first variant, in a campaign that is kept below the outputs."""
    layout = request.site.layout.model_copy(update={"arrangement": SEQUENTIAL, "waiting": waiting})
    alone = dataclasses.replace(
        request,
        site=request.site.model_copy(update={"layout": layout}),
        workloads=[dataclasses.replace(item, reps=REPS) for item in request.workloads],
        variants=request.variants[:1],
        blocks=1,
        budget_s=None,
        budget_firm=False,
        power=None,
        outputs=request.outputs / FOLDER,
        chooses_repetitions=False,
    )
    campaign = plan_campaign(alone, quiet=True)
    prepare(campaign)
    try:
        run_jobs(campaign, quiet=True)
    except InterruptedByUserError as stopped:
        raise InterruptedByUserError(
            f"{stopped} in the first pass", then="the campaign hadn't begun: start it again"
        ) from None
    (outcome,) = account_now(campaign).outcomes
    return outcome


def _timed_rows(outcome: RunResult) -> list[dict[str, Any]]:
    """All samples of the run in the order in which they began, with warm-ups; none if the run isn't ok."""
    if outcome.status != "ok" or outcome.directory is None:
        return []
    return parse_lines((outcome.directory / SAMPLES_FILE).read_text(encoding="utf-8"))


def _tried(request: CampaignRequest, rows: Sequence[Mapping[str, Any]], *, together: bool) -> dict[str, PilotWorkload]:
    """What the timed repetitions of each workload say, by ``params_id``."""
    tried = {}
    for item in request.workloads:
        own = [row for row in rows if row["params_id"] == item.params_id and not row["warmup"]]
        if len(own) < REPS:  # it failed, or this image can't measure it
            continue
        seconds = [float(row["wall_s"]) for row in own]
        tried[item.params_id] = PilotWorkload(
            # No less than what was timed, whatever the machine's clock did meanwhile.
            cost_s=max((_at(own[-1]) - _at(own[0])) / (REPS - 1), statistics.fmean(seconds)),
            scatter=statistics.stdev(seconds) / statistics.fmean(seconds),
            marked=warmup_repetitions(item.warmup, variants=len(request.variants), together=together),
            limit_s=item.timeout_s,
        )
    return tried


def _fixed_s(
    request: CampaignRequest,
    rows: Sequence[Mapping[str, Any]],
    tried: Mapping[str, PilotWorkload],
    seconds: float,
    *,
    together: bool,
) -> float:
    """Seconds of a run of the campaign outside its repetitions.

    Clusters of an interleaved block start and end at the same time. On two cores, two of them took as long as one. We
    assume that as many variants as there are cores share the seconds of one start and one end.
    """
    repeated_s = sum(
        (REPS + item.warmup) * tried[item.params_id].cost_s for item in request.workloads if item.params_id in tried
    )
    alone_s = max(seconds - repeated_s, 0.0)
    if not together:
        return alone_s
    inside_s = _at(rows[-1]) + float(rows[-1]["wall_s"]) - _at(rows[0])
    ends_s = min(max(seconds - inside_s, 0.0), alone_s)
    variants = len(request.variants)
    turns = len(tried) * warmup_repetitions(1, variants=variants, together=True) + 2
    return alone_s - ends_s + ends_s / min(variants, max(request.machine_cores, 1)) + TURN_S * turns


def _at(row: Mapping[str, Any]) -> float:
    """When the repetition began, in seconds of the epoch."""
    return dt.datetime.fromisoformat(row["started_at"]).timestamp()


def _words(first: FirstPass, request: CampaignRequest) -> list[str]:
    """``merge 4 x 0.98s (scatter 9 %), ...``, and where that comes from; what the blocks find with that scatter."""
    # Late: the page's libraries take half a second, and the first run shall begin before.
    from gpubench.report.labels import cell_names

    names = cell_names([{"workload": item.name, "params": json.dumps(item.params)} for item in request.workloads])
    each = [
        f"{name} {item.reps} x {one.cost_s:.2g}s (scatter {100 * one.scatter:.0f} %)"
        for name, item in zip(names, request.workloads, strict=True)
        if (one := first.tried.get(item.params_id))
    ]
    full = [
        name
        for name, item in zip(names, request.workloads, strict=True)
        if (one := first.tried.get(item.params_id)) and item.reps == one.most > LEAST_REPS
    ]
    most = f"; {', '.join(full)}: as often as a run may" if full else ""
    chosen = (
        f"repetitions by a first pass of {format_seconds(first.seconds)}, to fill the budget: {', '.join(each)}{most}"
    )
    return [chosen, *_finds(first, request, names)]


BETWEEN_RUNS = 0.008
"""Standard deviation between runs of one version, which one run can't show: the middle one of ASSUMED_RESTARTS."""


def _finds(first: FirstPass, request: CampaignRequest, names: Sequence[str]) -> list[str]:
    """A line: the difference that the blocks detect in each workload, if it scatters as in the first pass."""
    # Late: as above.
    from gpubench.stats.power import detectable_effect, sigma_from_parts

    family = len(request.workloads) * (len(request.variants) - 1)
    if not family or request.blocks < LEAST_BLOCKS:
        return []
    power = request.power or DEFAULT_POWER
    each = []
    for name, item in zip(names, request.workloads, strict=True):
        if one := first.tried.get(item.params_id):
            sigma = sigma_from_parts(BETWEEN_RUNS, max(one.scatter, LEAST_SCATTER), item.reps)
            each.append(f"{100 * detectable_effect(sigma, request.blocks, family, power):.2g} % in {name}")
    return [
        f"{counted(request.blocks, 'block')} find differences of about {', '.join(each)}, or more, with "
        f"{100 * power:g} % power, if repetitions scatter as in the first pass, and runs of one version by "
        f"{100 * BETWEEN_RUNS:g} %"
    ]
