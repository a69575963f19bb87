"""The outcome of every planned run, as a section."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from gpubench.model.cell_names import cell_names, workload_key
from gpubench.model.text import counted
from gpubench.node.spec.records import LOGS_FILE, PROVENANCE_FILE, RUN_FILE, SAMPLES_FILE
from gpubench.report import condense, labels
from gpubench.report.sections import ColumnStyle, Heading, Medium, RichText, Section, SectionPart, TextSpan, TextTable
from gpubench.results.judged_campaign import JudgedCampaign
from gpubench.store.accounting import RunResult, run_counts
from gpubench.store.rundirs import record_seconds

RUNS = "gpubench/runs/1"


def runs_section(inputs: JudgedCampaign) -> Section:
    """A table per job, a row per block; Markdown names runs that aren't ok, or are so in part."""
    bad = [outcome for outcome in inputs.outcomes if outcome.status != "ok" or outcome.in_part]
    lines = [
        f"block {outcome.block.block}, {outcome.run.variant}: "
        f"{outcome.status}{', in part' if outcome.in_part else ''}: {outcome.why}"
        for outcome in bad
    ]
    key: list[str | TextSpan] = []
    for word, mark in labels.RUN_MARKS.items():
        key += [] if word == "pending" else [TextSpan(f"{mark} {word}", f"status {word}"), " "]
    columns = [
        Heading("block", ColumnStyle.NUMBER),
        *(Heading(TextSpan(variant.label)) for variant in inputs.plan.variants),
    ]
    tables = [TextTable(columns, rows, f"Job {heading}", "matrix") for heading, rows in jobs(inputs)]
    return Section(
        [
            *([SectionPart("Runs that did not end ok:", lines, medium=Medium.MARKDOWN)] if bad else []),
            *(SectionPart(table=table, medium=Medium.PAGE) for table in tables),
        ],
        title="Runs",
        anchor="runs",
        text=[[*key, TextSpan("· every planned run is one of these. The number is its place in its block.", "quiet")]],
        brief=run_counts(inputs.outcomes),
        open=bool(bad),
    )


def run_list_section(name: str, outcomes: Sequence[RunResult]) -> Section:
    """A row per planned run, for ``report --only runs``; JSON has its id, job, size and directory too.

    Seconds are without the turns of others, as where a run ends; ``order`` is from 0, as in the table of samples.
    """
    columns: list[Heading | str] = [Heading(name, ColumnStyle.NUMBER) for name in ("block", "order")]
    columns += ["variant", "status", Heading("seconds", ColumnStyle.NUMBER), "why"]
    rows: list[list[RichText]] = []
    data: list[dict[str, Any]] = []
    for outcome in outcomes:
        seconds = round(record_seconds(outcome.record), 3) if outcome.record else None
        place = (outcome.block.block, outcome.run.order)
        status = f"{labels.RUN_MARKS[outcome.status]} {outcome.status}{', in part' if outcome.in_part else ''}"
        seconds_text = "" if seconds is None else f"{seconds:.1f}"
        rows.append([*map(str, place), outcome.run.variant, status, seconds_text, outcome.why])
        about = {"run": outcome.run.run, "job": outcome.job.job, "block": place[0], "order": place[1]}
        about |= {
            "nodes": outcome.job.nodes,
            "workers_per_node": outcome.job.workers_per_node,
            "variant": outcome.run.variant,
        }
        ended = {"status": outcome.status, "reason": outcome.why, "attempt": outcome.attempt, "seconds": seconds}
        data.append({**about, **ended, "directory": outcome.directory.name if outcome.directory else None})
    caption = f"What became of every planned run of {name}"
    return Section(
        [SectionPart(f"{name}: {run_counts(outcomes)}", table=TextTable(columns, rows, caption))],
        {"schema": RUNS, "campaign": name, "runs": data},
    )


