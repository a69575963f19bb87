"""Samples in order of time, and the means of the runs, as a section."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from gpubench.merge.family import Cell
from gpubench.report import condense, labels
from gpubench.report.inputs import ReportInputs
from gpubench.report.sections import NUMBER, PAGE, Chart, Column, Section, SectionPart, Spec, Styled, TextTable, Words
from gpubench.report.verdicts import anchor
from gpubench.spec.records import SAMPLES_FILE
from gpubench.stats.verdict import Verdict

MOST_SAMPLES = 120_000
"""Above this many in a campaign the charts show each run's mean only, to keep the page below 3 MB."""
_INTRODUCTION = (
    "Each point is one timed repetition, each bar the mean of its run: the number that enters a verdict. Warm-ups are "
    "left out. A slope across blocks is drift of the machine; runs of one block stand side by side. Pale points and "
    "dashed bars belong to runs that are not used."
)
_MODES = "More than one mode: how often each duration came, as a ratio to the second fastest of its run"


def samples_section(inputs: ReportInputs, names: Sequence[str]) -> Section:
    """A chart and run means of each workload at each size, in the order of the verdicts, which link to them."""
    text: list[Words] = [Styled(_INTRODUCTION, "quiet")]
    if condense.needed(inputs):
        text.append(Styled(condense.sentence(inputs), "note"))
    elif means_only(inputs):
        said = "This campaign has too many samples to draw each: the charts show the means of the runs. "
        text.append([Styled(said, "note"), "Every sample: ", Styled("results.parquet", link="results.parquet")])
    groups: dict[str, list[tuple[Verdict, str]]] = {}
    for one, name in zip(inputs.verdicts, names, strict=True):
        groups.setdefault(anchor(one), []).append((one, name))
    parts = [_part(at, found[0][1], [one for one, _ in found], inputs) for at, found in groups.items()]
    return Section(parts, title="Samples, in order of time", anchor="samples", text=text, on=PAGE)


def means_only(inputs: ReportInputs) -> bool:
    """Whether there are too many samples to draw each of them."""
    return sum(len(cell.wall_s) for cell in inputs.cells) > MOST_SAMPLES


def _part(at: str, name: str, verdicts: Sequence[Verdict], inputs: ReportInputs) -> SectionPart:
    first, variants = verdicts[0], [one.label for one in inputs.plan.variants]
    place = (first.key["params_id"], (first.key["nodes"], first.key["workers_per_node"]))
    cells = [cell for cell in inputs.cells if (cell.workload.params_id, cell.outcome.job.place) == place]
    params = cells[0].workload.params.items() if cells else []
    text: list[Words] = [
        Styled(", ".join(f"{key} = {value}" for key, value in params if value not in ("", [])), "quiet")
    ]
    timed = [cell for cell in cells if cell.wall_s]
    counted = [cell for cell in timed if cell.status == "ok"]
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
    if counted and any("multimodal" in one.flags for one in verdicts):

        def draw_modes() -> Spec:
            from gpubench.report import charts

            return charts.histogram(counted, variants, f"{name}: how often each duration came")

        charts.append(Chart(f"{at}-modes", f"histogram {name}", draw_modes, _MODES, late=True))
    pooled = _pooled_means if condense.needed(inputs) else _means
    table = TextTable(
        [Column("block", NUMBER), *(Column(Styled(label), NUMBER) for label in variants)],
        pooled(cells, variants, first.baseline),
        f"Mean of every run of {name}, and its ratio to the baseline of the same block",
    )
    fold = "Run means per block, other estimates, raw files"
    beside = SectionPart(lines=[*map(_beside, verdicts)], table=table, fold=fold, look="beside")
    return SectionPart(anchor=at, heading=name, text=text, charts=charts, parts=[beside])


def _beside(one: Verdict) -> str:
    """The other estimates of a verdict, in a line."""
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


def _means(cells: Sequence[Cell], variants: Sequence[str], baseline: str) -> list[list[Words]]:
    by_block: dict[int, dict[str, Cell]] = {}
    for cell in cells:
        by_block.setdefault(cell.outcome.block.block, {})[cell.outcome.run.variant] = cell
    return [
        [str(block), *(_mean(runs.get(label), runs.get(baseline)) for label in variants)]
        for block, runs in sorted(by_block.items())
    ]


def _pooled_means(cells: Sequence[Cell], variants: Sequence[str], baseline: str) -> list[list[Words]]:
    ordered = sorted(cells, key=lambda cell: cell.outcome.block.block)
    return [
        [name, *(_pooled(runs[label], runs[baseline]) for label in variants)]
        for name, runs in condense.stretches(ordered, variants)
    ]


def _pooled(cells: Sequence[Cell], baseline: Sequence[Cell]) -> Words:
    mean, other = condense.mean(cells), condense.mean(baseline)
    if mean is None:
        return "none ok"
    return [labels.seconds(mean), *(_ratio(mean, other) if other and cells is not baseline else ())]


def _mean(cell: Cell | None, baseline: Cell | None) -> Words:
    """A run's number and its ratio to the baseline's of the same block; a run that is not used shows its status."""
    if cell is None:
        return ""
    if not cell.wall_s or not cell.outcome.directory:
        return cell.status
    mean = statistics.fmean(cell.wall_s)
    link = f"runs/{cell.outcome.directory.name}/{SAMPLES_FILE}"
    if cell.status != "ok":
        return Styled(f"{labels.seconds(mean)} ({cell.status}, not used)", link=link)
    comparable = baseline is not None and baseline is not cell and baseline.status == "ok"
    ratio = _ratio(mean, statistics.fmean(baseline.wall_s)) if baseline and comparable else ()
    return [Styled(labels.seconds(mean), link=link), *ratio]


def _ratio(mean: float, baseline: float) -> list[Styled]:
    return [Styled(f" {labels.percent(mean / baseline - 1)}", "quiet")]
