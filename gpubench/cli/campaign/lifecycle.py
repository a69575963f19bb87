"""Whole campaigns: run them, submit them, continue them."""

import contextlib
import datetime as dt
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import typer

from gpubench.cli.campaign.allocation import run_here
from gpubench.cli.campaign.budget import Budget
from gpubench.cli.campaign.display import (
    continue_command,
    missing_words,
    require_complete,
    show_next_steps,
    show_verdicts,
    write_report,
)
from gpubench.cli.campaign.first_pass import with_repetitions
from gpubench.cli.campaign.local_jobs import run_jobs
from gpubench.cli.campaign.lock import campaign_lock
from gpubench.cli.campaign.options import CampaignOptions
from gpubench.cli.campaign.plan_lines import plan_lines
from gpubench.cli.campaign.planning import (
    makes_first_pass,
    plan_campaign,
    prepare_request,
    write_scripts,
)
from gpubench.cli.campaign.preflight import place_campaign, prepare
from gpubench.cli.campaign.requests import parse_request
from gpubench.cli.campaign.states import account_now, job_states, require_no_doubt
from gpubench.cli.campaign.submission import submit_jobs
from gpubench.cli.campaign.watching import watch_jobs
from gpubench.cli.results.open_target import root_of
from gpubench.cli.say import say
from gpubench.errors import InterruptedByUserError, UsageError
from gpubench.model.plan import numbers_of_blocks
from gpubench.model.quantities import format_seconds
from gpubench.model.text import counted
from gpubench.plan.additions import plan_more, plan_repair
from gpubench.schedulers import BATCH, SCHEDULERS
from gpubench.stats.settings import FailOn
from gpubench.store.campaign import Campaign
from gpubench.store.rundirs import remove_leftovers


def bench(options: CampaignOptions, *, fail_on: FailOn | None, over_budget: bool) -> None:
    """All steps from options to report; no block ends after a budget that the user gave, unless ``over_budget``."""
    began = time.monotonic()
    request = parse_request(options)
    first_pass = makes_first_pass(request)
    # An image that can't be had ends it here, before a run is spent.
    request, images = prepare_request(request, options, by_history=not first_pass)
    if first_pass:
        request = with_repetitions(request, options, images)
    campaign = plan_campaign(request, options, images)
    for line in plan_lines(campaign):
        say(line)
    what = "images, first pass and plan" if request.tried else "images and plan"
    say(f"{what} took {format_seconds(time.monotonic() - began)}")
    say("")
    budget = None if over_budget else _budget_limit(options, campaign)
    with campaign_lock(campaign.directory):
        prepare(campaign)
        run_all(campaign, numbers_of_blocks(campaign.jobs), budget)
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


def _budget_limit(options: CampaignOptions, campaign: Campaign) -> Budget | None:
    """The limit of ``--budget``. A budget in the site profile is only a default; it doesn't limit the campaign."""
    seconds = campaign.plan.budget_s
    return None if options.budget is None or seconds is None else Budget(seconds)


def submit(options: CampaignOptions, planned: Campaign | None = None, *, here: bool) -> None:
    """Run the jobs of a ``planned`` campaign that has not been run, or of a new one if None.

    ``here``: on the nodes that this shell holds.
    """
    campaign = planned or _new_campaign(options)
    budget = None if planned else _budget_limit(options, campaign)
    with campaign_lock(campaign.directory):
        if planned:
            _require_unused(campaign)
            write_scripts(campaign)
        if here:
            place_campaign(campaign)
            run_here(campaign)
        else:
            prepare(campaign)
            blocks = numbers_of_blocks(campaign.jobs)
            if submit_jobs(campaign, blocks, budget) is not None:
                return
            run_all(campaign, blocks, budget)
        require_complete(campaign, account_now(campaign))


def _new_campaign(options: CampaignOptions) -> Campaign:
    request, images = prepare_request(parse_request(options), options)
    campaign = plan_campaign(request, options, images)
    for line in plan_lines(campaign):
        say(line)
    return campaign


def _require_unused(campaign: Campaign) -> None:
    _require_idle(campaign)
    if any(campaign.runs_dir.glob("*-*")):
        raise UsageError(
            f"{campaign.directory} has been run already",
            then=f"to run what is missing: {continue_command(campaign)}",
        )


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
        blocks |= numbers_of_blocks(repair.addition.jobs)
    if more:
        addition = plan_more(campaign.whole_plan, more, dt.datetime.now(dt.UTC).isoformat())
        campaign = campaign.append(addition)
        say(addition.reason)
        blocks |= numbers_of_blocks(addition.jobs)
    if blocks:
        write_scripts(campaign)
    return campaign, blocks


def run_all(campaign: Campaign, blocks: Mapping[str, Sequence[int]], budget: Budget | None = None) -> None:
    """Run the jobs, here or in the site's queue, and show what happens; ``blocks`` by job.

    No block is begun that would end beyond the ``budget``.
    """
    with _resume_hint_on_interrupt(campaign):
        left = submit_jobs(campaign, blocks, budget)
        if left is None:
            run_jobs(campaign, blocks, budget=budget)
            return
        watch_jobs(campaign)
        while left:
            left = submit_jobs(campaign, {job: blocks[job] for job in left}, budget)
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
