"""Accounts and verdicts as lines for people, and what to type next."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpubench import resources
from gpubench.cli.campaign.states import doubts
from gpubench.cli.say import say
from gpubench.errors import IncompleteError
from gpubench.files import write_atomically
from gpubench.render.environment import words
from gpubench.schedulers import JobState, submitted
from gpubench.store.accounting import PENDING, Accounting, RunResult, account, missing_runs, run_warnings
from gpubench.store.campaign import Campaign

if TYPE_CHECKING:
    from gpubench.report.inputs import JudgedCampaign
    from gpubench.report.next_steps import NextStep
    from gpubench.report.page import Page
    from gpubench.stats.verdict import Verdict


def job_lines(campaign: Campaign, states: Mapping[str, JobState], accounting: Accounting) -> Iterator[str]:
    """A line per job that hasn't ended well; also for a job that its scheduler calls failed, whatever its runs say."""
    open_jobs = {one.job.job for one in accounting.outcomes if one.status not in ("ok", "failed")}
    for job in campaign.jobs:
        state = states[job.job]
        if state.phase == "ended" and not state.end:
            continue
        number = f" ({state.job_id})" if state.job_id else ""
        parts = [state.end or state.word or state.phase, *([state.reason] if state.reason and not state.end else [])]
        hosts = f" on {state.hosts}" if state.hosts else ""
        odd = ", although all of its runs have ended" if state.end and job.job not in open_jobs else ""
        yield f"job {job.job}{number}: {': '.join(parts)}{hosts}{odd}"


def status_lines(campaign: Campaign, accounting: Accounting) -> Iterator[str]:
    """A line for every run that isn't ok, the runs' own warnings, then the counts."""
    for outcome in accounting.outcomes:
        if outcome.status != "ok":
            place = f"block {outcome.block.block} {outcome.run.variant} ({outcome.run.run})"
            yield f"{place}: {outcome.status}: {outcome.reason}"
    for warning in run_warnings(accounting.outcomes):
        yield f"warning: {warning}"
    yield f"{campaign.place}: {counts(accounting)} of {len(accounting.outcomes)} runs"


def require_complete(campaign: Campaign, accounting: Accounting, states: Mapping[str, JobState] | None = None) -> None:
    """Raise IncompleteError unless every planned run has ended; a failed run has ended, and is a finding.

    Args:
        states: of the jobs, where they were asked for: runs of one that waits or runs may come by themselves.
    """
    missing = missing_runs(campaign.plan, accounting.outcomes)
    if missing:
        first = missing[0]
        raise IncompleteError(
            f"{len(missing)} of {len(accounting.outcomes)} runs are missing; the first: block {first.block.block} "
            f"{first.run.variant}: {first.status}: {first.reason}",
            then=_resume_hint(campaign, missing, states or {}),
        )
    if not any(outcome.status == "ok" for outcome in accounting.outcomes):
        failed = [outcome for outcome in accounting.outcomes if outcome.status == "failed"]
        if not failed:
            raise IncompleteError(f"no run was begun; the first: {accounting.outcomes[0].reason}")
        raise IncompleteError(f"every run failed; the first: {failed[0].reason}", then="see logs.zip in runs/")


def _resume_hint(campaign: Campaign, missing: Sequence[RunResult], states: Mapping[str, JobState]) -> str:
    """What to do about runs that haven't ended; those of a submitted job may come by themselves."""
    if campaign.pack:
        return "run them in the campaign that was packed"
    running = any(state.alive for state in states.values())
    if not running:
        for _, way in doubts(campaign, states):
            return way
    repair = continue_command(campaign)
    coming = {one.job.job for one in missing if one.status == PENDING}
    if coming and (running or any(submitted.read(campaign.job_dir(job)) for job in coming)):
        after = "" if all(one.status == PENDING for one in missing) else f"; when they have ended: {repair}"
        return f"jobs still wait or run: gpubench status --watch {campaign.directory}{after}"
    return f"to run what is missing: {repair}"


def continue_command(campaign: Campaign) -> str:
    """What to type to run what is missing of a campaign."""
    return words(["gpubench", "bench", "--campaign", str(campaign.directory)])


def missing_words(campaign: Campaign) -> str:
    """How much has been finished, in one phrase."""
    counts = account(campaign).counts()
    total = sum(counts.values())
    return f"{counts.get('ok', 0) + counts.get('failed', 0)} of {total} runs finished"


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


def write_page(page: Page, path: Path, summary: Path | None = None) -> None:
    """Write the page, and the same in Markdown if a file for it is named."""
    from gpubench.report.page import html, markdown

    write_atomically(path, html(page, resources.texts("templates")), parents=False)
    if summary is not None:
        write_atomically(summary, markdown(page), parents=False)


def counts(accounting: Accounting) -> str:
    """``2 failed, 16 ok``."""
    return ", ".join(f"{count} {status}" for status, count in sorted(accounting.counts().items()))
