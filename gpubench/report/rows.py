"""Rows of the page's tables. Everything is formatted here; the template only places it."""

from __future__ import annotations

import dataclasses
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.merge.family import Cell
from gpubench.model.plan import Place
from gpubench.report import charts, condense, labels
from gpubench.report.inputs import ReportInputs
from gpubench.report.seconds import seconds, words
from gpubench.spec.records import LOGS_FILE, PROVENANCE_FILE, RUN_FILE, SAMPLES_FILE
from gpubench.stats.verdict import Verdict
from gpubench.store.accounting import RunOutcome


@dataclasses.dataclass(frozen=True)
class RowGroup:
    """One workload at one node count: its chart and its run means, under the same anchor as its verdicts point to."""

    anchor: str
    name: str
    params: str
    chart: dict[str, Any] | None
    histogram: dict[str, Any] | None
    means: list[dict[str, Any]]
    beside: list[str]


def verdict_rows(inputs: ReportInputs, names: Sequence[str]) -> list[dict[str, Any]]:
    """One row per verdict; ``sort_…`` hold what the column is sorted by."""
    several = len(labels.baselines(inputs.verdicts)) > 1
    common = _common_reasons(inputs.verdicts)
    return [
        _verdict_row(one, name, both, several, common)
        for one, name, both in zip(inputs.verdicts, names, seconds(inputs), strict=True)
    ]


def reasons(inputs: ReportInputs, names: Sequence[str]) -> list[tuple[str, str]]:
    """What several rows of the verdict table share, each once: a word of the rows, and what it means."""
    wide = [name for one, name in zip(inputs.verdicts, names, strict=True) if _obstacle(one) == _WIDE]
    notes = []
    if wide:
        margin, family = f"±{inputs.settings.margin.percent}", len(inputs.verdicts)
        after = f" (after Holm’s correction over {family} comparisons)" if family > 1 else ""
        text = f"the blocks show neither a difference{after} nor that it lies within {margin}"
        notes.append((f"inconclusive in {_count(len(wide), 'row')}", text))
    return [*notes, *((word, reason.partition(": ")[2]) for reason, word in _common_reasons(inputs.verdicts).items())]


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


def means_only(inputs: ReportInputs) -> bool:
    """Whether there are too many samples to draw each of them."""
    return sum(len(cell.wall_s) for cell in inputs.cells) > charts.MOST_SAMPLES


def groups(inputs: ReportInputs, names: Sequence[str]) -> list[RowGroup]:
    """Charts and run means in the order of the verdicts."""
    found: dict[str, RowGroup] = {}
    for verdict, name in zip(inputs.verdicts, names, strict=True):
        at = anchor(verdict)
        place = (verdict.key["params_id"], (verdict.key["nodes"], verdict.key["workers_per_node"]))
        group, modes = found.get(at), "multimodal" in verdict.flags
        if group is None or (modes and group.histogram is None):
            cells = [cell for cell in inputs.cells if (cell.workload.params_id, cell.outcome.job.place) == place]
            group = group or _group(at, name, cells, inputs, verdict.baseline)
            if modes:
                group = dataclasses.replace(group, histogram=_histogram(name, cells, inputs))
            found[at] = group
        group.beside.append(_beside(verdict))
    return list(found.values())


_WIDE = "wide"


def _obstacle(one: Verdict) -> str:
    """The word that begins the reason of an inconclusive comparison; ``wide`` where it is nothing but noise."""
    return one.reason.partition(":")[0] if one.verdict == "inconclusive" else ""


def _common_reasons(verdicts: Sequence[Verdict]) -> dict[str, str]:
    """Reasons that several comparisons share word by word, and the word that stands for each."""
    counts = Counter(one.reason for one in verdicts if _obstacle(one) not in ("", _WIDE))
    return {reason: reason.partition(":")[0] for reason, count in counts.items() if count > 1}


def _why(one: Verdict, common: Mapping[str, str]) -> str:
    """What the other columns don't say, and no line for all rows."""
    decided = one.reason.partition("; ")[2] if one.verdict != "inconclusive" else ""
    if one.verdict in ("regression", "improvement"):
        return "; ".join(filter(None, (one.reason.partition(" after Holm")[0], decided)))
    if one.verdict == "equivalent":
        return decided
    return one.leaning if _obstacle(one) == _WIDE else common.get(one.reason, one.reason)


def _verdict_row(
    one: Verdict, name: str, both: tuple[float, float] | None, several_baselines: bool, common: Mapping[str, str]
) -> dict[str, Any]:
    before, after = words(both)
    return {
        "before": before,
        "sort_before": "" if both is None else both[0],
        "after": after,
        "sort_after": "" if both is None else both[1],
        "anchor": anchor(one),
        "name": name,
        "candidate": labels.pair(one) if several_baselines else one.candidate,
        "effect": labels.effect(one),
        "sort_effect": "" if one.effect is None else one.effect,
        "interval": labels.interval(one),
        "sort_interval": "" if one.shown[0] is None else one.shown[0],
        "blocks": one.blocks,
        "verdict": one.verdict,
        "mark": labels.MARKS.get(one.verdict, ""),
        "sort_verdict": charts.VERDICT_WORDS.index(one.verdict),
        "reason": _why(one, common),
        "more": labels.more(one),
        "beyond": one.beyond_margin,
        "flags": list(one.flags),
    }


