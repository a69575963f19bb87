"""A run of the baseline with a few repetitions, before ``bench`` plans: how often to repeat, and what fits."""

import contextlib
import dataclasses
import datetime as dt
import json
import logging
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpubench.campaign.local_jobs import run_jobs
from gpubench.campaign.observer import Observer
from gpubench.campaign.option_values import parsed
from gpubench.campaign.options import CampaignOptions
from gpubench.campaign.planning import Images, plan_campaign
from gpubench.campaign.preflight import prepare
from gpubench.errors import IncompleteError, InterruptedByUserError
from gpubench.model.cell_names import cell_names
from gpubench.model.plan import numbers_of_blocks
from gpubench.model.quantities import digits, format_seconds
from gpubench.model.text import counted
from gpubench.node.spec.plain import parse_lines
from gpubench.node.spec.records import SAMPLES_FILE
from gpubench.node.spec.turns import SEQUENTIAL
from gpubench.plan.block_design import MOST_ROUNDS, interleaved
from gpubench.plan.budget import LEAST_REPS, MOST_TO_FILL, FirstPass, PilotWorkload, fill_budget
from gpubench.plan.request import Request
from gpubench.render.shell import command_line
from gpubench.resources.profiles import outputs_of
from gpubench.store.accounting import RunResult
from gpubench.store.campaign import Campaign
from gpubench.store.rundirs import record_seconds
from gpubench.store.states import account_now

_log = logging.getLogger(__name__)

FOLDER = "first-passes"
"""Folder below the outputs for first passes, which aren't campaigns of their own."""
REPS = 4
TURN_S = 0.02
"""Of an interleaved run, to take a turn and give it back: in 14 blocks of one campaign, on two cores, 5 to 24 ms more
than stand between two repetitions of one run."""

FILLED = 0.92
"""Part of the budget that is planned, because candidates may be slower than the baseline."""


def with_repetitions(request: Request, options: CampaignOptions, images: Images) -> Request:
    """``request``, as ``prepare_request`` gives it, with the blocks and repetitions that fill the budget.

    Blocks are chosen where ``--blocks`` isn't given. A first pass whose cluster fails says nothing of the versions: the
    repetitions are the suite's own then, and the plan says why.

    Raises:
        IncompleteError: the cluster held, and every workload failed: all runs of the baseline would.
    """
    baseline, budget_s = request.variants[0], request.budget_s or 0.0
    aim = "to choose how many fill the budget"
    _log.info(f"first pass of {baseline.label}: {REPS} repetitions of each workload, {aim}")
    outcome = _run(request, options, images)
    together = interleaved(request.site)
    rows = _timed_rows(outcome)
    tried = _tried(request, rows)
    if not tried:
        _require_a_workload(outcome, baseline.label)
        why = f"the first pass ended {outcome.status}{f': {outcome.reason}' if outcome.reason else ' without samples'}"
        return dataclasses.replace(request, repetitions=[f"repetitions are those of suite {request.suite}: {why}"])
    seconds = record_seconds(outcome.record) if outcome.record else 0.0
    first = FirstPass(
        outcome.record.campaign if outcome.record else "",
        seconds,
        _fixed_s(request, rows, tried, seconds, together=together),
        tried,
    )
    left_s, fixed_blocks = max(budget_s - seconds, 0.0), parsed("blocks", options.blocks)
    blocks, reps = fill_budget(
        first, budget_s=FILLED * left_s, blocks=fixed_blocks or MOST_TO_FILL, variants=len(request.variants)
    )
    request = dataclasses.replace(
        request,
        tried=first,
        workloads=[dataclasses.replace(item, reps=reps.get(item.params_id, item.reps)) for item in request.workloads],
        blocks=fixed_blocks or blocks,
        budget_s=left_s,
    )
    return dataclasses.replace(request, repetitions=[_repetitions_spelled(first, request)])


def _require_a_workload(outcome: RunResult, label: str) -> None:
    workloads = outcome.record.workloads if outcome.record else []
    if workloads and all(item.status == "failed" for item in workloads):
        first = workloads[0]
        others = f", and so did {counted(len(workloads) - 1, 'other')}" if len(workloads) > 1 else ""
        raise IncompleteError(
            f"{first.workload} failed in the first pass of {label}{others}: {first.reason}",
            then=command_line(["gpubench", "logs", str(outcome.directory)]) + " shows more; nothing else has run",
        )


