"""What became of every planned run, as a section."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.merge.family import Cell
from gpubench.model.plan import Place
from gpubench.report import condense, labels
from gpubench.report.inputs import ReportInputs
from gpubench.report.sections import MARKDOWN, NUMBER, PAGE, Column, Section, SectionPart, Styled, TextTable, Words
from gpubench.spec.records import LOGS_FILE, PROVENANCE_FILE, RUN_FILE, SAMPLES_FILE, RunRecord
from gpubench.store.accounting import RunOutcome

RUNS = "gpubench/runs/1"


def runs_section(inputs: ReportInputs) -> Section:
    """A table per job, a row per block; Markdown names those that aren't ok."""
    bad = [one for one in inputs.outcomes if one.status != "ok"]
    lines = [f"block {one.block.block}, {one.run.variant}: {one.status}: {one.reason}" for one in bad]
    key: list[str | Styled] = []
    for word, mark in labels.RUN_MARKS.items():
        key += [] if word == "pending" else [Styled(f"{mark} {word}", f"status {word}"), " "]
    columns = [Column("block", NUMBER), *(Column(Styled(one.label)) for one in inputs.plan.variants)]
    tables = [
        TextTable(columns, [_row_words(row) for row in job["blocks"]], f"Job {job['head']}", "matrix")
        for job in matrix(inputs)
    ]
    return Section(
        [
            *([SectionPart("Runs that did not end ok:", lines, on=MARKDOWN)] if bad else []),
            *(SectionPart(table=table, on=PAGE) for table in tables),
        ],
        title="Runs",
        anchor="runs",
        text=[[*key, Styled("· every planned run is one of these. The number is its place in its block.", "quiet")]],
        brief=run_counts(inputs.outcomes),
        open=bool(bad),
    )


def run_list_section(name: str, outcomes: Sequence[RunOutcome]) -> Section:
    """A row per planned run, for ``report --only runs``; JSON has its id, job, size and directory too."""
    columns: list[Column | str] = [Column("block", NUMBER), Column("order", NUMBER), "variant", "status"]
    columns += [Column("seconds", NUMBER), "why"]
    rows: list[list[Words]] = []
    data: list[dict[str, Any]] = []
    for one in outcomes:
        seconds, place = _seconds(one.record), (one.block.block, one.run.order + 1)
        status = f"{labels.RUN_MARKS[one.status]} {one.status}"
        said = "" if seconds is None else f"{seconds:.1f}"
        rows.append([*map(str, place), one.run.variant, status, said, one.reason])
        about = {"run": one.run.run, "job": one.job.job, "block": place[0], "order": place[1]}
        about |= {"nodes": one.job.nodes, "workers_per_node": one.job.workers_per_node, "variant": one.run.variant}
        ended = {"status": one.status, "reason": one.reason, "attempt": one.attempt, "seconds": seconds}
        data.append({**about, **ended, "directory": one.directory.name if one.directory else None})
    caption = f"What became of every planned run of {name}"
    return Section(
        [SectionPart(f"{name}: {run_counts(outcomes)}", table=TextTable(columns, rows, caption))],
        {"schema": RUNS, "campaign": name, "runs": data},
    )


def _seconds(record: RunRecord | None) -> float | None:
    """From its start to its end; of an interleaved block, turns of others are among them."""
    if record is None:
        return None
    began, ended = (dt.datetime.fromisoformat(at) for at in (record.started_at, record.ended_at))
    return round((ended - began).total_seconds(), 3)


def run_counts(outcomes: Sequence[RunOutcome]) -> str:
    """``17 ok, 1 failed``."""
    counts = Counter(one.status for one in outcomes)
    return ", ".join(f"{counts[word]} {word}" for word in labels.RUN_MARKS if word in counts)


def _row_words(row: Mapping[str, Any]) -> list[Words]:
    replaced = [] if row["replaces"] is None else [Styled(f" for {row['replaces']}", "quiet")]
    return [[str(row["block"]), *replaced], *map(_run_words, row["runs"])]