def jobs(inputs: JudgedCampaign) -> Iterator[tuple[str, list[list[RichText]]]]:
    """A heading for each job, and a row per block with a cell per variant, in the plan's order.

    Of a campaign with too many runs, some blocks in which everything went as planned are left out.
    """
    wrong, shown = _workload_reasons(inputs), condense.shown_blocks(inputs)
    variants = [variant.label for variant in inputs.plan.variants]
    for of_job in _grouped(inputs.outcomes, lambda outcome: outcome.job.job):
        job = of_job[0].job
        blocks = _grouped(sorted(of_job, key=lambda outcome: outcome.block.block), lambda outcome: outcome.block.block)
        rows = [
            _row(block, variants, wrong)
            for block in blocks
            if block[0].block.block in shown or not _went_as_planned(block, variants, wrong)
        ]
        yield f"{job.job} · {counted(job.nodes, 'node')} x {counted(job.workers_per_node, 'worker')}", rows


def _grouped(outcomes: Iterable[RunResult], key: Callable[[RunResult], object]) -> list[list[RunResult]]:
    groups: dict[object, list[RunResult]] = {}
    for outcome in outcomes:
        groups.setdefault(key(outcome), []).append(outcome)
    return list(groups.values())


def _went_as_planned(block: Sequence[RunResult], variants: Sequence[str], wrong: Mapping[str, object]) -> bool:
    return len(block) == len(variants) and all(
        outcome.status == "ok"
        and outcome.attempt == 1
        and not outcome.reason
        and outcome.block.replaces is None
        and outcome.run.run not in wrong
        for outcome in block
    )


def _row(block: Sequence[RunResult], variants: Sequence[str], wrong: Mapping[str, Sequence[str]]) -> list[RichText]:
    number, replaces = block[0].block.block, block[0].block.replaces
    by_variant = {outcome.run.variant: outcome for outcome in block}
    first: RichText = [str(number), *([] if replaces is None else [TextSpan(f" for {replaces}", "quiet")])]
    return [first, *(_run_text(by_variant.get(label), wrong) for label in variants)]


def _run_text(outcome: RunResult | None, wrong: Mapping[str, Sequence[str]]) -> RichText:
    """Its place in the block, its status, its files and the reasons; what is wrong with workloads of an ``ok`` run."""
    if outcome is None:
        return TextSpan("not planned", "quiet")
    partly = outcome.run.run in wrong
    path = f"runs/{outcome.directory.name}" if outcome.directory else ""
    record = f"{path}/{RUN_FILE}" if outcome.record else ""
    status = f"{labels.RUN_MARKS[outcome.status]} {outcome.status}{', in part' if partly else ''}"
    parts: list[str | TextSpan] = [
        TextSpan(str(outcome.run.order + 1), "place"),
        " ",
        TextSpan(status, f"status {outcome.status}", record),
    ]
    parts += [TextSpan(f" attempt {outcome.attempt}", "quiet")] if outcome.attempt > 1 else []
    if outcome.record:
        names = {"samples": SAMPLES_FILE} if outcome.record.workloads else {}
        has_logs = outcome.status == "failed" or outcome.in_part
        names |= {"provenance": PROVENANCE_FILE} | ({"logs": LOGS_FILE} if has_logs else {})
        parts += [TextSpan(name, "file", f"{path}/{file}") for name, file in names.items()]
    reasons = [outcome.reason] if outcome.reason else wrong.get(outcome.run.run, [])
    return [*parts, *(TextSpan(reason, "reason") for reason in reasons)]


def _workload_reasons(inputs: JudgedCampaign) -> dict[str, list[str]]:
    """Of runs that are ``ok``: the workloads that aren't, by run."""
    good = {outcome.run.run for outcome in inputs.outcomes if outcome.status == "ok"}
    keys = [workload_key(workload) for workload in inputs.plan.workloads]
    names = {tuple(key.values()): name for key, name in zip(keys, cell_names(keys), strict=True)}
    reasons: dict[str, list[str]] = {}
    for cell in inputs.results.runs:
        if cell.run in good and cell.status != "ok":
            key = dict(cell.key)
            name = names.get((key["workload"], key["backend"], key["params"]), key["workload"])
            reasons.setdefault(cell.run, []).append(f"{name} {cell.status}: {cell.reason}")
    return reasons
