"""Links between workers: classes, outliers, and every pair's rate."""

import dataclasses
import functools
import statistics
from collections.abc import Sequence

from gpubench.model.cell_names import cell_names, workload_key
from gpubench.model.text import counted
from gpubench.node.spec.records import LINKS_FILE
from gpubench.report.charts.heat_map import heat_map
from gpubench.report.sections import (
    Chart,
    ColumnStyle,
    Heading,
    Medium,
    Section,
    SectionPart,
    TextSpan,
    TextTable,
)
from gpubench.results.merge.links import LinkTable
from gpubench.stats.links import MOST_WORKERS, LinkGroup, LinkReport, Outlier, judge_links

SCHEMA = "gpubench/links/1"
LARGEST_MATRIX = 12
"""Most workers for which a terminal shows every pair, and a printed page the numbers."""
MOST_LINKS = 16_500
"""Of all tables that the page shows in full, four of 64 x 64 workers: about two megabytes."""
_LEAST_LINKS = 250
"""What a table of two workers takes, in links."""
MOST_OUTLIERS = 12
"""Slow links that the page names per table; the slowest first."""
_INTRODUCTION = (
    "Median rate from each sender (row) to each receiver (column), over the runs; a cross marks a link that is slower "
    "than its class, its sender and its receiver predict. Tables with slow links come first, then those whose links "
    "moved most."
)
_LEFT_OUT = "To keep this page small, its rates are in the raw files only, and in gpubench report --only links --json."
_Rates = dict[tuple[str, str], float]


def links_section(campaign: str, tables: Sequence[LinkTable]) -> Section:
    """Classes, outliers and rates; numbers are bytes per second, one rate of each run.

    Tables with outliers come first, then those that moved most: the page may not show the others in full.
    """
    names = cell_names([workload_key(table.workload) for table in tables])
    judged = [(table, name, judge_links(table.links, table.nodes)) for table, name in zip(tables, names, strict=True)]
    plain = [
        {
            "workload": table.workload.name,
            "backend": table.workload.backend,
            "params": table.workload.params,
            "variant": table.variant,
            "nodes": table.place[0],
            "workers_per_node": table.place[1],
            "runs": table.runs,
            "links": [
                {**dataclasses.asdict(link), "bytes_per_run": table.bytes[link.sender, link.receiver]}
                for link in table.links
            ],
            "classes": [dataclasses.asdict(group) for group in report.groups],
            "outliers": [dataclasses.asdict(outlier) for outlier in report.outliers],
        }
        for table, _, report in judged
    ]
    judged.sort(key=lambda row: (not row[2].outliers, -sum(row[0].bytes.values())))
    parts, left = [], MOST_LINKS
    for number, (table, name, report) in enumerate(judged):
        left -= max(len(table.nodes) ** 2, _LEAST_LINKS)
        parts.append(_part(f"links-{number}", name, table, report, in_full=left >= 0))
    slow = sum(len(report.outliers) for _, _, report in judged)
    return Section(
        parts,
        {"schema": SCHEMA, "campaign": campaign, "tables": plain},
        title="Links between workers",
        anchor="links",
        text=[TextSpan(_INTRODUCTION, "quiet")],
        brief=f"{slow} slow" if slow else "no slow link found",
        open=bool(slow),
    )


def say_nothing(tables: Sequence[LinkTable]) -> bool:
    """Whether all are of two workers on one host: a single link has nothing to be compared with."""
    return all(len(table.nodes) <= 2 and len(set(table.nodes.values())) == 1 for table in tables)


