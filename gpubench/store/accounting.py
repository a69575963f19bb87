"""What became of every planned run: exactly one of ``ok failed skipped lost``, with a reason."""

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpubench.errors import DataError
from gpubench.model.cell_names import cell_names
from gpubench.model.plan import Plan, PlannedBlock, PlannedJob, PlannedRun
from gpubench.model.text import counted
from gpubench.node.spec import RunRecord
from gpubench.node.spec.plain import canonical
from gpubench.node.spec.records import RAN, WorkloadRecord
from gpubench.store.campaign import Campaign
from gpubench.store.rundirs import Records, RunDirectory, read_provenance, run_directories

ENDED = ("ok", "failed", "skipped", "lost")
PENDING = "pending"
OVER_BUDGET = "no time left in the budget"
"""How the reason of a run begins whose block the job script didn't begin for that."""


@dataclasses.dataclass(frozen=True)
class RunResult:
    """One planned run and how it ended.

    ``status`` is ``ok failed skipped lost``, or ``pending`` while its job lives. ``attempt`` is the last one,
    which alone counts, and 0 when there is none; ``directory`` and ``record`` are its own. Only ``ok`` has no reason.
    A run is ``ok`` if one of its workloads is.
    """

    job: PlannedJob
    block: PlannedBlock
    run: PlannedRun
    status: str
    reason: str = ""
    attempt: int = 0
    directory: Path | None = None
    record: RunRecord | None = None

    @property
    def in_part(self) -> Sequence[WorkloadRecord]:
        """The workloads of an ``ok`` run that aren't ok."""
        workloads = self.record.workloads if self.record and self.status == "ok" else []
        return [workload for workload in workloads if workload.status != "ok"]

    @property
    def why(self) -> str:
        """The reason of the run; of one that is ``ok`` in part, how its other workloads ended."""
        return self.reason or ("; ".join(not_ok(self.record)) if self.record and self.in_part else "")

    @property
    def provenance(self) -> Mapping[str, Any]:
        """What it recorded of where it ran, read each time: any key may be missing."""
        return read_provenance(self.directory) if self.directory else {}


def not_ok(record: RunRecord) -> list[str]:
    """``merge failed: wrong answer``: how each workload ended that isn't ok, by the name of its cell in this run."""
    keys = [
        {"workload": item.workload, "backend": item.backend, "params": canonical(item.params).decode()}
        for item in record.workloads
    ]
    named = zip(cell_names(keys), record.workloads, strict=True)
    return [f"{name} {item.status}: {item.reason}" for name, item in named if item.status != "ok"]


@dataclasses.dataclass(frozen=True)
class Accounting:
    """Every planned run in planned order, and what stands in ``runs/`` against the rules."""

    outcomes: tuple[RunResult, ...]
    warnings: tuple[str, ...] = ()

    def counts(self) -> dict[str, int]:
        """Runs by status, e.g. ``{"ok": 22, "failed": 2}``; a status without runs is absent."""
        return dict(Counter(outcome.status for outcome in self.outcomes))

    @property
    def complete(self) -> bool:
        """Whether every planned run is ``ok``."""
        return all(outcome.status == "ok" for outcome in self.outcomes)


def over_budget(outcome: RunResult) -> bool:
    """Whether the budget left no time for the run's block."""
    return left_no_time(outcome.status, outcome.reason)


def left_no_time(status: str, reason: str) -> bool:
    """The same of how a run ended."""
    return status == "skipped" and reason.startswith(OVER_BUDGET)


def replaced_blocks(outcomes: Iterable[RunResult]) -> dict[int, int]:
    """The numbers of blocks that have others in their place, with the numbers of these."""
    return {outcome.block.replaces: outcome.block.block for outcome in outcomes if outcome.block.replaces is not None}


def missing_runs(plan: Plan, outcomes: Sequence[RunResult]) -> list[RunResult]:
    """The runs that ``bench --campaign`` would repeat or wait for.

    A failed run has ended, and is a finding. Not missing is what was planned to be skipped, what the budget left no
    time for, and what a later block replaces.
    """
    replaced = replaced_blocks(outcomes)
    return [
        outcome
        for outcome in outcomes
        if outcome.status not in RAN
        and not over_budget(outcome)
        and outcome.block.block not in replaced
        and not plan.skip_reason(outcome.job.nodes, outcome.run.variant)
    ]


