"""The stages of a campaign, one command each, on the same directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpubench.cli import options
from gpubench.cli.campaign.options import CampaignOptions
from gpubench.cli.declared import Make, with_options
from gpubench.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (plan, render, submit):
        app.command()(with_options(command))
    for other in (status, cancel, logs):
        app.command()(other)


def plan(
    *,
    campaign: options.Planned = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print plan.json instead of the summary.")] = False,
    asked: CampaignOptions,
) -> None:
    """Plan a campaign and write its scripts, run nothing. With CAMPAIGN: show what was planned.

    Images are built where that takes no more than this machine (kind venv; containers of the local site). Any other
    variant without an image is planned all the same: its scripts are written, and submit refuses them.
    """
    from gpubench.cli.campaign.display import plan_lines
    from gpubench.cli.campaign.planning import plan_campaign, read_wishes
    from gpubench.cli.results.open_target import chosen_campaign, only_one
    from gpubench.cli.say import say, say_text

    only_one(campaign, asked)
    opened = chosen_campaign(campaign, None) if campaign else plan_campaign(read_wishes(asked), quiet=as_json)
    if as_json:
        say_text(opened.plan.dump())
        return
    for line in plan_lines(opened):
        say(line)


def render(
    *,
    campaign: options.Planned = None,
    out: Annotated[
        Path | None, typer.Option(help="Directory of the new campaign; with the options that plan one."), Make()
    ] = None,
    asked: CampaignOptions,
) -> None:
    """Write the scripts and run specs. Of the planned CAMPAIGN again, or of a new one in --out DIR.

    With --out nothing is asked of anybody (no engine, registry, repository or scheduler): every image is `unresolved`,
    and the same words give the same bytes, on any day and wherever DIR is.
    """
    from gpubench import resources
    from gpubench.cli.campaign.planning import read_wishes, render_campaign, write_scripts
    from gpubench.cli.results.open_target import only_one
    from gpubench.cli.say import say
    from gpubench.render import job_file
    from gpubench.store.campaign import Campaign

    only_one(campaign, asked)
    if (campaign is None) == (out is None):
        raise UsageError("render needs a planned campaign, or --out DIR and the options that plan a new one")
    if campaign:
        opened = Campaign.open(campaign)
        write_scripts(opened)
    else:
        assert out is not None
        opened = render_campaign(read_wishes(asked), out)
    for job in opened.jobs:
        say(str(opened.job_dir(job.job) / job_file(opened.plan.site.scheduler, resources.job_templates())))


def submit(
    *,
    campaign: options.Planned = None,
    here: Annotated[
        bool,
        typer.Option("--here", help="Run on the nodes of the allocation that this shell is in; CAMPAIGN: the newest."),
    ] = False,
    asked: CampaignOptions,
) -> None:
    """Hand jobs to the site's scheduler. Of CAMPAIGN, or of one planned now; the local site's are run right here.

    Where the scheduler's commands are missing the scripts are written all the same, and the exit code is 5; 6 where a
    variant has no image yet.
    """
    from gpubench.cli.campaign import lifecycle
    from gpubench.cli.results.open_target import campaign_to_change, only_one

    only_one(campaign, asked)
    if campaign:
        lifecycle.submit(campaign_to_change(campaign, None), here=here)
    elif here and asked == CampaignOptions(outputs=asked.outputs):
        lifecycle.submit(campaign_to_change(None, asked.outputs), here=True)
    else:
        lifecycle.plan_and_submit(asked, here=here)


def status(
    campaign: options.MaybeCampaign = None,
    outputs: options.Outputs = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Stay, and show what changes, until every job has ended.")
    ] = False,
) -> None:
    """What became of every job and run, with reasons. Ok, failed, skipped, lost or pending; exit 4 if incomplete."""
    from gpubench.cli.campaign.display import job_lines, require_complete, status_lines
    from gpubench.cli.campaign.queue import watch_jobs
    from gpubench.cli.campaign.running import account_now, job_states, poll
    from gpubench.cli.results.open_target import chosen_campaign
    from gpubench.cli.say import say

    opened = chosen_campaign(campaign, outputs)
    if watch and opened.pack is not None:
        raise UsageError(f"--watch: {campaign} is a pack, nothing in it changes", then="leave --watch out")
    if watch:
        watch_jobs(opened)
    else:
        poll(opened)
    states, accounting = job_states(opened), account_now(opened)
    for line in job_lines(opened, states, accounting):
        say(line)
    for line in status_lines(opened, accounting):
        say(line)
    require_complete(opened, accounting, running=any(state.alive for state in states.values()))


def cancel(campaign: options.MaybeCampaign = None, outputs: options.Outputs = None) -> None:
    """End every job that waits or runs. What has been finished is kept."""
    from gpubench.cli.campaign.queue import cancel_jobs
    from gpubench.cli.results.open_target import campaign_to_change

    cancel_jobs(campaign_to_change(campaign, outputs))


def logs(
    campaign: options.MaybeCampaign = None,
    outputs: options.Outputs = None,
    run: Annotated[str | None, typer.Option(help="Only this run; default: every run that failed.")] = None,
) -> None:
    """Where logs are, and how those of failed runs end. The last lines of every process of such runs."""
    from gpubench.cli.campaign.logs import show_logs
    from gpubench.cli.results.open_target import chosen_campaign

    show_logs(chosen_campaign(campaign, outputs), run)
