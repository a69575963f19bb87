"""Samples in order of time, and the means of the runs, as a section."""

import functools
import json
import statistics
from collections.abc import Mapping, Sequence

from gpubench.node.spec.records import SAMPLES_FILE
from gpubench.report import condense, labels
from gpubench.report.charts.samples import samples
from gpubench.report.sections import (
    Chart,
    ColumnStyle,
    Heading,
    Medium,
    RichText,
    Section,
    SectionPart,
    TextSpan,
    TextTable,
)
from gpubench.report.verdicts import anchor
from gpubench.results.judged_campaign import JudgedCampaign
from gpubench.stats.data import CellRun
from gpubench.stats.verdict import Verdict

_INTRODUCTION = (
    "Each point is one timed repetition, each bar the mean of its run: the number that enters a verdict. Warm-ups are "
    "left out. A slope across blocks is drift of the machine; runs of one block stand side by side. Pale points and "
    "dashed bars belong to runs that are not used."
)


def samples_section(inputs: JudgedCampaign, names: Sequence[str]) -> Section:
    """A chart and run means of each workload at each size, in the order of the verdicts, which link to them."""
    text: list[RichText] = [TextSpan(_INTRODUCTION, "quiet")]
    if note := condense.note(inputs):
        text.append([TextSpan(f"{note} Every sample: ", "note"), TextSpan("results.parquet", link="results.parquet")])
    groups: dict[str, list[tuple[Verdict, str]]] = {}
    for verdict, name in zip(inputs.verdicts, names, strict=True):
        groups.setdefault(anchor(verdict), []).append((verdict, name))
    parts = [_part(at, group[0][1], [verdict for verdict, _ in group], inputs) for at, group in groups.items()]
    return Section(parts, title="Samples, in order of time", anchor="samples", text=text, medium=Medium.PAGE)


def _part(at: str, name: str, verdicts: Sequence[Verdict], inputs: JudgedCampaign) -> SectionPart:
    first, variants = verdicts[0], [variant.label for variant in inputs.plan.variants]
    blocks, key = condense.shown_blocks(inputs), tuple(first.key.items())
    cells = [cell for cell in inputs.results.runs if cell.key == key and (cell.block or 0) in blocks]
    params = json.loads(str(first.key["params"])).items()
    text: list[RichText] = [
        TextSpan(", ".join(f"{key} = {value}" for key, value in params if value not in ("", [])), "quiet")
    ]
    timed = [cell for cell in cells if cell.wall_s]
    charts = []
    if timed:
        title = f"{name}: samples of every run in order of time"
        draw = functools.partial(samples, timed, variants, title)
        charts.append(Chart(at, f"samples {name}", draw))
    else:
        text.append("No sample of this workload was taken.")
    rows = _means(cells, variants, first.baseline, inputs.directories)
    table = TextTable(
        [Heading("block", ColumnStyle.NUMBER), *(Heading(TextSpan(label), ColumnStyle.NUMBER) for label in variants)],
        rows,
        f"Mean of every run of {name}, and its ratio to the baseline of the same block",
    )
    fold = "Run means per block, other estimates, raw files"
    beside = SectionPart(lines=[*map(_beside, verdicts)], table=table, fold=fold, style="beside")
    return SectionPart(anchor=at, heading=name, text=text, charts=charts, parts=[beside])


def _beside(verdict: Verdict) -> str:
    """The other estimates of a verdict, in a line."""
    parts = [f"mean {labels.effect(verdict)} {labels.interval(verdict)}".rstrip()]
    parts += (
        [f"95 % by itself {labels.between(verdict.low, verdict.high)}"]
        if verdict.shown != (verdict.low, verdict.high)
        else []
    )
    parts += [f"median {labels.percent(verdict.median_effect)}"] if verdict.median_effect is not None else []
    of_p = {"p": verdict.p, "p after Holm": verdict.p_holm}
    parts += [f"{name} {p:.2g}" for name, p in of_p.items() if p is not None]
    parts += [verdict.straggler_note] if verdict.straggler_note else []
    return f"{labels.pair(verdict)}: {'; '.join([*parts, verdict.reason])}"


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
    text = [TextSpan(labels.seconds(mean), link=link)]
    if baseline and comparable:
        text.append(TextSpan(f" {labels.percent(mean / statistics.fmean(baseline.wall_s) - 1)}", "quiet"))
    return text