def _part(anchor: str, name: str, table: LinkTable, report: LinkReport, *, in_full: bool) -> SectionPart:
    place = f"{table.variant}, {table.place[0]} x {table.place[1]} workers"
    title = f"{name}, {place}, {counted(table.runs, 'run')}"
    slow = len(report.outliers)
    rates = {(link.sender, link.receiver): statistics.median(link.rates) for link in table.links if link.rates}
    texts = [outlier_text(outlier) for outlier in report.outliers]
    more = texts[MOST_OUTLIERS:]
    crossed = [outlier.names for outlier in report.outliers if outlier.what == "link"]
    shown = f"{name}, {place}: median rate of every pair of workers"
    draw = functools.partial(heat_map, list(table.nodes), rates, crossed, shown)
    parts = [SectionPart(lines=more, depth=1, medium=Medium.PRINTED)] if more else []
    if rates:
        parts.append(_rates_part(f"{name}, {place}", table, rates, report.outliers, in_full=in_full))
    else:
        parts.append(SectionPart(text=["None of its links has a rate."], medium=Medium.PAGE))
    files: list[str | TextSpan] = [TextSpan("Raw files, one a run:", "quiet")]
    for number, directory in enumerate(table.directories, 1):
        files += [" ", TextSpan(str(number), link=f"runs/{directory}/{LINKS_FILE}", spoken=f"links of run {number}")]
    others = [f"and {len(more)} more, less slow: gpubench report --only links names them all"] if more else []
    return SectionPart(
        title,
        [*map(group_text, report.groups), *texts[:MOST_OUTLIERS]],
        anchor=anchor,
        fold=[title, ": ", TextSpan(f"{slow} slow", "strong")] if slow else title,
        open=anchor == "links-0",
        style="beside",
        charts=[Chart(anchor, f"links {title}", draw)] if in_full and rates else [],
        parts=[*parts, SectionPart(text=[*others, files], medium=Medium.PAGE)],
    )


def _rates_part(
    name: str, table: LinkTable, rates: _Rates, outliers: Sequence[Outlier], *, in_full: bool
) -> SectionPart:
    """Median rates; rows send, columns receive."""
    slow = {outlier.names for outlier in outliers if outlier.what == "link"}
    workers = list(table.nodes)
    rate_texts = {pair: f"{_rate(rate)}{' ✕' if pair in slow else ''}" for pair, rate in rates.items()}
    medium = (Medium.PRINTED if len(workers) <= LARGEST_MATRIX else "") + (Medium.PAGE if in_full else "")
    matrix = TextTable(
        ["from \\ to", *(Heading(TextSpan(to), ColumnStyle.NUMBER) for to in workers)],
        [[sender, *(rate_texts.get((sender, to), "-") for to in workers)] for sender in workers],
        f"{name}: median rates; rows send, columns receive",
        "rates",
        numbers=True,
        medium=medium,
    )
    if not in_full:
        return SectionPart(table=matrix, text=[_LEFT_OUT], depth=1)
    style = "screen" if len(workers) > LARGEST_MATRIX else ""
    return SectionPart(table=matrix, fold="Rates as numbers", style=style, depth=1)


def _rate(value: float) -> str:
    for unit, factor in (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)):
        if value >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value:.3g} B/s"


def group_text(group: LinkGroup) -> str:
    """``two nodes: 8 links, median 200 MB/s (...)``, and how slow a link would be found."""
    text = f"{group.name}: {counted(group.links, 'link')}, median {_rate(group.median)}"
    text += f" ({_rate(group.slowest)} to {_rate(group.fastest)})"
    if group.workers > MOST_WORKERS:
        return f"{text}; slow links are not searched for among more than {MOST_WORKERS} workers"
    if group.detectable is None:
        return f"{text}; too few links to call one slow"
    return f"{text}; a link that is {100 * (1 - group.detectable):.0f} % slow would be found"


def outlier_text(outlier: Outlier) -> str:
    """``slow link: n0/0 to n1/0 at 61 % of what ...``."""
    what = " to ".join(outlier.names)
    others = "its sender and its receiver predict" if outlier.what == "link" else "the other nodes do"
    rate = f"{100 * outlier.ratio:.0f} % of what {others}"
    return f"slow {outlier.what}: {what} at {rate} ({outlier.group}, t {outlier.t:.1f})"
