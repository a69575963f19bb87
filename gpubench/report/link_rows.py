"""Rows of the page's section on links: what was found in every table, and the first tables in full."""

from __future__ import annotations

import dataclasses
import statistics
from typing import Any

from gpubench.merge.links import LinkTable
from gpubench.report import labels
from gpubench.report.inputs import ReportInputs
from gpubench.report.link_charts import heat_map, median_rates
from gpubench.report.links import group_words, outlier_words, table_key
from gpubench.report.tables import NUMBER, PageTable
from gpubench.spec.records import LINKS_FILE
from gpubench.stats.links import LinkReport, judge_links

MOST_LINKS = 16_500
"""Of all tables that are shown in full, four of 64 x 64 workers: about half a megabyte of page."""
_LEAST_LINKS = 250
"""A chart weighs as much as so many links before its first one."""
MOST_OUTLIERS = 12
"""In words, per table; the slowest first."""
_FEWEST = 3
LARGE = 12
"""Workers above which the numbers are left out on paper."""


@dataclasses.dataclass(frozen=True)
class Links:
    """One workload under one variant at one place; ``numbers`` are rates in ``unit``, or no rows."""

    anchor: str
    name: str
    found: list[str]
    slow: int
    chart: dict[str, Any] | None
    unit: str
    numbers: PageTable
    large: bool
    files: list[str]


def links(inputs: ReportInputs) -> list[Links]:
    """All tables. Those with outliers come first, then those that moved most: the others may not be shown in full.

    None where every table is of two workers on one host: a single link has nothing to be compared with.
    """
    if all(len(table.nodes) < _FEWEST and len(set(table.nodes.values())) == 1 for table in inputs.links):
        return []
    names = labels.cell_names([table_key(table) for table in inputs.links])
    judged = [
        (table, f"{name}, {table.variant}, {table.place[0]} x {table.place[1]} workers", _judge(table))
        for table, name in zip(inputs.links, names, strict=True)
    ]
    judged.sort(key=lambda one: (not one[2].outliers, -sum(one[0].bytes.values())))
    found, left = [], MOST_LINKS
    for number, (table, name, report) in enumerate(judged):
        left -= max(len(table.nodes) ** 2, _LEAST_LINKS)
        found.append(_links(f"links-{number}", name, table, report, in_full=left >= 0))
    return found


def _judge(table: LinkTable) -> LinkReport:
    return judge_links(table.links, table.nodes)


def _links(anchor: str, name: str, table: LinkTable, report: LinkReport, *, in_full: bool) -> Links:
    workers = list(table.nodes)
    rates = median_rates(table)
    unit, factor = _unit(statistics.median(rates.values()) if rates else 0.0)
    slow = {one.names for one in report.outliers if one.what == "link"}
    words = {pair: f"{rate / factor:.3g}{' ✕' if pair in slow else ''}" for pair, rate in rates.items()}
    title = f"{name}: median rate of every pair of workers"
    runs = f"{table.runs} run{'' if table.runs == 1 else 's'}"
    return Links(
        anchor=anchor,
        name=f"{name}, {runs}",
        found=[*map(group_words, report.groups), *_outliers(report)],
        slow=len(report.outliers),
        chart=heat_map(table, report.outliers, title) if in_full else None,
        unit=unit,
        numbers=PageTable(
            f"{name}: median rates in {unit}; rows send, columns receive",
            [("from, to", ""), *((to, NUMBER) for to in workers)],
            [[sender, *(words.get((sender, to), "") for to in workers)] for sender in workers] if in_full else [],
            "rates",
        ),
        large=len(workers) > LARGE,
        files=[f"runs/{directory}/{LINKS_FILE}" for directory in table.directories],
    )


def _outliers(report: LinkReport) -> list[str]:
    shown = [outlier_words(one) for one in report.outliers[:MOST_OUTLIERS]]
    more = len(report.outliers) - len(shown)
    return [*shown, f"and {more} more, less slow: gpubench report --only links names them all"] if more else shown


def _unit(middle: float) -> tuple[str, float]:
    return next((pair for pair in (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)) if middle >= pair[1]), ("B/s", 1.0))