def _run_words(run: Mapping[str, Any] | None) -> Words:
    if run is None:
        return Styled("not planned", "quiet")
    said = f"{run['mark']} {run['status']}{', in part' if run['partly'] else ''}"
    words: list[str | Styled] = [
        Styled(str(run["place"]), "place"),
        " ",
        Styled(said, f"status {run['status']}", run["record"]),
    ]
    words += [Styled(f" attempt {run['attempt']}", "quiet")] if run["attempt"] > 1 else []
    words += [Styled(name, "file", run[name]) for name in ("samples", "provenance", "logs") if run[name]]
    return words + [Styled(reason, "reason") for reason in run["reasons"]]


def matrix(inputs: ReportInputs) -> list[dict[str, Any]]:
    """Per job: a row per block with one entry per variant, in the plan's order of variants."""
    wrong, left_out = _workload_reasons(inputs.cells), _decided_earlier(inputs)
    jobs: dict[str, dict[int, dict[str, RunOutcome]]] = {}
    heads: dict[str, str] = {}
    for one in inputs.outcomes:
        jobs.setdefault(one.job.job, {}).setdefault(one.block.block, {})[one.run.variant] = one
        nodes, workers = _count(one.job.nodes, "node"), _count(one.job.workers_per_node, "worker")
        heads[one.job.job] = f"{one.job.job} · {nodes} x {workers}"
    variants = [one.label for one in inputs.plan.variants]
    shown = condense.collapsed if condense.needed(inputs) else list
    return [
        {
            "head": heads[job],
            "blocks": shown(
                [
                    {
                        "block": block,
                        "replaces": next(iter(runs.values())).block.replaces,
                        "runs": [_matrix_entry(runs.get(label), wrong, left_out) for label in variants],
                    }
                    for block, runs in sorted(blocks.items())
                ]
            ),
        }
        for job, blocks in jobs.items()
    ]


def _workload_reasons(cells: Sequence[Cell]) -> dict[str, list[str]]:
    """Of runs that are ``ok``: the workloads that aren't, by run."""
    reasons: dict[str, list[str]] = {}
    for cell in cells:
        if cell.outcome.status == "ok" != cell.status:
            reasons.setdefault(cell.outcome.run.run, []).append(f"{cell.workload.name} {cell.status}: {cell.reason}")
    return reasons


def _decided_earlier(inputs: ReportInputs) -> dict[str, list[str]]:
    """Of runs of an adaptive campaign: the workloads that they leave out, as a look before has decided them."""
    names = {one.params_id: one.name for one in inputs.plan.workloads}
    last: dict[tuple[Place, str], int] = {}
    for cell in inputs.cells:
        place = (cell.outcome.job.place, cell.workload.params_id)
        last[place] = max(last.get(place, 0), cell.outcome.block.block)
    return {
        one.run.run: [
            f"{names[params_id]} skipped: decided at block {block}"
            for (place, params_id), block in last.items()
            if place == one.job.place and block < one.block.block and params_id not in one.run.workloads
        ]
        for one in inputs.outcomes
        if inputs.plan.max_blocks is not None
    }


def _matrix_entry(
    one: RunOutcome | None, wrong: dict[str, list[str]], left_out: dict[str, list[str]]
) -> dict[str, Any] | None:
    if one is None:
        return None
    reasons = [one.reason] if one.reason else wrong.get(one.run.run, [])
    path = f"runs/{one.directory.name}" if one.directory else ""
    return {
        "status": one.status,
        "mark": labels.RUN_MARKS[one.status],
        "place": one.run.order + 1,
        "attempt": one.attempt,
        "reasons": [*reasons, *left_out.get(one.run.run, [])],
        "partly": one.status == "ok" and one.run.run in wrong,
        "record": f"{path}/{RUN_FILE}" if one.record else "",
        "samples": f"{path}/{SAMPLES_FILE}" if one.record and one.record.workloads else "",
        "provenance": f"{path}/{PROVENANCE_FILE}" if one.record else "",
        "logs": f"{path}/{LOGS_FILE}" if one.record and one.status == "failed" else "",
    }


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
