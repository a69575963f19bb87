"""Commands that plan, submit, show and end campaigns."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from gpubench.campaign import options as campaign_options
from gpubench.campaign.options import CampaignOptions, option_name
from gpubench.cli.options import DeclaredEnded, MaybeCampaign, Planned, with_options
from gpubench.cli.say import say, say_lines, say_text
from gpubench.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the commands, in the order in which --help lists them."""
    for command in (plan, submit, status, logs, cancel):
        app.command()(with_options(command))


def require_no_options(campaign: Path | None, options: CampaignOptions) -> None:
    """Raise UsageError where a planned campaign is named together with options that plan another."""
    if campaign is not None and options != CampaignOptions():
        fields = [field for field in dataclasses.fields(options) if getattr(options, field.name) != field.default]
        given = ", ".join(option_name(field.name) for field in fields)
        more = "; gpubench bench --campaign DIR --blocks +N adds N blocks" if options.blocks else ""
        raise UsageError(
            f"{campaign} is planned already, and a new plan alone takes {given}", then=f"leave it out{more}"
        )


def plan(
    *,
    campaign: Planned = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Directory for plan, scripts and run specs. Alone, for an existing plan: write its scripts again."
        ),
    ] = None,
    images: Annotated[
        bool,
        typer.Option("--images", help="With --out: find or build the images, so that submit accepts the directory."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print plan.json instead of the summary.")] = False,
    options: CampaignOptions,
) -> None:
    """Print the plan of a campaign; change nothing. With CAMPAIGN: show what was planned.

    With --out, no engine, registry, repository or scheduler is asked: every image is `unresolved`, and the same
    command gives the same bytes, on any day and wherever DIR is. Such files are for reading: a script stops at once,
    pods find no image, and submit refuses them. With --images too, the images are found, or built where campaigns build
    them, and `gpubench submit DIR` runs the campaign; exit 6 if one is missing.
    """
    from gpubench.store.campaign import PLAN_FILE

    require_no_options(campaign, options)
    if out is None and images:
        raise UsageError("--images needs a directory for the campaign", then="add --out DIR")
    if out is None:
        show_plan(campaign, options, as_json=as_json)
        return
    if campaign is not None:
        raise UsageError(f"{campaign} is planned already", then=f"its scripts again: gpubench plan --out {campaign}")
    if as_json:
        raise UsageError(f"--json prints a plan, and --out writes it: {out / PLAN_FILE}", then="leave --json out")
    _write_plan(options, out, images=images)


def _write_plan(options: CampaignOptions, out: Path, *, images: bool) -> None:
    from gpubench.campaign import lifecycle
    from gpubench.campaign.plan_lines import cost_lines, plan_lines, without_images
    from gpubench.campaign.planning import render_campaign, script_files

    written = lifecycle.plan(options, out=out) if images else render_campaign(options, out)
    say_lines((plan_lines if images else cost_lines)(written))
    say_lines(f"script {path}" for path in script_files(written))
    if missing := without_images(written.plan):
        say(f"these scripts are for reading: there is no image for {missing}; gpubench plan --images --out finds them")


def show_plan(campaign: Path | None, options: CampaignOptions, *, as_json: bool = False) -> None:
    """Print the plan of ``campaign``, or the one that the options ask for, which is written nowhere."""
    from gpubench.campaign.plan_lines import plan_lines
    from gpubench.campaign.planning import foreseen_campaign
    from gpubench.results.targets import chosen_campaign

    opened = chosen_campaign(campaign, None) if campaign else foreseen_campaign(options)
    if as_json:
        say_text(opened.plan.dump())
        return
    say_lines(plan_lines(opened))


def submit(
    *,
    campaign: Planned = None,
    go_on: Annotated[
        Path | None,
        typer.Option(
            "--campaign",
            metavar="DIR",
            help="Continue this campaign: submit only what is missing.",
        ),
    ] = None,
    here: Annotated[
        bool,
        typer.Option(
            "--here", help="Run on the nodes of the allocation that this shell is in; default CAMPAIGN: the newest."
        ),
    ] = False,
    options: CampaignOptions,
) -> None:
    """Submit jobs to the site's scheduler. The jobs of CAMPAIGN, or of a new plan; those of a local site run here.

    If the scheduler's commands are missing, the exit code is 5, and the scripts are still written if every variant has
    its image. It is 6 if a variant has no image yet.
    """
    from gpubench.campaign import lifecycle
    from gpubench.campaign.plan_lines import plan_lines
    from gpubench.cli.progress import progress_for
    from gpubench.results.targets import chosen_campaign, root_of

    require_no_options(campaign or go_on, options)
    if go_on is not None:
        if campaign is not None or here:
            raise UsageError("--campaign excludes CAMPAIGN and --here", then="leave CAMPAIGN and --here out")
        lifecycle.submit_missing(root_of(go_on), progress_for)
    elif campaign or (here and options == CampaignOptions(outputs=options.outputs)):
        planned = chosen_campaign(campaign, None if campaign else options.outputs)
        lifecycle.submit(planned, here=here, observe=progress_for)
    else:
        new = lifecycle.plan(options, here=here)
        say_lines(plan_lines(new))
        budget = lifecycle.budget_limit(options, new)
        lifecycle.submit(new, budget, new=True, here=here, observe=progress_for)


def status(
    campaign: MaybeCampaign = None,
    outputs: campaign_options.Outputs = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Keep running, and show changes, until every job has ended.")
    ] = False,
) -> None:
    """Status of every job and run, with reasons. Ok, failed, skipped, lost or pending; exit 4 if incomplete."""
    from gpubench.campaign.completeness import require_complete
    from gpubench.campaign.status_lines import job_lines, status_lines
    from gpubench.campaign.watching import watch_jobs
    from gpubench.results.targets import chosen_campaign
    from gpubench.store.states import account_now, polled_states

    opened = chosen_campaign(campaign, outputs)
    if watch:
        from gpubench.cli.progress import progress_for  # late: its bars take a fifth of the time of a status

        states = watch_jobs(opened, progress_for)
    else:
        states = polled_states(opened)
    accounting = account_now(opened)
    say_lines((*job_lines(opened, states, accounting), *status_lines(opened, accounting)))
    require_complete(opened, accounting, states)


def cancel(
    campaign: MaybeCampaign = None,
    outputs: campaign_options.Outputs = None,
    ended: DeclaredEnded = None,
) -> None:
    """End every job that waits or runs. What has been finished is kept.

    Exits 7 if a job can't be ended, or if its scheduler can't say whether it has ended.
    """
    from gpubench.campaign.ending import cancel_jobs, declare_job_ended
    from gpubench.results.targets import chosen_campaign

    opened = chosen_campaign(campaign, outputs)
    if ended is None:
        cancel_jobs(opened)
    else:
        declare_job_ended(opened, ended)


def logs(
    campaign: MaybeCampaign = None,
    outputs: campaign_options.Outputs = None,
    run: Annotated[str | None, typer.Option(help="Only this run; default: every run that is not ok.")] = None,
) -> None:
    """Where logs are, and how the logs of failed runs end. With the last lines of every process of such runs."""
    from gpubench.campaign.logs import log_lines
    from gpubench.results.targets import chosen_campaign

    say_lines(log_lines(chosen_campaign(campaign, outputs), run))
