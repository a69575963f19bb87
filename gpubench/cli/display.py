"""Verdicts, the report and what to type next, for people."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gpubench import resources
from gpubench.campaign.completeness import require_complete
from gpubench.campaign.status_lines import counts
from gpubench.cli.say import say
from gpubench.files import write_atomically
from gpubench.store.accounting import Accounting
from gpubench.store.campaign import Campaign

if TYPE_CHECKING:
    from gpubench.report.inputs import JudgedCampaign
    from gpubench.report.next_steps import NextStep
    from gpubench.report.page import Page
    from gpubench.stats.settings import FailOn
    from gpubench.stats.verdict import Verdict


def show_verdicts(
    verdicts: Sequence[Verdict],
    accounting: Accounting | None = None,
    seconds: Sequence[tuple[float, float] | None] = (),
) -> None:
    """The verdict table: aligned and in colour on a terminal that is wide enough, a line each elsewhere."""
    from gpubench.report.verdicts import verdict_lines

    if not (sys.stdout.isatty() and _show_table(verdicts, seconds)):
        for line in verdict_lines(verdicts, seconds):
            say(line)
    if accounting is not None:
        say(f"runs: {counts(accounting)}")


def _show_table(verdicts: Sequence[Verdict], seconds: Sequence[tuple[float, float] | None]) -> bool:
    """Whether the terminal was wide enough for the table."""
    from gpubench.cli.terminal import Terminal
    from gpubench.report.verdicts import NARROWEST, OF_SECONDS, wide_table

    console = Terminal()
    wide = console.width >= NARROWEST + (OF_SECONDS if seconds else 0)
    if wide:
        console.print(wide_table(verdicts, seconds))
    return wide


def show_next_steps(found: Sequence[NextStep]) -> None:
    """Print commands to type next, each with its cost and its benefit."""
    if not found:
        return
    say("")
    width = max(len(one.command) for one in found)
    for one in found:
        say(f"{one.command:{width}}   # {one.why}" if one.command else one.why)


def write_report(campaign: Campaign, judged: JudgedCampaign) -> Page:
    """``report.html`` and ``report.md`` into the campaign's directory, or beside its pack; the page."""
    from gpubench.cli.results.judge import with_evidence
    from gpubench.report.campaign_page import campaign_page
    from gpubench.report.provenance import cautions

    page = campaign_page(with_evidence(campaign, judged))
    for line in cautions(judged.plan, judged.changes, judged.outcomes):
        say(f"note: {line}")
    write_page(page, campaign.report, campaign.summary)
    say(f"report: {campaign.report}")
    if campaign.pack is None:
        say(f"samples: {campaign.results}")
    return page


def conclude(campaign: Campaign, fail_on: FailOn | None) -> None:
    """Judge a campaign, show the verdicts, write its report.

    Raises:
        IncompleteError: a planned run has not ended.
        typer.Exit: a verdict is at least as bad as ``fail_on``.
    """
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


def write_page(page: Page, path: Path, summary: Path | None = None) -> None:
    """Write the page, and the same in Markdown if a file for it is named."""
    from gpubench.report.page import html, markdown

    write_atomically(path, html(page, resources.texts("templates")), parents=False)
    if summary is not None:
        write_atomically(summary, markdown(page), parents=False)
