"""Plans, accounts and verdicts as lines for people."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from gpubench.cli.images.build import not_imported
from gpubench.cli.say import say
from gpubench.cli.terminal import Terminal
from gpubench.cli.ways import typed
from gpubench.errors import IncompleteError
from gpubench.files import write_atomically
from gpubench.model.quantities import format_seconds
from gpubench.plan.cost import node_hours
from gpubench.plan.known import issue_lines
from gpubench.schedulers import JobState, submitted
from gpubench.store.accounting import PENDING, Accounting, RunOutcome, run_warnings
from gpubench.store.campaign import Campaign

if TYPE_CHECKING:
    from gpubench.cli.results.judge import JudgedCampaign
    from gpubench.report import ReportInputs
    from gpubench.stats.verdict import Verdict


def plan_lines(campaign: Campaign) -> Iterator[str]:
    """What will be run, and how long it will take."""
    plan = campaign.plan
    runs = list(campaign.rows())
    blocks = len({block.block for _, block, _ in runs})
    yield f"campaign {campaign.place}"
    built = not_imported(plan.site, [variant.ucx for variant in plan.variants if variant.image is None])
    for variant in plan.variants:
        absent = "built, not imported yet" if variant.ucx in built else "not built"
        version = variant.image.ucx_version if variant.image else absent
        settings = "".join(f" {key}={value}" for key, value in variant.env.items())
        role = "  (baseline)" if variant.label == plan.baseline else ""
        yield f"  {variant.label}: UCX {version}{settings}{role}"
    nodes, workers = (", ".join(map(str, sorted(set(counts)))) for counts in zip(*plan.places, strict=True))
    yield (
        f"  {blocks} blocks x {len(plan.variants)} variants = {len(runs)} runs of suite {plan.suite} "
        f"on site {plan.site.name}, nodes {nodes}, workers per node {workers}, {len(plan.comparisons)} comparisons, "
        f"seed {plan.seed}"
    )
    yield f"  about {format_seconds(plan.time.total_s)}: {format_seconds(plan.time.run_s)} a run ({plan.time.source})"
    sweep = len({workers_per_node for _, workers_per_node in plan.places}) > 1
    for cost in node_hours(plan):
        layout = f" x {cost.workers_per_node} worker{'s' if cost.workers_per_node > 1 else ''}" if sweep else ""
        yield (
            f"    {cost.nodes} node{'s' if cost.nodes > 1 else ''}{layout}: {cost.jobs} job"
            f"{'s' if cost.jobs > 1 else ''}, {cost.runs} runs, about {format_seconds(cost.seconds)} = "
            f"{cost.node_hours:.2g} node-hours"
        )
    for line in issue_lines(plan.known_issues):
        yield f"  {line}"
    for note in plan.notes:
        yield f"  {note}"
    if plan.foreseen:
        these = f"at most {plan.max_blocks} blocks" if plan.max_blocks else "these blocks"
        yield f"  with {these}, {100 * plan.power:g} % power, and the noise of an earlier campaign like this:"
    for one in plan.foreseen:
        least = f"{100 * one.detectable:.1f}-{100 * one.detectable_upper:.1f} %"
        needed, same = (
            "over 200" if blocks is None else blocks for blocks in (one.blocks_for_margin, one.blocks_for_equivalence)
        )
        layout = f" x {one.workers_per_node}" if sweep else ""
        yield (
            f"    {one.workload} on {one.nodes}{layout}: finds {least}; "
            f"for {100 * plan.margin:g} % it takes {needed} blocks, for 'equivalent' {same}"
        )


def job_lines(campaign: Campaign, states: Mapping[str, JobState], accounting: Accounting) -> Iterator[str]:
    """A line per job that isn't simply done; a job that its scheduler calls failed isn't, whatever its runs say."""
    open_jobs = {one.job.job for one in accounting.outcomes if one.status not in ("ok", "failed")}
    for job in campaign.jobs:
        state = states[job.job]
        if state.phase == "ended" and not state.end:
            continue
        number = f" ({state.job_id})" if state.job_id else ""
        words = [state.end or state.word or state.phase, *([state.reason] if state.reason and not state.end else [])]
        hosts = f" on {state.hosts}" if state.hosts else ""
        odd = ", though every run of it has ended" if state.end and job.job not in open_jobs else ""
        yield f"job {job.job}{number}: {': '.join(words)}{hosts}{odd}"


def status_lines(campaign: Campaign, accounting: Accounting) -> Iterator[str]:
    """A line for every run that isn't ok, the runs' own warnings, then the counts."""
    for outcome in accounting.outcomes:
        if outcome.status != "ok":
            place = f"block {outcome.block.block} {outcome.run.variant} ({outcome.run.run})"
            yield f"{place}: {outcome.status}: {outcome.reason}"
    for warning in run_warnings(accounting.outcomes):
        yield f"warning: {warning}"
    yield f"{campaign.place}: {counts(accounting)} of {len(accounting.outcomes)} runs"


def require_complete(campaign: Campaign, accounting: Accounting, *, running: bool = False) -> None:
    """Raise IncompleteError unless every planned run has ended; a failed one has, and is a finding.

    Args:
        running: whether a job is known to run now, here or in a queue, so that its runs may come by themselves.
    """
    replaced = {block.replaces for job in campaign.jobs for block in job.blocks}
    missing = [
        outcome
        for outcome in accounting.outcomes
        if outcome.status not in ("ok", "failed")
        and outcome.block.block not in replaced
        and not campaign.plan.skip_reason(outcome.job.nodes, outcome.run.variant)
    ]
    if missing:
        first = missing[0]
        raise IncompleteError(
            f"{len(missing)} of {len(accounting.outcomes)} runs are missing; the first: block {first.block.block} "
            f"{first.run.variant}: {first.status}: {first.reason}",
            then=_way_on(campaign, missing, running),
        )
    if not any(outcome.status == "ok" for outcome in accounting.outcomes):
        raise IncompleteError(
            f"every run failed; the first: {accounting.outcomes[0].reason}", then="see logs.zip in runs/"
        )


def _way_on(campaign: Campaign, missing: Sequence[RunOutcome], running: bool) -> str:
    """What to do about runs that haven't ended; those of a submitted job may come by themselves."""
    if campaign.pack:
        return "they can be run where the pack comes from"
    repair = typed("bench", campaign=campaign.directory)
    coming = {one.job.job for one in missing if one.status == PENDING}
    if coming and (running or any(submitted.read(campaign.job_dir(job)) for job in coming)):
        after = "" if all(one.status == PENDING for one in missing) else f"; when they have ended: {repair}"
        return f"jobs still wait or run: gpubench status --watch {campaign.directory}{after}"
    return f"to run what is missing: {repair}"


