"""Whole campaigns: run them, hand them over, go on with them."""

from __future__ import annotations

import contextlib
import datetime as dt
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import typer

from gpubench.cli.campaign.display import (
    not_begun,
    plan_lines,
    require_complete,
    show_next_steps,
    show_verdicts,
    write_report,
)
from gpubench.cli.campaign.first_pass import with_repetitions
from gpubench.cli.campaign.options import CampaignOptions
from gpubench.cli.campaign.planning import plan_campaign, read_wishes, write_scripts
from gpubench.cli.campaign.preflight import place_campaign, prepare
from gpubench.cli.campaign.running import (
    Budget,
    account_now,
    job_states,
    missing_words,
    run_here,
    run_jobs,
    submit_jobs,
    watch_jobs,
)
from gpubench.cli.notify import notify as tell
from gpubench.cli.results.open_target import root_of
from gpubench.cli.say import say
from gpubench.cli.ways import typed
from gpubench.errors import InterruptedByUserError, UsageError
from gpubench.files import locked
from gpubench.model.plan import PlanAddition
from gpubench.model.quantities import format_seconds
from gpubench.plan import plan_advance, plan_more, plan_repair
from gpubench.schedulers import BATCH, SCHEDULERS
from gpubench.store.campaign import Campaign
from gpubench.store.rundirs import remove_leftovers


def bench(asked: CampaignOptions, *, gate: bool, over_budget: bool, notify: str | None = None) -> None:
    """Everything, from words to report; no block ends beyond a budget that the user gave, unless ``over_budget``."""
    began = time.monotonic()
    wanted = with_repetitions(read_wishes(asked))
    campaign = plan_campaign(wanted)
    for line in plan_lines(campaign):
        say(line)
    what = "images, first pass and plan" if wanted.tried else "images and plan"
    say(f"{what} took {format_seconds(time.monotonic() - began)}")
    say("")
    budget = None if over_budget else _bound(asked, campaign)
    with at_work_on(campaign.directory):
        prepare(campaign)
        run_all(campaign, None, budget)
        while campaign.plan.max_blocks is not None and not campaign.ended and not not_begun(account_now(campaign)):
            campaign = _advance(campaign, budget)
        _conclude(campaign, gate=gate, notify=notify)


def go_on(directory: Path, *, more: int = 0, stop: bool = False, gate: bool = False, notify: str | None = None) -> None:
    """Run what is missing, ``more`` blocks, and what the looks of an adaptive campaign ask for; or ``stop`` it; judge.

    Jobs that wait or run in a queue are waited for first.
    """
    directory = root_of(directory)
    with at_work_on(directory):
        campaign = Campaign.open(directory)
        adaptive = campaign.plan.max_blocks is not None
        if stop and not adaptive:
            raise UsageError(f"{campaign.directory} has a fixed number of blocks", then="leave --stop out")
        if more and adaptive:
            raise UsageError(
                f"{campaign.directory} is adaptive, with {campaign.plan.max_blocks} blocks at most, as was declared",
                then="leave --blocks out, or plan another campaign",
            )
        if campaign.plan.site.scheduler in BATCH and any(state.alive for state in job_states(campaign).values()):
            with _way_on_after_ctrl_c(campaign):
                watch_jobs(campaign)
        if stop:
            _require_idle(campaign)
            if not campaign.ended:
                require_complete(campaign, account_now(campaign))
                now = dt.datetime.now(dt.UTC).isoformat()
                end = PlanAddition(created_at=now, reason="advance: ended by the user", jobs=[], ended=True)
                campaign = campaign.append(end)
        else:
            if more:
                prepare(campaign)  # what can't be run isn't appended
            campaign, blocks = missing_blocks(campaign, more)
            if blocks:
                prepare(campaign)
                run_all(campaign, blocks)
            elif not adaptive or campaign.ended:
                say("the campaign has had its last look" if adaptive else "nothing is missing")
            while adaptive and not campaign.ended:
                require_complete(campaign, account_now(campaign))
                campaign = _advance(campaign)
        _conclude(campaign, gate=gate, notify=notify)


def submit_what_is_missing(directory: Path) -> None:
    """Hand over what is missing, or what the next look of an adaptive campaign asks for; nobody waits for a queue."""
    directory = root_of(directory)
    with at_work_on(directory):
        campaign, blocks = missing_blocks(Campaign.open(directory))
        if not blocks and campaign.plan.max_blocks is not None and not campaign.ended:
            require_complete(campaign, account_now(campaign))
            campaign, blocks = _look(campaign)
        if not blocks:
            say("nothing is missing")
            return
        prepare(campaign)
        if not submit_jobs(campaign, blocks):
            run_all(campaign, blocks)
            require_complete(campaign, account_now(campaign))


def plan_and_submit(asked: CampaignOptions, *, here: bool) -> None:
    """Plan a campaign and submit its jobs."""
    campaign = plan_campaign(read_wishes(asked))
    for line in plan_lines(campaign):
        say(line)
    submit(campaign, here=here, budget=_bound(asked, campaign))


def _bound(asked: CampaignOptions, campaign: Campaign) -> Budget | None:
    """The budget that the user gave: that of a profile is a habit, and bounds nothing."""
    seconds = campaign.plan.budget_s
    return None if asked.budget is None or seconds is None else Budget(seconds)


