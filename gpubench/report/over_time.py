"""Figures over dates as pages show them: a chart per workload."""

import datetime as dt
import functools
import math
from collections.abc import Sequence
from typing import Any

from gpubench.model.cell_names import cell_names
from gpubench.model.text import counted, natural_key
from gpubench.report import labels
from gpubench.report.charts.over_time import over_dates
from gpubench.report.sections import Chart, Medium, Section, SectionPart, TextSpan
from gpubench.results.changes import Series
from gpubench.results.figures import Figure
from gpubench.stats import special
from gpubench.stats.data import Key

_SIZES = ("nodes", "workers", "workers_per_node")


def over_time_section(observed: Sequence[Figure], series: Sequence[Series]) -> Section:
    return Section(
        over_time(observed, series) or [SectionPart(text=["No figure has a date and a version."])],
        title="Over time",
        anchor="over-time",
        text=[TextSpan(_INTRODUCTION, "quiet")],
        medium=Medium.PAGE,
    )


_INTRODUCTION = (
    "Higher is faster. Thin bars are 95 % intervals of each date’s figure; one that reaches the edge goes on there. "
    "A triangle is a change point, the first date of a new level: it points up if the speed rose, and down if it fell. "
    "A ring marks an unusual day."
)


def over_time(observed: Sequence[Figure], series: Sequence[Series]) -> list[SectionPart]:
    """Every workload and its parameters, in the order in which they come; sizes of the cluster are facets of it."""
    groups: dict[Key, tuple[list[Figure], list[Series]]] = {}
    for figure in observed:
        groups.setdefault(_without_size(figure.key), ([], []))[0].append(figure)
    for run in series:
        groups[_without_size(run.key)][1].append(run)
    names = cell_names([dict(key) for key in groups])
    variants = sorted({figure.variant for figure in observed}, key=natural_key)
    return [
        _shown(f"over-time-{number}", name, *group, variants)
        for number, (name, group) in enumerate(zip(names, groups.values(), strict=True))
    ]


def _shown(
    anchor: str, name: str, observed: Sequence[Figure], series: Sequence[Series], variants: Sequence[str]
) -> SectionPart:
    # Throughput only where it is one for all: two kinds of numbers in a picture would be compared.
    rated = bool(observed) and all(figure.bytes and figure.workers for figure in observed)
    unit = "GB/s per worker" if rated else "seconds, axis reversed"
    figures = _figures(observed, series, rated=rated)
    draw = functools.partial(over_dates, figures, variants, f"{name}: {unit} over dates", reverse=not rated)
    return SectionPart(
        anchor=anchor,
        heading=f"{name}, {unit}",
        charts=[Chart(anchor, f"over time {name}", draw)],
    )


def _figures(observed: Sequence[Figure], series: Sequence[Series], *, rated: bool) -> list[dict[str, Any]]:
    """Rows of the chart by size, the smallest first; change points and unusual days are marked."""
    order = sorted(observed, key=lambda figure: (_size(figure.key, figure.workers), figure.variant, figure.date))
    rows = [_figure(figure, rated=rated) for figure in order]
    # A day may have several figures, of several sources: the last has the marks.
    by_place = {
        _place(figure.key, figure.workers, figure.variant, figure.date): row
        for figure, row in zip(order, rows, strict=True)
    }
    for cell_series in series:
        workers = cell_series.figures[0].workers
        for change in cell_series.changes:
            word = "slower" if change.effect > 0 else "faster"
            by_place[_place(cell_series.key, workers, cell_series.variant, change.at)]["change"] = word
        for day, _ in cell_series.unusual:
            if row := by_place.get(_place(cell_series.key, workers, cell_series.variant, day)):
                row["unusual"] = True
    return rows


def _place(key: Key, workers: int | None, variant: str, date: dt.date) -> tuple[object, ...]:
    return _size(key, workers), variant, date


def _figure(figure: Figure, *, rated: bool) -> dict[str, Any]:
    value = math.exp(figure.log_s)
    if rated and figure.bytes and figure.workers:
        value = figure.bytes / value / figure.workers / 1e9
    # A source's own standard error is of some thirty repetitions: the normal's quantile is near enough.
    wide = float(-special.stdtrit(figure.count - 1, 0.025)) if figure.count > 1 else 1.96
    half = None if figure.se is None else wide * figure.se
    workers, nodes = _size(figure.key, figure.workers)
    where = f" on {counted(nodes, 'node')}" if nodes else ""
    return {
        "size": f"{workers} workers{where}" if workers else "workers not recorded",
        "date": str(figure.date),
        "variant": figure.variant,
        "value": labels.short(value),
        "low": None if half is None else labels.short(value * math.exp(-half)),
        "high": None if half is None else labels.short(value * math.exp(half)),
        "change": "",
        "unusual": False,
    }


def _without_size(key: Key) -> Key:
    """What figures of one picture share: all of a cell but the size of the cluster."""
    return tuple(part for part in key if part[0] not in _SIZES)


def _size(key: Key, workers: int | None) -> tuple[int, int]:
    """Workers in all, and nodes; 0 where not recorded."""
    return workers or 0, int(dict(key).get("nodes") or 0)
