"""The outcome of every planned run, as a section.

Samples in order of time, and the means of the runs, as a section.
"""

import datetime as dt
import json
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.model.text import counted
from gpubench.report import condense, labels
from gpubench.report.inputs import JudgedCampaign
from gpubench.report.sections import (
    Chart,
    ColumnStyle,
    Heading,
    Medium,
    RichText,
    Section,
    SectionPart,
    Spec,
    TextSpan,
    TextTable,
)
from gpubench.report.verdicts import anchor
from gpubench.spec.records import LOGS_FILE, PROVENANCE_FILE, RUN_FILE, SAMPLES_FILE, RunRecord
from gpubench.stats.data import CellRun
from gpubench.stats.verdict import Verdict
from gpubench.store.accounting import RunResult

RUNS = "gpubench/runs/1"


def runs_section(inputs: JudgedCampaign) -> Section:
    """A table per job, a row per block; Markdown names those that aren't ok."""
    bad = [one for one in inputs.outcomes if one.status != "ok"]
    lines = [f"block {one.block.block}, {one.run.variant}: {one.status}: {one.reason}" for one in bad]
    key: list[str | TextSpan] = []
    for word, mark in labels.RUN_MARKS.items():
        key += [] if word == "pending" else [TextSpan(f"{mark} {word}", f"status {word}"), " "]
    columns = [Heading("block", ColumnStyle.NUMBER), *(Heading(TextSpan(one.label)) for one in inputs.plan.variants)]
    tables = [
        TextTable(columns, [_row_words(row) for row in job["blocks"]], f"Job {job['head']}", "matrix")
        for job in matrix(inputs)
    ]
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
    """A row per planned run, for ``report --only runs``; JSON has its id, job, size and directory too."""
    columns: list[Heading | str] = [Heading(name, ColumnStyle.NUMBER) for name in ("block", "order")]
    columns += ["variant", "status", Heading("seconds", ColumnStyle.NUMBER), "why"]
    rows: list[list[RichText]] = []
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


def run_counts(outcomes: Sequence[RunResult]) -> str:
    """``17 ok, 1 failed``."""
    counts = Counter(one.status for one in outcomes)
    return ", ".join(f"{counts[word]} {word}" for word in labels.RUN_MARKS if word in counts)


def _row_words(row: Mapping[str, Any]) -> list[RichText]:
    replaced = [] if row["replaces"] is None else [TextSpan(f" for {row['replaces']}", "quiet")]
    return [[str(row["block"]), *replaced], *map(_run_words, row["runs"])]


def _run_words(run: Mapping[str, Any] | None) -> RichText:
    if run is None:
        return TextSpan("not planned", "quiet")
    said = f"{run['mark']} {run['status']}{', in part' if run['partly'] else ''}"
    words: list[str | TextSpan] = [
        TextSpan(str(run["place"]), "place"),
        " ",
        TextSpan(said, f"status {run['status']}", run["record"]),
    ]
    words += [TextSpan(f" attempt {run['attempt']}", "quiet")] if run["attempt"] > 1 else []
    words += [TextSpan(name, "file", run[name]) for name in ("samples", "provenance", "logs") if run[name]]
    return words + [TextSpan(reason, "reason") for reason in run["reasons"]]


def matrix(inputs: JudgedCampaign) -> list[dict[str, Any]]:
    """Per job: a row per block with one entry per variant, in the plan's order of variants."""
    wrong = _workload_reasons(inputs)
    jobs: dict[str, dict[int, dict[str, RunResult]]] = {}
    heads: dict[str, str] = {}
    for one in inputs.outcomes:
        jobs.setdefault(one.job.job, {}).setdefault(one.block.block, {})[one.run.variant] = one
        nodes, workers = counted(one.job.nodes, "node"), counted(one.job.workers_per_node, "worker")
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
                        "runs": [_matrix_entry(runs.get(label), wrong) for label in variants],
                    }
                    for block, runs in sorted(blocks.items())
                ]
            ),
        }
        for job, blocks in jobs.items()
    ]