def submit(campaign: Campaign, *, here: bool, budget: Budget | None = None) -> None:
    """Run the planned jobs of a campaign that has not been run; ``here``: on the nodes that this shell holds."""
    with at_work_on(campaign.directory):
        _require_idle(campaign)
        if any(campaign.runs_dir.glob("*-*")):
            raise UsageError(
                f"{campaign.directory} has been run already",
                then=f"to run what is missing: {typed('bench', campaign=campaign.directory)}",
            )
        write_scripts(campaign)
        if here:
            place_campaign(campaign)
            run_here(campaign)
        else:
            prepare(campaign)
            if submit_jobs(campaign, None, budget):
                return
            run_all(campaign, None, budget)
        require_complete(campaign, account_now(campaign))


def missing_blocks(campaign: Campaign, more: int = 0) -> tuple[Campaign, dict[str, list[int]]]:
    """The blocks by job that ``campaign`` still needs, none where nothing is missing, with its scripts written.

    The campaign that comes back has a new block for every broken one, ``more`` blocks beside those at each place, and
    nothing lies in it that dead writers left.
    Raises UsageError while one of its jobs lives.
    """
    _require_idle(campaign)
    remove_leftovers(campaign.directory)
    status = {outcome.run.run: outcome.status for outcome in account_now(campaign).outcomes}
    repair = plan_repair(campaign.whole_plan, status, dt.datetime.now(dt.UTC).isoformat())
    blocks: dict[str, list[int]] = dict(repair.again)
    if repair.addition is not None:
        campaign = campaign.append(repair.addition)
        say(f"{repair.addition.reason}: {sum(len(job.blocks) for job in repair.addition.jobs)} new block(s)")
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
    with _way_on_after_ctrl_c(campaign):
        if submit_jobs(campaign, blocks, budget):
            watch_jobs(campaign)
        else:
            run_jobs(campaign, blocks, budget=budget)


@contextlib.contextmanager
def _way_on_after_ctrl_c(campaign: Campaign) -> Iterator[None]:
    try:
        yield
    except InterruptedByUserError as stopped:
        raise InterruptedByUserError(
            f"{stopped}; {missing_words(campaign)}", then=f"to go on: {typed('bench', campaign=campaign.directory)}"
        ) from None


def _advance(campaign: Campaign, budget: Budget | None = None) -> Campaign:
    """One look; the campaign with what it appended, which has been run."""
    campaign, blocks = _look(campaign)
    if blocks:
        run_all(campaign, blocks, budget)
    return campaign


def _look(campaign: Campaign) -> tuple[Campaign, dict[str, list[int]]]:
    """One look; the campaign with what it appended, and the blocks by job that are to be run."""
    from gpubench.cli.results.judge import decided, judge_campaign

    judged = judge_campaign(campaign)
    now = dt.datetime.now(dt.UTC).isoformat()
    addition = plan_advance(campaign.whole_plan, decided(judged), campaign.frozen, now)
    campaign = campaign.append(addition)
    say(addition.reason if addition.jobs else f"{addition.reason}; no block follows")
    if addition.jobs:
        write_scripts(campaign)
    return campaign, _numbers(addition)


def _numbers(addition: PlanAddition) -> dict[str, list[int]]:
    return {job.job: [block.block for block in job.blocks] for job in addition.jobs}


def _conclude(campaign: Campaign, *, gate: bool, notify: str | None) -> None:
    # Late: scipy takes a second, which belongs behind the measurements.
    from gpubench.cli.results.judge import judge_campaign, report_inputs
    from gpubench.report import verdicts_json
    from gpubench.stats.verdict import exit_code

    judged = judge_campaign(campaign)
    inputs = report_inputs(judged)
    say("")
    show_verdicts(judged.verdicts, judged.accounting, inputs.seconds)
    page = write_report(judged, inputs)
    if late := not_begun(judged.accounting):
        say("")
        say(
            f"{late} block{'s were' if late > 1 else ' was'} not begun, for the budget left no time; to run "
            f"{'them' if late > 1 else 'it'}: {typed('bench', campaign=campaign.directory)}"
            f"   # about {format_seconds(late * campaign.plan.time.block_s)}"
        )
    show_next_steps(page.steps)
    require_complete(campaign, judged.accounting)
    code = exit_code(judged.verdicts)
    if notify is not None:
        name = campaign.plan.campaign
        document = verdicts_json(name, judged.verdicts, judged.settings, campaign.plan.site.layout.arrangement).decode()
        tell(notify, document, name=name, verdicts=judged.verdicts, code=code)
    if gate:
        if code:
            say(f"gate: exit {code}")
        raise typer.Exit(code)


@contextlib.contextmanager
def at_work_on(directory: Path) -> Iterator[None]:
    """Be the one that plans and runs in the campaign; raises UsageError where there is none, or somebody else is."""
    Campaign.open(directory)
    try:
        with locked(directory, wait=False):
            yield
    except BlockingIOError:
        raise UsageError(
            f"another gpubench is at work on {directory}",
            then=f"wait for its end, or look at it: gpubench status {directory}",
        ) from None


def _require_idle(campaign: Campaign) -> None:
    """No job of the campaign lives; one whose front end is dead is ended. Raises UsageError for any other."""
    alive = {job: state for job, state in sorted(job_states(campaign).items()) if state.alive}
    for job in [job for job, state in alive.items() if state.orphaned]:
        say(f"job {job}: {alive.pop(job).reason}; it is ended")
        SCHEDULERS[campaign.plan.site.scheduler].cancel(campaign.job_dir(job))
    if alive:
        lost = "; ".join(
            f"{job}: {state.reason}" for job, state in alive.items() if state.phase == "running" and state.reason
        )
        raise UsageError(
            f"{campaign.directory}: job {', '.join(alive)} is still running{f' ({lost})' if lost else ''}",
            then=f"wait for it, or look at it: gpubench status {campaign.directory}",
        )