def show_verdicts(verdicts: Sequence[Verdict], accounting: Accounting | None = None) -> None:
    """The verdict table: aligned and in colour on a terminal that is wide enough, a line each elsewhere."""
    from gpubench.report.verdicts import NARROWEST, verdict_lines, verdict_table

    console = Terminal()
    if sys.stdout.isatty() and console.width >= NARROWEST:
        console.print(verdict_table(verdicts))
    else:
        for line in verdict_lines(verdicts):
            say(line)
    if accounting is not None:
        say(f"runs: {counts(accounting)}")


def show_notes(judged: JudgedCampaign) -> None:
    """What changed with the variants besides what was planned, and whether that was allowed."""
    from gpubench.report.provenance import unplanned

    for line in unplanned(judged.campaign.plan, judged.changes):
        say(f"note: {line}")


def write_report(judged: JudgedCampaign) -> ReportInputs:
    """``report.html`` and ``report.md`` into the campaign's directory, or beside its pack; what they were made from."""
    from gpubench.cli.results.judge import report_inputs
    from gpubench.report.markdown import markdown
    from gpubench.report.page import html

    inputs = report_inputs(judged)
    show_notes(judged)
    write_atomically(judged.campaign.report, html(inputs), parents=False)
    write_atomically(judged.campaign.summary, markdown(inputs), parents=False)
    say(f"report: {judged.campaign.report}")
    if judged.campaign.pack is None:
        say(f"samples: {judged.campaign.results}")
    return inputs


def counts(accounting: Accounting) -> str:
    """``2 failed, 16 ok``."""
    return ", ".join(f"{count} {status}" for status, count in sorted(accounting.counts().items()))
