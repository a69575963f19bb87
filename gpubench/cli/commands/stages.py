"""The stages of a campaign, one command each, on the same directory."""

from __future__ import annotations

from typing import Annotated

import typer

from gpubench.cli import options
from gpubench.cli.options import Asked


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (plan, render, submit, status, cancel, logs):
        app.command()(command)


def plan(
    site: options.Site = "local",
    ucx: options.Ucx = None,
    variants: options.Variants = None,
    nodes: options.Nodes = None,
    suite: options.SuiteName = None,
    blocks: options.Blocks = None,
    budget: options.Budget = None,
    reps: options.Reps = None,
    workers: options.Workers = None,
    protocol: options.Protocol = None,
    runtime: options.Runtime = None,
    base: options.Base = None,
    date: options.Date = None,
    seed: options.Seed = None,
    margin: options.Margin = None,
    summary: options.Summary = None,
    adaptive: options.Adaptive = False,
    max_blocks: options.MaxBlocks = 12,
    power: options.Power = 0.9,
    settings: options.Set = None,
    outputs: options.Outputs = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print plan.json instead of the summary.")] = False,
) -> None:
    """Plan a campaign: build what images are missing, write plan.json and scripts; run nothing."""
    from gpubench.cli.say import say
    from gpubench.cli.steps.planning import plan_campaign, read_wishes
    from gpubench.cli.steps.showing import plan_lines

    asked = Asked(
        site=site,
        ucx=ucx,
        variants=variants,
        nodes=nodes,
        suite=suite,
        blocks=blocks,
        budget=budget,
        reps=reps,
        workers=workers,
        protocol=protocol,
        runtime=runtime,
        base=base,
        date=date,
        seed=seed,
        margin=margin,
        summary=summary,
        max_blocks=max_blocks if adaptive else None,
        power=power,
        settings=settings,
        outputs=outputs,
    )
    campaign = plan_campaign(read_wishes(asked), quiet=as_json)
    if as_json:
        say(campaign.plan.dump().rstrip())
        return
    for line in plan_lines(campaign):
        say(line)


def render(campaign: options.CampaignDir) -> None:
    """Write the scripts and run specs of a planned campaign again; the same plan gives the same bytes."""
    from gpubench.cli.say import say
    from gpubench.cli.steps.planning import write_scripts
    from gpubench.store.campaign import Campaign

    opened = Campaign.open(campaign)
    write_scripts(opened)
    for job in opened.jobs:
        say(str(opened.job_dir(job.job) / "job.sh"))


def submit(campaign: options.CampaignDir) -> None:
    """Hand the jobs of a planned campaign to the site's scheduler; on the local site this command runs them itself."""
    from gpubench.cli.steps import whole

    whole.submit(campaign)


def status(
    campaign: options.MaybeCampaign = None,
    outputs: options.Outputs = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Stay, and show what changes, until every job has ended.")
    ] = False,
) -> None:
    """What became of every job and run: ok, failed, skipped, lost or pending, with reasons. Exit 4 if incomplete."""
    from gpubench.cli.say import say
    from gpubench.cli.steps.choosing import chosen_campaign
    from gpubench.cli.steps.queueing import watch_jobs
    from gpubench.cli.steps.running import account_now, job_states
    from gpubench.cli.steps.showing import job_lines, require_complete, status_lines

    opened = chosen_campaign(campaign, outputs)
    if watch:
        watch_jobs(opened)
    for line in job_lines(opened, job_states(opened)):
        say(line)
    accounting = account_now(opened)
    for line in status_lines(opened, accounting):
        say(line)
    require_complete(opened, accounting)


def cancel(campaign: options.MaybeCampaign = None, outputs: options.Outputs = None) -> None:
    """End every job of the campaign that waits or runs; what has been finished is kept."""
    from gpubench.cli.steps.choosing import chosen_campaign
    from gpubench.cli.steps.queueing import cancel_jobs

    cancel_jobs(chosen_campaign(campaign, outputs))


def logs(
    campaign: options.MaybeCampaign = None,
    outputs: options.Outputs = None,
    run: Annotated[str | None, typer.Option(help="Only this run; default: every run that failed.")] = None,
) -> None:
    """Where the jobs' own logs are, and the last lines of every process of the runs that failed."""
    from gpubench.cli.steps.choosing import chosen_campaign
    from gpubench.cli.steps.logs import show_logs

    show_logs(chosen_campaign(campaign, outputs), run)