def _workload_reasons(inputs: JudgedCampaign) -> dict[str, list[str]]:
    """Of runs that are ``ok``: the workloads that aren't, by run."""
    good = {outcome.run.run for outcome in inputs.outcomes if outcome.status == "ok"}
    reasons: dict[str, list[str]] = {}
    for cell in inputs.results.runs:
        if cell.run in good and cell.status != "ok":
            reasons.setdefault(cell.run, []).append(f"{dict(cell.key)['workload']} {cell.status}: {cell.reason}")
    return reasons


def _matrix_entry(one: RunResult | None, wrong: dict[str, list[str]]) -> dict[str, Any] | None:
    if one is None:
        return None
    reasons = [one.reason] if one.reason else wrong.get(one.run.run, [])
    path = f"runs/{one.directory.name}" if one.directory else ""
    return {
        "status": one.status,
        "mark": labels.RUN_MARKS[one.status],
        "place": one.run.order + 1,
        "attempt": one.attempt,
        "reasons": reasons,
        "partly": one.status == "ok" and one.run.run in wrong,
        "record": f"{path}/{RUN_FILE}" if one.record else "",
        "samples": f"{path}/{SAMPLES_FILE}" if one.record and one.record.workloads else "",
        "provenance": f"{path}/{PROVENANCE_FILE}" if one.record else "",
        "logs": f"{path}/{LOGS_FILE}" if one.record and one.status == "failed" else "",
    }


MOST_SAMPLES = 120_000
"""Above this many in a campaign the charts show each run's mean only, to keep the page below 3 MB."""
_INTRODUCTION = (
    "Each point is one timed repetition, each bar the mean of its run: the number that enters a verdict. Warm-ups are "
    "left out. A slope across blocks is drift of the machine; runs of one block stand side by side. Pale points and "
    "dashed bars belong to runs that are not used."
)


def samples_section(inputs: JudgedCampaign, names: Sequence[str]) -> Section:
    """A chart and run means of each workload at each size, in the order of the verdicts, which link to them."""
    text: list[RichText] = [TextSpan(_INTRODUCTION, "quiet")]
    if condense.needed(inputs):
        text.append(TextSpan(condense.sentence(inputs), "note"))
    elif means_only(inputs):
        said = "This campaign has too many samples to draw each: the charts show the means of the runs. "
        text.append([TextSpan(said, "note"), "Every sample: ", TextSpan("results.parquet", link="results.parquet")])
    groups: dict[str, list[tuple[Verdict, str]]] = {}
    for one, name in zip(inputs.verdicts, names, strict=True):
        groups.setdefault(anchor(one), []).append((one, name))
    parts = [_part(at, found[0][1], [one for one, _ in found], inputs) for at, found in groups.items()]
    return Section(parts, title="Samples, in order of time", anchor="samples", text=text, medium=Medium.PAGE)


def means_only(inputs: JudgedCampaign) -> bool:
    """Whether there are too many samples to draw each of them."""
    return sum(len(cell.wall_s) for cell in inputs.results.runs) > MOST_SAMPLES


