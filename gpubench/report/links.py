"""Links between workers: classes, outliers, and the matrix of a small cluster."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence

from gpubench.merge.links import LinkTable
from gpubench.report import labels
from gpubench.report.sections import Section, SectionPart, TextTable
from gpubench.spec.plain import canonical
from gpubench.stats.links import MOST_WORKERS, LinkGroup, Outlier, judge_links

SCHEMA = "gpubench/links/1"
LARGEST_MATRIX = 12
"""Workers of which a terminal shows every pair."""


def links_section(campaign: str, tables: Sequence[LinkTable]) -> Section:
    """Classes, outliers and the matrix of a small cluster; numbers are bytes per second, one rate of each run."""
    parts, plain = [], []
    for table, name in zip(tables, labels.cell_names([table_key(table) for table in tables]), strict=True):
        report = judge_links(table.links, table.nodes)
        nodes, workers = table.place
        title = (
            f"{name}, {table.variant}, {nodes} x {workers} workers, {table.runs} run{'' if table.runs == 1 else 's'}"
        )
        words = [*map(group_words, report.groups), *map(outlier_words, report.outliers)]
        parts.append(SectionPart(title, words, _matrix(table) if len(table.nodes) <= LARGEST_MATRIX else None))
        plain.append(
            {
                "workload": table.workload.name,
                "backend": table.workload.backend,
                "params": table.workload.params,
                "variant": table.variant,
                "nodes": nodes,
                "workers_per_node": workers,
                "runs": table.runs,
                "links": [
                    {**dataclasses.asdict(link), "bytes_per_run": table.bytes[link.sender, link.receiver]}
                    for link in table.links
                ],
                "classes": [dataclasses.asdict(group) for group in report.groups],
                "outliers": [dataclasses.asdict(one) for one in report.outliers],
            }
        )
    return Section(parts, {"schema": SCHEMA, "campaign": campaign, "tables": plain})


def table_key(table: LinkTable) -> dict[str, object]:
    """What ``labels.cell_names`` names a table's workload by."""
    workload = table.workload
    return {"workload": workload.name, "backend": workload.backend, "params": canonical(workload.params).decode()}


def _rate(value: float) -> str:
    for unit, factor in (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)):
        if value >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value:.3g} B/s"


def group_words(group: LinkGroup) -> str:
    """``two nodes: 8 links, median 200 MB/s (...)``, and how slow a link would be found."""
    words = f"{group.name}: {group.links} link{'' if group.links == 1 else 's'}, median {_rate(group.median)}"
    words += f" ({_rate(group.slowest)} to {_rate(group.fastest)})"
    if group.workers > MOST_WORKERS:
        return f"{words}; no slow link is looked for among more than {MOST_WORKERS} workers"
    if group.detectable is None:
        return f"{words}; too few links to call one slow"
    return f"{words}; a link that is {100 * (1 - group.detectable):.0f} % slow would be found"


def outlier_words(one: Outlier) -> str:
    """``slow link: n0/0 to n1/0 at 61 % of what ...``."""
    what = " to ".join(one.names)
    others = "its sender and its receiver foretell" if one.what == "link" else "the other nodes do"
    return f"slow {one.what}: {what} at {100 * one.ratio:.0f} % of what {others} ({one.group}, t {one.t:.1f})"


def _matrix(table: LinkTable) -> TextTable | None:
    """Median rates; rows send, columns receive."""
    found = {(link.sender, link.receiver): statistics.median(link.rates) for link in table.links if link.rates}
    if not found:
        return None
    rows = []
    for sender in table.nodes:
        rates = [found.get((sender, receiver)) for receiver in table.nodes]
        rows.append([sender, *("-" if rate is None else _rate(rate) for rate in rates)])
    return TextTable(["from \\ to", *table.nodes], rows, numbers=True)
