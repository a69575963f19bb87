"""Links in words and as JSON: classes, outliers, and the matrix of a small cluster."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from gpubench.merge.links import LinkTable
from gpubench.report import labels
from gpubench.spec.plain import canonical
from gpubench.stats.links import MOST_WORKERS, LinkGroup, Outlier, judge_links

SCHEMA = "gpubench/links/1"
LARGEST_MATRIX = 12
"""Workers of which a terminal shows every pair."""


def link_lines(tables: Sequence[LinkTable]) -> Iterator[str]:
    """For people."""
    names = labels.cell_names([table_key(table) for table in tables])
    for table, name in zip(tables, names, strict=True):
        report = judge_links(table.links, table.nodes)
        nodes, workers = table.place
        yield f"{name}, {table.variant}, {nodes} x {workers} workers, {table.runs} run{'' if table.runs == 1 else 's'}"
        for group in report.groups:
            yield f"  {group_words(group)}"
        for one in report.outliers:
            yield f"  {outlier_words(one)}"
        if len(table.nodes) <= LARGEST_MATRIX:
            yield from _matrix(table)


def links_json(campaign: str, tables: Sequence[LinkTable]) -> dict[str, Any]:
    """The same, complete: rates in bytes per second, one of each run."""
    return {"schema": SCHEMA, "campaign": campaign, "tables": [_plain(table) for table in tables]}


def _plain(table: LinkTable) -> dict[str, Any]:
    report = judge_links(table.links, table.nodes)
    return {
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
        "outliers": [dataclasses.asdict(one) for one in report.outliers],
    }


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


def _matrix(table: LinkTable) -> Iterator[str]:
    """Median rates; rows send, columns receive."""
    found = {(link.sender, link.receiver): statistics.median(link.rates) for link in table.links if link.rates}
    if not found:
        return
    names = list(table.nodes)
    width = max(9, *map(len, names))
    yield "  " + "from \\ to".ljust(width) + "".join(f"  {name:>{width}}" for name in names)
    for sender in names:
        rates = [found.get((sender, receiver)) for receiver in names]
        words = ["-" if rate is None else _rate(rate) for rate in rates]
        yield f"  {sender:<{width}}" + "".join(f"  {word:>{width}}" for word in words)
