"""`bench`: the whole campaign by one command."""

import dataclasses
import time
from pathlib import Path
from typing import Annotated

import typer

from gpubench.campaign.options import CampaignOptions
from gpubench.cli.campaign import require_no_options, show_plan
from gpubench.cli.options import FailOn, with_options
from gpubench.cli.say import say, say_lines
from gpubench.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(with_options(bench))


def bench(
    *,
    campaign: Annotated[
        Path | None,
        typer.Option(
            help="Continue this campaign: run what is missing; with --blocks +N, run N more blocks.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan; build, write and run nothing.")] = False,
    fail_on: FailOn = None,
    over_budget: Annotated[
        bool, typer.Option("--over-budget", help="Also begin blocks that would end after --budget.")
    ] = False,
    options: CampaignOptions,
) -> None:
    """Compare UCX versions: build images, plan, run, judge. Or continue a campaign, with --campaign DIR.

    Exits 0 when the campaign is complete, whatever the verdict; with --fail-on 20 or 21 by the verdict.
    """
    if over_budget and options.budget is None:
        raise UsageError("--over-budget needs a budget", then="add --budget, or leave --over-budget out")
    if fail_on is not None and dry_run:
        raise UsageError("--fail-on needs verdicts, and --dry-run makes none", then="leave one of them out")
    if campaign is not None and dry_run:
        raise UsageError("--dry-run shows a new plan", then=f"what is missing: gpubench status {campaign}")
    if dry_run:
        show_plan(None, options)
    elif campaign is not None:
        _resume(campaign, options, fail_on)
    else:
        _bench(options, fail_on, over_budget=over_budget)


def _resume(directory: Path, options: CampaignOptions, fail_on: FailOn) -> None:
    from gpubench.campaign import lifecycle
    from gpubench.campaign.completeness import require_no_step
    from gpubench.campaign.option_values import more_blocks
    from gpubench.cli.display import conclude
    from gpubench.cli.progress import progress_for
    from gpubench.results.targets import root_of

    more = more_blocks(options)
    require_no_options(directory, dataclasses.replace(options, blocks=None) if more else options)
    root = root_of(directory)
    if more:
        require_no_step(root)
    conclude(lifecycle.resume(root, more, progress_for), fail_on)


def _bench(options: CampaignOptions, fail_on: FailOn, *, over_budget: bool) -> None:
    from gpubench.campaign import lifecycle
    from gpubench.campaign.plan_lines import plan_lines
    from gpubench.cli.display import conclude
    from gpubench.cli.progress import progress_for
    from gpubench.model.quantities import format_seconds
    from gpubench.schedulers.local import waited_s

    began = time.monotonic() - waited_s()
    opened = lifecycle.plan(options, fill_budget=True)
    say_lines(plan_lines(opened))
    steps = "images, first pass and plan" if opened.plan.first_pass else "images and plan"
    say(f"{steps} took {format_seconds(time.monotonic() - waited_s() - began)}")
    say("")
    budget = None if over_budget else lifecycle.budget_limit(options, opened)
    lifecycle.run(opened, budget, progress_for)
    conclude(opened, fail_on)
