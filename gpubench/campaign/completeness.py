"""Whether every planned run has ended, and what to type where one has not."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from gpubench.errors import IncompleteError, UsageError
from gpubench.render.shell import command_line
from gpubench.schedulers import JobState, submitted
from gpubench.store.accounting import PENDING, Accounting, RunResult, account, missing_runs
from gpubench.store.campaign import SEARCH_FILE, Campaign
from gpubench.store.states import doubts


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
    running = any(state.alive for state in states.values())
    if not running:
        for _, way in doubts(campaign, states):
            return way
    repair = continue_command(campaign)
    coming = {result.job.job for result in missing if result.status == PENDING}
    if coming and (running or any(submitted.read(campaign.job_dir(job)) for job in coming)):
        after = "" if all(result.status == PENDING for result in missing) else f"; when they have ended: {repair}"
        return f"jobs still wait or run: {watch_command(campaign)}{after}"
    return f"to run what is missing: {repair}"


def watch_command(campaign: Campaign) -> str:
    """What to type to see the progress of a campaign."""
    return command_line(["gpubench", "status", "--watch", str(campaign.directory)])


def continue_command(campaign: Campaign) -> str:
    """What to type to run what is missing of a campaign, or of the search that it is a step of."""
    if (search := search_of(campaign.directory)) is not None:
        return command_line(["gpubench", "bisect", str(search)])
    return command_line(["gpubench", "bench", "--campaign", str(campaign.directory)])


def search_of(directory: Path) -> Path | None:
    """The search that the campaign in a directory is a step of."""
    parent = directory.resolve().parent if directory.name in ("", "..") else directory.parent
    return parent if (parent / SEARCH_FILE).exists() else None


def require_no_step(directory: Path) -> None:
    """Raise UsageError for a step of a search: the search alone decides how many blocks it has."""
    if (search := search_of(directory)) is not None:
        raise UsageError(
            f"{directory} is a step of a search, which decides how many blocks it has",
            then=f"go on with the search: {command_line(['gpubench', 'bisect', str(search)])}",
        )


def missing_text(campaign: Campaign) -> str:
    """How much has been finished, in one phrase."""
    counts = account(campaign).counts()
    total = sum(counts.values())
    return f"{counts.get('ok', 0) + counts.get('failed', 0)} of {total} runs finished"
