"""A run of the baseline with a few repetitions, before ``bench`` plans: how often to repeat, and what fits."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.cli.campaign.planning import Wanted, check_plan, plan_campaign, run_seconds, settle
from gpubench.cli.campaign.preflight import prepare
from gpubench.cli.campaign.running import account_now, run_jobs
from gpubench.cli.images.obtain import obtain_images
from gpubench.cli.say import say
from gpubench.errors import InterruptedByUserError
from gpubench.model.quantities import format_seconds
from gpubench.plan.block_design import interleaved, warmup_repetitions
from gpubench.plan.budget import LEAST_REPS, MOST_BLOCKS, FirstPass, PilotWorkload, fill_budget
from gpubench.plan.feasibility import SEQUENTIAL
from gpubench.schedulers import LOCAL
from gpubench.spec.plain import parse_lines
from gpubench.spec.records import SAMPLES_FILE
from gpubench.store.accounting import RunOutcome

FOLDER = "first-passes"
"""Folder below the outputs for first passes, which aren't campaigns of their own."""
REPS = 4
TURN_S = 0.05
"""Of an interleaved run, to take a turn and give it back: in eight blocks of one campaign, on two cores, the changes of
turn took about 0.5 s a block more than a first pass takes between its workloads."""

FILLED = 0.92
"""Part of the budget that is planned, because candidates may be slower than the baseline."""


def with_repetitions(wanted: Wanted) -> Wanted:
    """``wanted`` with the blocks and repetitions that fill the budget, if a first pass can choose them.

    It chooses repetitions where the suite says ``first_pass`` and ``--reps`` isn't given, blocks where ``--blocks``
    isn't. No first pass is made where a queue starts the jobs, without a budget, in an adaptive campaign (its budget
    buys blocks), and over several node counts or layouts, whose runs take different times. A first pass that fails says
    nothing of the versions: the repetitions are the suite's own then, and the plan says why.
    """
    budget_s = wanted.budget_s
    fixed = wanted.asked.adaptive or len(wanted.nodes) * len(wanted.workers) > 1
    if not wanted.chooses_repetitions or wanted.site.scheduler not in LOCAL or budget_s is None or fixed:
        return wanted
    check_plan(wanted)
    # An image that can't be had ends it here, before a run is spent; and all of them decide how processes wait.
    found = obtain_images(wanted.site, [variant.ucx for variant in wanted.variants], wanted.asked)
    settled = settle(wanted, {spec: entry[1] for spec, entry in found.items() if entry}).site
    baseline = wanted.variants[0]
    say(f"first pass of {baseline.label}: {REPS} repetitions of each workload, to choose how many fill the budget")
    outcome = _run(wanted, settled.layout.waiting)
    together = interleaved(settled)
    rows = _timed_rows(outcome)
    tried = _tried(wanted, rows, together=together)
    if not tried:
        why = f"the first pass ended {outcome.status}{f': {outcome.reason}' if outcome.reason else ' without samples'}"
        return dataclasses.replace(wanted, repetitions=f"repetitions are those of suite {wanted.suite}: {why}")
    seconds = run_seconds(outcome)
    variants, asked_blocks = len(wanted.variants), wanted.asked.chosen_blocks()
    first = FirstPass(
        outcome.record.campaign if outcome.record else "",
        seconds,
        _fixed_s(wanted, rows, tried, seconds, together=together),
        tried,
    )
    left_s = max(budget_s - seconds, 0.0)
    blocks, reps = fill_budget(first, budget_s=FILLED * left_s, blocks=asked_blocks or MOST_BLOCKS, variants=variants)
    workloads = [dataclasses.replace(item, reps=reps.get(item.params_id, item.reps)) for item in wanted.workloads]
    wanted = dataclasses.replace(
        wanted,
        tried=first,
        workloads=workloads,
        first_pass=first.campaign,
        blocks=asked_blocks or blocks,
        budget_s=left_s,
        spent_s=seconds,
    )
    return dataclasses.replace(wanted, repetitions=_words(first, wanted))


