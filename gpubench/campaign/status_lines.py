"""How the jobs and runs of a campaign stand, as lines for people."""

from collections.abc import Iterator, Mapping

from gpubench.model.text import counted
from gpubench.node.spec.records import RAN
from gpubench.schedulers import JobState
from gpubench.store.accounting import Accounting, RunResult, over_budget, replaced_blocks, run_counts, run_warnings
from gpubench.store.campaign import Campaign


def job_lines(campaign: Campaign, states: Mapping[str, JobState], accounting: Accounting) -> Iterator[str]:
    """A line per job that hasn't ended well; also for a job that its scheduler calls failed, whatever its runs say."""
    open_jobs = {result.job.job for result in accounting.outcomes if result.status not in RAN}
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
    """A line for every run that isn't ok, one for runs that are so in part alike, warnings, then the counts."""
    late = [outcome for outcome in accounting.outcomes if over_budget(outcome)]
    replaced = replaced_blocks(accounting.outcomes)
    in_part: dict[tuple[str, str], list[RunResult]] = {}
    for outcome in accounting.outcomes:
        if outcome.in_part:
            in_part.setdefault((outcome.run.variant, outcome.why), []).append(outcome)
        elif outcome.status != "ok" and not over_budget(outcome):
            after = f"; block {replaced[block]} is in its place" if (block := outcome.block.block) in replaced else ""
            yield f"{_place(outcome)}: {outcome.status}: {outcome.why}{after}"
    for (_, why), (first, *others) in in_part.items():  # one line for all: they may be every run of a variant
        more = f" and {len(others)} more of it" if others else ""
        yield f"{_place(first)}{more}: ok, in part: {why}"
    if blocks := len({outcome.block.block for outcome in late}):
        yield f"{counted(blocks, 'block')} not begun, from block {late[0].block.block} on: {late[0].reason}"
    for warning in (*accounting.warnings, *run_warnings(accounting.outcomes)):
        yield f"warning: {warning}"
    yield f"{campaign.directory}: {run_counts(accounting.outcomes)} of {len(accounting.outcomes)} runs"


def _place(outcome: RunResult) -> str:
    return f"block {outcome.block.block} {outcome.run.variant} ({outcome.run.run})"
