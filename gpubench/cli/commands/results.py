"""What came out: merge, compare, report."""

from __future__ import annotations

from typing import Annotated

import typer

from gpubench.cli import options
from gpubench.cli.options import Asked


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (merge, compare, report):
        app.command()(command)


def merge(campaign: options.MaybeCampaign = None, outputs: options.Outputs = None) -> None:
    """Join all samples into results.parquet; also on a copy, and while the campaign runs."""
    from gpubench.cli.say import say
    from gpubench.cli.steps.choosing import chosen_campaign
    from gpubench.cli.steps.judging import judge_campaign

    judged = judge_campaign(chosen_campaign(campaign, outputs))
    say(f"{judged.merged.frame.height} samples in {judged.campaign.results}")


def compare(
    campaign: options.MaybeCampaign = None,
    outputs: options.Outputs = None,
    margin: options.Margin = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdicts as JSON.")] = False,
) -> None:
    """Verdicts of every planned comparison. Exit 0 all equivalent or improved, 20 a regression, 21 undecided."""
    from gpubench.cli.say import say
    from gpubench.cli.steps import judging
    from gpubench.cli.steps.choosing import chosen_campaign
    from gpubench.cli.steps.showing import show_verdicts
    from gpubench.report import verdicts_json
    from gpubench.stats.verdict import exit_code

    judged = judging.judge_campaign(chosen_campaign(campaign, outputs), Asked(margin=margin).chosen_margin())
    if as_json:
        say(verdicts_json(judged.campaign.plan.campaign, judged.verdicts, judged.settings).decode().rstrip())
    else:
        show_verdicts(judged)
    raise typer.Exit(exit_code(judged.verdicts))


def report(campaign: options.MaybeCampaign = None, outputs: options.Outputs = None) -> None:
    """Merge, judge, and write report.html (opens offline) and report.md."""
    from gpubench.cli.steps.choosing import chosen_campaign
    from gpubench.cli.steps.judging import judge_campaign
    from gpubench.cli.steps.showing import show_verdicts, write_report

    judged = judge_campaign(chosen_campaign(campaign, outputs))
    show_verdicts(judged)
    write_report(judged)
