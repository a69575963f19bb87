"""Whole campaigns: plan them, run them here or through the site's queue, continue them."""

import contextlib
import datetime as dt
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gpubench.campaign.allocation import queue_of, run_here
from gpubench.campaign.budget import Budget
from gpubench.campaign.completeness import continue_command, missing_text, require_complete
from gpubench.campaign.first_pass import with_repetitions
from gpubench.campaign.local_jobs import run_jobs
from gpubench.campaign.lock import campaign_lock
from gpubench.campaign.observer import Observe, unobserved
from gpubench.campaign.options import CampaignOptions
from gpubench.campaign.planning import makes_first_pass, plan_campaign, prepare_request, write_scripts
from gpubench.campaign.preflight import place_campaign, planned_images, prepare
from gpubench.campaign.requests import parse_request
from gpubench.campaign.submission import submit_jobs
from gpubench.campaign.watching import watch_jobs
from gpubench.errors import InterruptedByUserError, UsageError
from gpubench.model.plan import numbers_of_blocks
from gpubench.model.text import counted
from gpubench.plan.additions import plan_more, plan_repair
from gpubench.render.shell import command_line
from gpubench.schedulers import BATCH, SCHEDULERS
from gpubench.store.campaign import Campaign
from gpubench.store.rundirs import remove_leftovers
from gpubench.store.states import account_now, job_states, require_no_doubt

_log = logging.getLogger(__name__)


def plan(
    options: CampaignOptions, *, out: Path | None = None, fill_budget: bool = False, here: bool = False
) -> Campaign:
    """A new campaign on disk: its images found or built, its plan and scripts written; nothing is run of it.

    Args:
        out: as for ``plan_campaign``.
        fill_budget: where the campaign has a budget and its suite allows it, a first pass of the baseline is run, to
            choose the repetitions and blocks that fill the budget.
        here: it is to run on the nodes that this shell holds.

    Raises:
        UsageError: with ``here``, of a site whose jobs need no allocation.
        GpubenchError: as ``parse_request``, ``prepare_request`` and ``plan_campaign``.
    """
    request = parse_request(options)
    if here:
        queue_of(request.site)
    first_pass = fill_budget and makes_first_pass(request)
    # An image that can't be had ends it here, before a run is spent.
    request, images = prepare_request(request, options, out=out, by_history=not first_pass)
    if first_pass:
        request = with_repetitions(request, options, images)
    return plan_campaign(request, options, images, out=out)


def budget_limit(options: CampaignOptions, campaign: Campaign) -> Budget | None:
    """The limit of ``--budget``. A budget in the site profile is only a default; it doesn't limit the campaign."""
    seconds = campaign.plan.budget_s
    return None if options.budget is None or seconds is None else Budget(seconds)


def run(campaign: Campaign, budget: Budget | None = None, observe: Observe = unobserved) -> None:
    """Run all jobs of a new campaign, here or through the site's queue, and wait until they have ended.

    Args:
        budget: no block is begun that would end beyond it.

    Raises:
        UsageError: another process is at work on the campaign.
        GpubenchError: as ``prepare`` and ``run_blocks``.
    """
    with campaign_lock(campaign.directory):
        prepare(campaign)
        run_blocks(campaign, numbers_of_blocks(campaign.jobs), budget, observe)


def resume(directory: Path, more: int = 0, observe: Observe = unobserved) -> Campaign:
    """Run what is missing of a campaign, and ``more`` blocks; the campaign with the blocks that were added.

    Jobs that wait or run in a queue are waited for first.

    Raises:
        UsageError: there is no campaign; another process is at work on it, or one of its jobs may still run.
        GpubenchError: as ``prepare`` and ``run_blocks``.
    """
    with campaign_lock(directory):
        campaign = Campaign.open(directory)
        if campaign.plan.site.scheduler in BATCH and any(state.alive for state in job_states(campaign).values()):
            with _resume_hint_on_interrupt(campaign):
                watch_jobs(campaign, observe)
        if more:
            prepare(campaign)  # what can't be run isn't appended
        campaign, blocks = _missing_blocks(campaign, more)
        if blocks:
            prepare(campaign)
            run_blocks(campaign, blocks, observe=observe)
        else:
            _log.info("nothing is missing")
    return campaign