def _run(request: Request, options: CampaignOptions, images: Images) -> RunResult:
    """One run of the first variant, in a campaign that is kept below the outputs."""
    baseline = request.variants[0]
    alone = dataclasses.replace(
        request,
        site=request.site.with_layout(arrangement=SEQUENTIAL),
        workloads=[dataclasses.replace(item, reps=REPS) for item in request.workloads],
        variants=[baseline],
        blocks=1,
        budget_s=None,
        budget_firm=False,
        not_interleaved="",
    )
    beside = dataclasses.replace(options, outputs=outputs_of(request.site, options.outputs) / FOLDER)
    campaign = plan_campaign(alone, beside, {baseline.ucx: images[baseline.ucx]})
    prepare(campaign)
    try:
        run_jobs(campaign, numbers_of_blocks(campaign.jobs), observe=say_who_is_waited_for)
    except InterruptedByUserError as stopped:
        raise InterruptedByUserError(
            f"{stopped} in the first pass", then="the campaign hadn't begun: start it again"
        ) from None
    (outcome,) = account_now(campaign).outcomes
    return outcome


class _Waits(Observer):
    """Says once for whom the first pass waits."""

    holder: str | None = None

    def waiting(self, holder: str) -> None:
        if holder != self.holder:
            self.holder = holder
            _log.info(f"the first pass waits for this machine; it is held by {holder or 'another campaign'}")


@contextlib.contextmanager
def say_who_is_waited_for(_campaign: Campaign, /, *, joining: bool = False) -> Iterator[Observer]:  # noqa: ARG001
    """Observes the run of a first pass."""
    yield _Waits()


def _timed_rows(outcome: RunResult) -> list[dict[str, Any]]:
    """All samples of the run in the order in which they began, with warm-ups; none if the run isn't ok."""
    if outcome.status != "ok" or outcome.directory is None:
        return []
    return parse_lines((outcome.directory / SAMPLES_FILE).read_text(encoding="utf-8"))


def _tried(request: Request, rows: Sequence[Mapping[str, Any]]) -> dict[str, PilotWorkload]:
    """What the timed repetitions of each workload say, by ``params_id``."""
    tried = {}
    for item in request.workloads:
        own = [row for row in rows if row["params_id"] == item.params_id and not row["warmup"]]
        if len(own) < REPS:  # it failed, or this image can't measure it
            continue
        seconds = [float(row["wall_s"]) for row in own]
        tried[item.params_id] = PilotWorkload(
            # No less than what was timed, whatever the machine's clock did meanwhile.
            cost_s=max((_at(own[-1]) - _at(own[0])) / (REPS - 1), statistics.fmean(seconds)),
            scatter=statistics.stdev(seconds) / statistics.fmean(seconds),
            marked=item.warmup,
            limit_s=item.timeout_s,
        )
    return tried


def _fixed_s(
    request: Request,
    rows: Sequence[Mapping[str, Any]],
    tried: Mapping[str, PilotWorkload],
    seconds: float,
    *,
    together: bool,
) -> float:
    """Seconds of a run of the campaign outside its repetitions.

    Clusters of an interleaved block start and end at the same time. On two cores, two of them took as long as one. We
    assume that as many variants as there are cores share the seconds of one start and one end.
    """
    repeated_s = sum(
        (REPS + item.warmup) * tried[item.params_id].cost_s for item in request.workloads if item.params_id in tried
    )
    alone_s = max(seconds - repeated_s, 0.0)
    if not together:
        return alone_s
    inside_s = _at(rows[-1]) + float(rows[-1]["wall_s"]) - _at(rows[0])
    ends_s = min(max(seconds - inside_s, 0.0), alone_s)
    variants = len(request.variants)
    turns = len(tried) * MOST_ROUNDS / 2 + 2  # half of the turns of two variants go on into the next round
    return alone_s - ends_s + ends_s / min(variants, max(request.machine_cores, 1)) + TURN_S * turns


def _at(row: Mapping[str, Any]) -> float:
    """When the repetition began, in seconds of the epoch."""
    return dt.datetime.fromisoformat(row["started_at"]).timestamp()


def _repetitions_spelled(first: FirstPass, request: Request) -> str:
    """``merge 4 x 0.98s (scatter 9 %), ...``, and where that comes from."""
    names = cell_names([{"workload": item.name, "params": json.dumps(item.params)} for item in request.workloads])
    measured = [
        (name, item.reps, first.tried[item.params_id])
        for name, item in zip(names, request.workloads, strict=True)
        if item.params_id in first.tried
    ]
    each = [
        f"{name} {reps} x {digits(pilot.cost_s)}s (scatter {100 * pilot.scatter:.0f} %)"
        for name, reps, pilot in measured
    ]
    full = [name for name, reps, pilot in measured if reps == pilot.most > LEAST_REPS]
    most = f"; {', '.join(full)}: as often as a run may" if full else ""
    return (
        f"repetitions by a first pass of {format_seconds(first.seconds)}, to fill the budget: {', '.join(each)}{most}"
    )