def _run(wanted: Wanted, waiting: str) -> RunOutcome:
    """One run of the first variant, in a campaign that is kept below the outputs."""
    layout = wanted.site.layout.model_copy(update={"arrangement": SEQUENTIAL, "waiting": waiting})
    alone = dataclasses.replace(
        wanted,
        site=wanted.site.model_copy(update={"layout": layout}),
        workloads=[dataclasses.replace(item, reps=REPS) for item in wanted.workloads],
        variants=wanted.variants[:1],
        blocks=1,
        budget_s=None,
        budget_firm=False,
        power=None,
        outputs=wanted.outputs / FOLDER,
        chooses_repetitions=False,
    )
    campaign = plan_campaign(alone, quiet=True)
    prepare(campaign)
    try:
        run_jobs(campaign, quiet=True)
    except InterruptedByUserError as stopped:
        raise InterruptedByUserError(
            f"{stopped} in the first pass", then="the campaign hadn't begun: start it again"
        ) from None
    (outcome,) = account_now(campaign).outcomes
    return outcome


def _timed_rows(outcome: RunOutcome) -> list[dict[str, Any]]:
    """All samples of the run in the order in which they began, with warm-ups; none if the run isn't ok."""
    if outcome.status != "ok" or outcome.directory is None:
        return []
    return parse_lines((outcome.directory / SAMPLES_FILE).read_text(encoding="utf-8"))


def _tried(wanted: Wanted, rows: Sequence[Mapping[str, Any]], *, together: bool) -> dict[str, PilotWorkload]:
    """What the timed repetitions of each workload say, by ``params_id``."""
    tried = {}
    for item in wanted.workloads:
        own = [row for row in rows if row["params_id"] == item.params_id and not row["warmup"]]
        if len(own) < REPS:  # it failed, or this image can't measure it
            continue
        seconds = [float(row["wall_s"]) for row in own]
        tried[item.params_id] = PilotWorkload(
            # No less than what was timed, whatever the machine's clock did meanwhile.
            cost_s=max((_at(own[-1]) - _at(own[0])) / (REPS - 1), statistics.fmean(seconds)),
            scatter=statistics.stdev(seconds) / statistics.fmean(seconds),
            marked=warmup_repetitions(item.warmup, variants=len(wanted.variants), together=together),
            limit_s=item.timeout_s,
        )
    return tried


def _fixed_s(
    wanted: Wanted,
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
        (REPS + item.warmup) * tried[item.params_id].cost_s for item in wanted.workloads if item.params_id in tried
    )
    alone_s = max(seconds - repeated_s, 0.0)
    if not together:
        return alone_s
    inside_s = _at(rows[-1]) + float(rows[-1]["wall_s"]) - _at(rows[0])
    ends_s = min(max(seconds - inside_s, 0.0), alone_s)
    variants = len(wanted.variants)
    turns = len(tried) * warmup_repetitions(1, variants=variants, together=True) + 2
    return alone_s - ends_s + ends_s / min(variants, max(wanted.machine_cores, 1)) + TURN_S * turns


def _at(row: Mapping[str, Any]) -> float:
    """When the repetition began, in seconds of the epoch."""
    return dt.datetime.fromisoformat(row["started_at"]).timestamp()


def _words(first: FirstPass, wanted: Wanted) -> str:
    """``merge 4 x 0.98s (scatter 9 %), ...``, and where that comes from."""
    # Late: the page's libraries take half a second, and the first run shall begin before.
    from gpubench.report.labels import cell_names

    names = cell_names([{"workload": item.name, "params": json.dumps(item.params)} for item in wanted.workloads])
    each = [
        f"{name} {item.reps} x {one.cost_s:.2g}s (scatter {100 * one.scatter:.0f} %)"
        for name, item in zip(names, wanted.workloads, strict=True)
        if (one := first.tried.get(item.params_id))
    ]
    full = [
        name
        for name, item in zip(names, wanted.workloads, strict=True)
        if (one := first.tried.get(item.params_id)) and item.reps == one.most > LEAST_REPS
    ]
    most = f"; {', '.join(full)}: as often as a run may" if full else ""
    return (
        f"repetitions by a first pass of {format_seconds(first.seconds)}, to fill the budget: {', '.join(each)}{most}"
    )