def submit(
    campaign: Campaign,
    budget: Budget | None = None,
    *,
    new: bool = False,
    here: bool = False,
    observe: Observe = unobserved,
) -> None:
    """Submit the jobs of a campaign that has not been run. Those of a site without a queue are run, to their end.

    Args:
        new: it was planned just now, so that its scripts need not be written again.
        here: run them on the nodes that this shell holds.

    Raises:
        UsageError: it has been run already, or another process is at work on it.
        IncompleteError: a run that was run here didn't end.
        GpubenchError: as ``prepare`` and ``submit_jobs``.
    """
    with campaign_lock(campaign.directory):
        if not new:
            _require_unused(campaign)
            planned_images(campaign)
            write_scripts(campaign)
        if here:
            place_campaign(campaign)
            run_here(campaign, observe)
        else:
            prepare(campaign)
            blocks = numbers_of_blocks(campaign.jobs)
            if submit_jobs(campaign, blocks, budget) is not None:
                return
            run_blocks(campaign, blocks, budget, observe)
        require_complete(campaign, account_now(campaign))


def submit_missing(directory: Path, observe: Observe = unobserved) -> None:
    """Submit what is missing, without waiting for the queue; raises as ``submit``."""
    with campaign_lock(directory):
        campaign, blocks = _missing_blocks(Campaign.open(directory))
        if not blocks:
            _log.info("nothing is missing")
            return
        prepare(campaign)
        if submit_jobs(campaign, blocks) is None:
            run_blocks(campaign, blocks, observe=observe)
            require_complete(campaign, account_now(campaign))


def run_blocks(
    campaign: Campaign,
    blocks: Mapping[str, Sequence[int]],
    budget: Budget | None = None,
    observe: Observe = unobserved,
) -> None:
    """Run ``blocks``, by job, here or in the site's queue, to their end.

    Raises:
        InterruptedByUserError: Ctrl-C or a signal; says how to go on.
        GpubenchError: as ``submit_jobs``, ``run_jobs`` and ``watch_jobs``.
    """
    with _resume_hint_on_interrupt(campaign):
        left = submit_jobs(campaign, blocks, budget)
        if left is None:
            run_jobs(campaign, blocks, budget=budget, observe=observe)
            return
        watch_jobs(campaign, observe)
        while left:
            left = submit_jobs(campaign, {job: blocks[job] for job in left}, budget)
            watch_jobs(campaign, observe)


def _missing_blocks(campaign: Campaign, more: int = 0) -> tuple[Campaign, dict[str, list[int]]]:
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
        count = sum(len(job.blocks) for job in repair.addition.jobs)
        _log.info(f"{repair.addition.reason}: {counted(count, 'new block')}")
        blocks |= numbers_of_blocks(repair.addition.jobs)
    if more:
        addition = plan_more(campaign.whole_plan, more, dt.datetime.now(dt.UTC).isoformat())
        campaign = campaign.append(addition)
        _log.info(addition.reason)
        blocks |= numbers_of_blocks(addition.jobs)
    if blocks:
        write_scripts(campaign)
    return campaign, blocks


def _require_unused(campaign: Campaign) -> None:
    _require_idle(campaign)
    if any(campaign.runs_dir.glob("*-*")):
        raise UsageError(
            f"{campaign.directory} has been run already",
            then=f"to run what is missing: {continue_command(campaign)}",
        )


def _require_idle(campaign: Campaign) -> None:
    """End a job whose front end is dead; raises UsageError unless all other jobs of the campaign have ended surely."""
    states = job_states(campaign)
    alive = {job: state for job, state in sorted(states.items()) if state.alive}
    for job in [job for job, state in alive.items() if state.orphaned]:
        _log.info(f"job {job}: {alive.pop(job).reason}; it is ended")
        SCHEDULERS[campaign.plan.site.scheduler].cancel(campaign.job_dir(job))
    if alive:
        lost = "; ".join(
            f"{job}: {state.reason}" for job, state in alive.items() if state.phase == "running" and state.reason
        )
        raise UsageError(
            f"{campaign.directory}: job {', '.join(alive)} is still running{f' ({lost})' if lost else ''}",
            then=f"wait until it ends, or check it: {command_line(['gpubench', 'status', str(campaign.directory)])}",
        )
    require_no_doubt(campaign, states)


@contextlib.contextmanager
def _resume_hint_on_interrupt(campaign: Campaign) -> Iterator[None]:
    try:
        yield
    except InterruptedByUserError as stopped:
        raise InterruptedByUserError(
            f"{stopped}; {missing_text(campaign)}",
            then=f"to go on: {continue_command(campaign)}",
        ) from None
