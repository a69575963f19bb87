"""Plans, accounts, logs and verdicts as lines for people."""

from __future__ import annotations

import json
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpubench import resources
from gpubench.cli.campaign.running import account_now, continue_command, doubts, queue_limit
from gpubench.cli.say import say
from gpubench.errors import DataError, IncompleteError, UsageError
from gpubench.files import write_atomically
from gpubench.model.base import nearest
from gpubench.model.image import ImageSpec
from gpubench.model.plan import Plan
from gpubench.model.quantities import format_seconds
from gpubench.model.text import counted
from gpubench.schedulers import JobState, submitted
from gpubench.spec.records import LOGS_FILE
from gpubench.store.accounting import PENDING, Accounting, RunResult, missing_runs, run_warnings
from gpubench.store.campaign import PLAN_FILE, Campaign

if TYPE_CHECKING:
    from gpubench.report.inputs import JudgedCampaign
    from gpubench.report.next_steps import NextStep
    from gpubench.report.page import Page
    from gpubench.stats.verdict import Verdict


def plan_lines(campaign: Campaign) -> Iterator[str]:
    """What will be run, and how long it will take."""
    from gpubench.cli.images.obtain import not_imported
    from gpubench.plan.budget import node_hours
    from gpubench.plan.known_issues import issue_lines

    plan = campaign.plan
    runs = list(campaign.rows())
    blocks = len({block.block for _, block, _ in runs})
    if caution := _undecidable(plan):
        yield caution
    written = (campaign.directory / PLAN_FILE).exists()
    yield f"campaign {campaign.place}" if written else f"plan of {plan.campaign}: nothing is written or run"
    built = not_imported(plan.site, [variant.ucx for variant in plan.variants if variant.image is None])
    for variant in plan.variants:
        absent = "built, not imported yet" if variant.ucx in built else "not built"
        version = variant.image.ucx_version if variant.image else absent
        spec = ImageSpec.parse(variant.ucx)
        stack = "".join(f" {name}=={pinned}" for name, pinned in spec.packages.items())
        stack = (f" stack={spec.stack}" if spec.stack else "") + stack
        settings = stack + "".join(f" {key}={value}" for key, value in variant.env.items())
        role = "  (baseline)" if variant.label == plan.baseline else ""
        yield f"  {variant.label}: UCX {version}{settings}{role}"
    nodes, workers = (", ".join(map(str, sorted(set(counts)))) for counts in zip(*plan.places, strict=True))
    yield (
        f"  {counted(blocks, 'block')} x {counted(len(plan.variants), 'variant')} = {counted(len(runs), 'run')} "
        f"of suite {plan.suite} on site {plan.site.name}, nodes {nodes}, workers per node {workers}, "
        f"{counted(len(plan.comparisons), 'comparison')}, "
        f"seed {plan.seed}"
    )
    yield f"  about {format_seconds(plan.time.total_s)}: {format_seconds(plan.time.run_s)} a run ({plan.time.source})"
    sweep = len({workers_per_node for _, workers_per_node in plan.places}) > 1
    for cost in node_hours(plan):
        layout = f" x {counted(cost.workers_per_node, 'worker')}" if sweep else ""
        yield (
            f"    {counted(cost.nodes, 'node')}{layout}: {counted(cost.jobs, 'job')}, {counted(cost.runs, 'run')}, "
            f"about {format_seconds(cost.seconds)} = {cost.node_hours:.2g} node-hours"
        )
    if plan.site.batch.jobs_per_user:
        yield f"  {queue_limit(plan.site)}: bench submits one after the other, submit has to be called again"
    for line in issue_lines(plan.known_issues):
        yield f"  {line}"
    for note in plan.notes:
        yield f"  {note}"
    if plan.protocol == "ucx":  # whose listeners can't be bound to an address
        yield f"  scheduler, workers and clients listen on {plan.listeners}"
    yield from _finds(plan)