def _beside(one: Verdict) -> str:
    """The other numbers of a verdict, in a line."""
    said = [f"mean {labels.effect(one)} {labels.interval(one)}".rstrip()]
    said += [f"95 % by itself {labels.between(one.low, one.high)}"] if one.shown != (one.low, one.high) else []
    said += [f"median {labels.percent(one.median_effect)}"] if one.median_effect is not None else []
    said += [f"geometric mean {labels.percent(one.geomean_effect)}"] if one.geomean_effect is not None else []
    said += [f"{name} {p:.2g}" for name, p in _p_values(one) if p is not None]
    said += [one.straggler_note] if one.straggler_note else []
    return f"{labels.pair(one)}: {'; '.join([*said, one.reason])}"


def _p_values(one: Verdict) -> list[tuple[str, float | None]]:
    return [
        ("p", one.p),
        ("p after Holm", one.p_holm),
        ("p by sign flips", one.p_flip),
        ("over the family", one.p_family),
    ]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def anchor(one: Verdict) -> str:
    """Of the samples that a verdict rests on."""
    return f"samples-{one.key['params_id']}-{one.key['nodes']}-{one.key['workers_per_node']}"


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


def _group(anchor: str, name: str, cells: list[Cell], inputs: ReportInputs, baseline: str) -> RowGroup:
    variants = [one.label for one in inputs.plan.variants]
    timed = [cell for cell in cells if cell.wall_s]
    title = f"{name}: samples of every run in order of time"
    few, many = means_only(inputs), condense.needed(inputs)
    chart = charts.samples(timed, variants, title, means_only=few, condensed=many) if timed else None
    params = (
        ", ".join(f"{key} = {value}" for key, value in cells[0].workload.params.items() if value not in ("", []))
        if cells
        else ""
    )
    means = _pooled_means(cells, variants, baseline) if many else _means(cells, variants, baseline)
    return RowGroup(anchor, name, params, chart, None, means, [])


def _histogram(name: str, cells: Sequence[Cell], inputs: ReportInputs) -> dict[str, Any] | None:
    """What a cell with several modes shows beside its runs in order of time."""
    counted = [cell for cell in cells if cell.wall_s and cell.status == "ok"]
    variants = [one.label for one in inputs.plan.variants]
    return charts.histogram(counted, variants, f"{name}: how often each duration came") if counted else None


def _means(cells: Sequence[Cell], variants: Sequence[str], baseline: str) -> list[dict[str, Any]]:
    by_block: dict[int, dict[str, Cell]] = {}
    for cell in cells:
        by_block.setdefault(cell.outcome.block.block, {})[cell.outcome.run.variant] = cell
    return [
        {"block": block, "runs": [_mean(runs.get(label), runs.get(baseline)) for label in variants]}
        for block, runs in sorted(by_block.items())
    ]


def _pooled_means(cells: Sequence[Cell], variants: Sequence[str], baseline: str) -> list[dict[str, Any]]:
    ordered = sorted(cells, key=lambda cell: cell.outcome.block.block)
    return [
        {"block": name, "runs": [_pooled(runs[label], runs[baseline]) for label in variants]}
        for name, runs in condense.stretches(ordered, variants)
    ]


def _pooled(cells: Sequence[Cell], baseline: Sequence[Cell]) -> dict[str, str]:
    mean, other = condense.mean(cells), condense.mean(baseline)
    if mean is None:
        return {"text": "none ok", "ratio": "", "link": ""}
    ratio = labels.percent(mean / other - 1) if other and cells is not baseline else ""
    return {"text": labels.seconds(mean), "ratio": ratio, "link": ""}


def _mean(cell: Cell | None, baseline: Cell | None) -> dict[str, str] | None:
    """A run's number and its ratio to the baseline's of the same block; a run that may not count says what it is."""
    if cell is None:
        return None
    if not cell.wall_s or not cell.outcome.directory:
        return {"text": cell.status, "ratio": "", "link": ""}
    mean = statistics.fmean(cell.wall_s)
    link = f"runs/{cell.outcome.directory.name}/{SAMPLES_FILE}"
    if cell.status != "ok":
        return {"text": f"{labels.seconds(mean)} ({cell.status}, not used)", "ratio": "", "link": link}
    comparable = baseline is not None and baseline is not cell and baseline.status == "ok"
    ratio = labels.percent(mean / statistics.fmean(baseline.wall_s) - 1) if baseline and comparable else ""
    return {"text": labels.seconds(mean), "ratio": ratio, "link": link}