def run_counts(outcomes: Iterable[RunResult]) -> str:
    """``16 ok (2 of them in part), 2 failed, 4 skipped (4 of them by the budget)``."""
    ended = list(outcomes)
    counts = Counter(outcome.status for outcome in ended)
    texts = {status: f"{counts[status]} {status}" for status in (*ENDED, PENDING) if status in counts}
    if in_part := sum(bool(outcome.in_part) for outcome in ended):
        texts["ok"] += f" ({in_part} of them in part)"
    if late := sum(map(over_budget, ended)):
        texts["skipped"] += f" ({late} of them by the budget)"
    return ", ".join(texts.values())


def run_warnings(outcomes: Iterable[RunResult]) -> list[str]:
    """Warnings of the runs themselves, each once with the number of runs that gave it."""
    counts = Counter(warning for result in outcomes if result.record for warning in result.record.warnings)
    return [f"{warning} ({counted(count, 'run')})" for warning, count in counts.items()]


def account(
    campaign: Campaign,
    alive: Collection[str] = (),
    ends: Mapping[str, str] | None = None,
    records: Records | None = None,
) -> Accounting:
    """Look at every planned run.

    Args:
        alive: jobs that may still produce runs (submitted and not over, or yet to be submitted).
        ends: by job, how it ended if that is known (``time limit``, ``interrupted``): part of a lost run's reason.
        records: those that have been read already; more come to it.
    """
    records_read = records or Records()
    attempts: dict[str, list[RunDirectory]] = defaultdict(list)
    for directory in run_directories(campaign.runs_dir):
        attempts[directory.run].append(directory)
    outcomes = []
    for job, block, run in campaign.rows():
        end, tried = (ends or {}).get(job.job, ""), attempts.get(run.run, [])
        outcome = _outcome((job, block, run), tried, records_read, alive=job.job in alive, end=end)
        if outcome.status == "lost" and (why := campaign.plan.skip_reason(job.nodes, run.variant)):
            # What is planned to be skipped is skipped, whether or not its job came to write that down.
            outcome = dataclasses.replace(outcome, status="skipped", reason=why, record=None)
        outcomes.append(outcome)
    planned = {run.run for _, _, run in campaign.rows()}
    strangers = [
        f"runs/{entry.path.name} is in no plan: left out"
        for run in attempts.keys() - planned
        for entry in attempts[run]
    ]
    return Accounting(tuple(outcomes), (*sorted(strangers), *_repeated(attempts, planned, records_read)))


def _outcome(
    row: tuple[PlannedJob, PlannedBlock, PlannedRun],
    attempts: list[RunDirectory],
    records: Records,
    *,
    alive: bool,
    end: str,
) -> RunResult:
    job, block, run = row
    ended = f"job {job.job} ended{f' ({end})' if end else ''}"
    if not attempts:
        status, reason = (PENDING, "not started yet") if alive else ("lost", f"{ended} before this run started")
        return RunResult(job, block, run, status, reason)
    last = attempts[-1]

    def ended_as(status: str, reason: str, record: RunRecord | None = None) -> RunResult:
        return RunResult(job, block, run, status, reason, last.attempt, last.path, record)

    try:
        record = records.read(last.path)
    except DataError as error:
        return ended_as("lost", str(error))
    if record is None:
        cut = f"started, but left no record: {ended}, or the run was killed"
        return ended_as(PENDING, "running") if alive else ended_as("lost", cut)
    identity = (record.run, record.attempt, record.block, record.variant)
    if identity != (expected := (run.run, last.attempt, block.block, run.variant)):
        return ended_as("lost", f"its record is that of another run: {identity}, not {expected}")
    return ended_as(record.status, record.reason or ("" if record.status == "ok" else "no reason given"), record)


def _repeated(attempts: Mapping[str, list[RunDirectory]], planned: Collection[str], records: Records) -> Iterator[str]:
    """Runs that finished and yet were started again, which nobody should do: the earlier result doesn't count.

    A run that was skipped has no result; whoever goes on with the campaign runs it.
    """
    for run in sorted(attempts.keys() & set(planned)):
        for earlier in attempts[run][:-1]:
            try:
                record = records.read(earlier.path)
                finished = record is not None and record.status != "skipped"
            except DataError:  # whatever it was, something had ended here
                finished = True
            if finished:
                last = attempts[run][-1].attempt
                yield f"runs/{earlier.path.name} had finished, but attempt {last} follows; only that one counts"