def _part(at: str, name: str, verdicts: Sequence[Verdict], inputs: JudgedCampaign) -> SectionPart:
    first, variants = verdicts[0], [one.label for one in inputs.plan.variants]
    cells = [cell for cell in inputs.results.runs if cell.key == tuple(first.key.items())]
    params = json.loads(str(first.key["params"])).items()
    text: list[RichText] = [
        TextSpan(", ".join(f"{key} = {value}" for key, value in params if value not in ("", [])), "quiet")
    ]
    timed = [cell for cell in cells if cell.wall_s]
    charts = []
    if timed:
        few, many = means_only(inputs), condense.needed(inputs)

        def draw() -> Spec:
            from gpubench.report import charts

            title = f"{name}: samples of every run in order of time"
            return charts.samples(timed, variants, title, means_only=few, condensed=many)

        charts.append(Chart(at, f"samples {name}", draw, late=True))
    else:
        text.append("No sample of this workload was taken.")
    pooled = _pooled_means if condense.needed(inputs) else _means
    table = TextTable(
        [Heading("block", ColumnStyle.NUMBER), *(Heading(TextSpan(label), ColumnStyle.NUMBER) for label in variants)],
        pooled(cells, variants, first.baseline, inputs.directories),
        f"Mean of every run of {name}, and its ratio to the baseline of the same block",
    )
    fold = "Run means per block, other estimates, raw files"
    beside = SectionPart(lines=[*map(_beside, verdicts)], table=table, fold=fold, style="beside")
    return SectionPart(anchor=at, heading=name, text=text, charts=charts, parts=[beside])


def _beside(one: Verdict) -> str:
    """The other estimates of a verdict, in a line."""
    said = [f"mean {labels.effect(one)} {labels.interval(one)}".rstrip()]
    said += [f"95 % by itself {labels.between(one.low, one.high)}"] if one.shown != (one.low, one.high) else []
    said += [f"median {labels.percent(one.median_effect)}"] if one.median_effect is not None else []
    said += [f"geometric mean {labels.percent(one.geomean_effect)}"] if one.geomean_effect is not None else []
    of_p = {"p": one.p, "p after Holm": one.p_holm}
    said += [f"{name} {p:.2g}" for name, p in of_p.items() if p is not None]
    said += [one.straggler_note] if one.straggler_note else []
    return f"{labels.pair(one)}: {'; '.join([*said, one.reason])}"


def _means(
    cells: Sequence[CellRun], variants: Sequence[str], baseline: str, directories: Mapping[str, str]
) -> list[list[RichText]]:
    by_block: dict[int, dict[str, CellRun]] = {}
    for cell in cells:
        by_block.setdefault(cell.block or 0, {})[cell.variant] = cell
    return [
        [str(block), *(_mean(runs.get(label), runs.get(baseline), directories) for label in variants)]
        for block, runs in sorted(by_block.items())
    ]


def _pooled_means(
    cells: Sequence[CellRun], variants: Sequence[str], baseline: str, _directories: Mapping[str, str]
) -> list[list[RichText]]:
    ordered = sorted(cells, key=lambda cell: cell.block or 0)
    return [
        [name, *(_pooled(runs[label], runs[baseline]) for label in variants)]
        for name, runs in condense.stretches(ordered, variants)
    ]


def _pooled(cells: Sequence[CellRun], baseline: Sequence[CellRun]) -> RichText:
    mean, other = condense.mean(cells), condense.mean(baseline)
    if mean is None:
        return "none ok"
    return [labels.seconds(mean), *(_ratio(mean, other) if other and cells is not baseline else ())]


def _mean(cell: CellRun | None, baseline: CellRun | None, directories: Mapping[str, str]) -> RichText:
    """A run's number and its ratio to the baseline's of the same block; a run that is not used shows its status."""
    if cell is None:
        return ""
    if not cell.wall_s or cell.run not in directories:
        return cell.status
    mean = statistics.fmean(cell.wall_s)
    link = f"runs/{directories[cell.run]}/{SAMPLES_FILE}"
    if cell.status != "ok":
        return TextSpan(f"{labels.seconds(mean)} ({cell.status}, not used)", link=link)
    comparable = baseline is not None and baseline is not cell and baseline.status == "ok"
    ratio = _ratio(mean, statistics.fmean(baseline.wall_s)) if baseline and comparable else ()
    return [TextSpan(labels.seconds(mean), link=link), *ratio]


def _ratio(mean: float, baseline: float) -> list[TextSpan]:
    return [TextSpan(f" {labels.percent(mean / baseline - 1)}", "quiet")]