def _finds(plan: Plan) -> Iterator[str]:
    """The differences that the planned blocks can detect, by the noise of an earlier campaign or by assumed noise."""
    blocks = plan_blocks(plan)
    if not plan.foreseen:
        if plan.first_pass:  # a note of the plan says it, with the scatter of the first pass
            return
        from gpubench.plan.make import predict_for_plan

        _, assumed = predict_for_plan(
            (),
            workloads=[item.spec for item in plan.workloads],
            comparisons=plan.comparisons,
            blocks=blocks,
            margin=plan.margin,
            summary=plan.summary,
            power=plan.power,
        )
        yield from (f"  {line}" for line in assumed if line not in plan.notes)
        return
    these = counted(blocks, "block")
    yield f"  what {these} can find, with {100 * plan.power:g} % power and the noise of an earlier campaign like this:"
    for one, name in zip(plan.foreseen, _foreseen_names(plan), strict=True):
        upper = f"(up to {_percent(one.detectable_upper)} %, since that noise is uncertain)"
        least = f"{_percent(one.detectable)} % or more {upper}"
        ways = [
            f"{what} would take {_price(plan, needed)}"
            for needed, what in (
                (one.blocks_for_margin, f"{100 * plan.margin:g} %"),
                (one.blocks_for_equivalence, "'equivalent'"),
            )
            if needed is None or needed > blocks
        ]
        yield f"    {name}: differences of {'; '.join([least, *ways])}"


def _percent(ratio: float) -> str:
    """Two significant digits, never as a power of ten."""
    return f"{float(f'{100 * ratio:.2g}'):.7g}"


def plan_blocks(plan: Plan) -> int:
    """Blocks at each place."""
    at = Counter(job.place for job in plan.jobs for _ in job.blocks)
    return max(at.values())


def _price(plan: Plan, blocks: int | None) -> str:
    if blocks is None:
        return "over 200 blocks"
    return f"{counted(blocks, 'block')} (about {format_seconds(blocks * plan.time.block_s * len(plan.places))})"


def _foreseen_names(plan: Plan) -> list[str]:
    from gpubench.report.labels import cell_names

    params = {item.params_id: json.dumps(item.params) for item in plan.workloads}
    cell = {"workload", "nodes", "workers_per_node"}
    return cell_names([one.model_dump(include=cell) | {"params": params[one.params_id]} for one in plan.foreseen])


def _undecidable(plan: Plan) -> str:
    """The first line of a plan that can decide no workload at its margin; empty for any other plan."""
    blocks = plan_blocks(plan)
    ways = [need for one in plan.foreseen for need in (one.blocks_for_margin, one.blocks_for_equivalence)]
    if not ways or any(need is not None and need <= blocks for need in ways):
        return ""
    least = min(one.detectable for one in plan.foreseen)
    return (
        f"caution: with this noise, the plan can decide no workload at the margin of {100 * plan.margin:g} %; "
        f"it detects only differences of {_percent(least)} % or more"
    )


def job_lines(campaign: Campaign, states: Mapping[str, JobState], accounting: Accounting) -> Iterator[str]:
    """A line per job that hasn't ended well; also for a job that its scheduler calls failed, whatever its runs say."""
    open_jobs = {one.job.job for one in accounting.outcomes if one.status not in ("ok", "failed")}
    for job in campaign.jobs:
        state = states[job.job]
        if state.phase == "ended" and not state.end:
            continue
        number = f" ({state.job_id})" if state.job_id else ""
        words = [state.end or state.word or state.phase, *([state.reason] if state.reason and not state.end else [])]
        hosts = f" on {state.hosts}" if state.hosts else ""
        odd = ", although all of its runs have ended" if state.end and job.job not in open_jobs else ""
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


TAIL = 15


def show_logs(campaign: Campaign, run: str | None) -> None:
    """The jobs' log files, then the last lines of the processes of one run, or of every run that failed."""
    outcomes = account_now(campaign).outcomes
    if run is not None and run not in {one.run.run for one in outcomes}:
        raise UsageError(f"{campaign.place} has no run '{run}'{nearest(run, [one.run.run for one in outcomes])}")
    for job in campaign.jobs:
        for path in sorted(campaign.job_dir(job.job).glob("*.log")):
            say(f"{campaign.shown(path)}  {path.stat().st_size} bytes")
    for one in outcomes:
        wanted = one.status != "ok" if run is None else one.run.run == run
        if wanted and one.directory:
            say("")
            say(f"{one.run.run} block {one.block.block} {one.run.variant}: {one.status}: {one.reason}")
            _show(campaign, one.directory / LOGS_FILE)


def _show(campaign: Campaign, path: Path) -> None:
    if not path.exists():
        say(f"  no {path.name}: the run left no record")
        return
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                lines = archive.read(name).decode("utf-8", "replace").rstrip().splitlines()
                say(f"  {name}  ({campaign.shown(path)}, {counted(len(lines), 'line')})")
                for line in lines[-TAIL:]:
                    say(f"    {line}")
    except BrokenPipeError:
        raise  # of whoever reads what we say
    except (OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{campaign.shown(path)} can't be read: {error}") from None
