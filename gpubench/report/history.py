"""Results over time: where figures changed.

Versions against one of them, by size of the cluster, from the dates on which both were measured.
"""

import dataclasses
import functools
import math
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from gpubench.model.cell_names import cell_names
from gpubench.report import labels
from gpubench.report.charts.over_time import against
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
from gpubench.results.changes import Changed, Series
from gpubench.results.figures import Figure
from gpubench.results.history import ResultHistory
from gpubench.stats import special
from gpubench.stats.change_points import FEWEST
from gpubench.stats.data import Key

TREND = "gpubench/trend/1"
CONDITION = (
    "5 % is the chance of a false alarm if the dates are independent; it is higher if a figure resembles that of the "
    "date before, or if figures drift"
)
_MOST_FIELDS = 6


def by_machine(sources: Sequence[ResultHistory]) -> list[ResultHistory]:
    """The same, with figures of different machines in different cells, because they are never pooled.

    A site is a machine, and so is each kind of processors where those of a site differ.
    """
    machines = {
        figure.circumstances.machine for source in sources for figure in source.figures if figure.circumstances.machine
    }
    if len(machines) < 2:
        return list(sources)
    sites = [site for site, _ in machines]

    def apart(key: Key, machine: tuple[str, ...]) -> Key:
        site, processors = machine
        return (*key, ("site", site), *([("processors", processors)] if sites.count(site) > 1 else []))

    made = []
    for source in sources:
        if any(figure.circumstances.machine for figure in source.figures):
            figures = [
                dataclasses.replace(figure, key=apart(figure.key, figure.circumstances.machine))
                for figure in source.figures
            ]
            made.append(dataclasses.replace(source, figures=figures))
        else:
            made.append(source)
    return made


def changes_section(series: Sequence[Series]) -> Section:
    """The changes by date, then how many series were searched; numbers hold every figure (seconds)."""
    parts = []
    if rows := change_rows(series):
        columns = [
            Heading("series"),
            Heading("first date of it", ColumnStyle.SHORT),
            Heading("last date before", ColumnStyle.SHORT),
        ]
        columns += [
            Heading("change of the time", ColumnStyle.NUMBER),
            Heading("p", ColumnStyle.NUMBER),
            Heading("what else changed there", ColumnStyle.WHY),
        ]
        caption = "Change points by series, with what else changed there"
        parts.append(SectionPart(table=TextTable(columns, rows, caption, "sortable cards")))
    if unusual := _unusual_lines(series):
        title = "unusual days (no test; compared with the median of their stretch)"
        parts.append(SectionPart(title, unusual, fold=title[0].upper() + title[1:]))
    searched = list(searched_lines(series))
    return Section(
        [*parts, SectionPart(lines=searched, medium=Medium.PRINTED)],
        title="Changes over dates",
        anchor="changes",
        text=[
            TextSpan(
                f"{'. '.join(searched)}. A change is not a verdict on a version: it is a difference between days.",
                "quiet",
            )
        ],
    )


def change_rows(series: Sequence[Series]) -> list[tuple[str, ...]]:
    """A row per change point, by date."""
    names = cell_names([dict(cell_series.key) for cell_series in series])
    rows = [
        (
            f"{name}, {cell_series.variant}",
            str(change.at),
            str(change.before),
            labels.percent(change.effect),
            "< 0.001" if change.p < 0.001 else f"{change.p:.2g}",
            why(change),
        )
        for cell_series, name in zip(series, names, strict=True)
        for change in cell_series.changes
    ]
    return sorted(rows, key=lambda row: (row[1], version_key(row[0])))


def _unusual_lines(series: Sequence[Series]) -> list[str]:
    """Series with unusual days: ``merge, 1.12.1: 2022-09-12 +35.3 %, 2022-09-20 +35.6 %``."""
    names = cell_names([dict(cell_series.key) for cell_series in series])
    days = [", ".join(f"{day} {labels.percent(off)}" for day, off in cell_series.unusual) for cell_series in series]
    return [
        f"{name}, {cell_series.variant}: {text}"
        for cell_series, name, text in zip(series, names, days, strict=True)
        if text
    ]


def trend_section(sources: Sequence[ResultHistory], series: Sequence[Series]) -> Section:
    """A line for each source, and the changes."""
    changes = changes_section(series)
    plain = [{"kind": source.kind, "name": source.name, "about": source.about} for source in sources]
    data = {"schema": TREND, "sources": plain, "series": [_plain_series(cell_series) for cell_series in series]}
    return Section([SectionPart(lines=source_lines(sources)), *changes.parts], data)


def source_lines(sources: Sequence[ResultHistory]) -> list[str]:
    """``import draco: draco-csv, 28 dates, ...``."""
    return [f"{source.kind} {source.name}: {source.about}" for source in sources]


def searched_lines(series: Sequence[Series]) -> Iterator[str]:
    """How many series were searched for changes, how many changed, and on which condition the 5 % hold."""
    searched = [history for history in series if history.searched]
    changed = [history for history in searched if history.changes]
    yield f"{len(changed)} of {len(searched)} series of {FEWEST} dates or more changed; Holm over these, at 5 %"
    if searched:
        yield CONDITION
    if len(searched) < len(series):
        shorter = len(series) - len(searched)
        yield f"{shorter} series {'is shorter, and was' if shorter == 1 else 'are shorter, and were'} not searched"


def why(change: Changed) -> str:
    """What else changed on that date, as far as it was recorded."""
    if change.unknown:
        reason = "nothing was recorded that could say why"
    elif not change.fields:
        reason = "nothing else that was recorded changed"
    else:
        more = len(change.fields) - _MOST_FIELDS
        reason = "changed there: " + ", ".join(change.fields[:_MOST_FIELDS]) + (f" and {more} more" if more > 0 else "")
    if not change.others:
        return reason
    return f"{reason}; {change.others} other series {'changes' if change.others == 1 else 'change'} there too"


def _plain_series(series: Series) -> dict[str, Any]:
    return {
        **dict(series.key),
        "variant": series.variant,
        "searched": series.searched,
        "figures": [{"date": str(day.date), "log_s": day.log_s, "source": day.source} for day in series.figures],
        "unusual": [{"date": str(day), "effect": off} for day, off in series.unusual],
        "changes": [
            {
                "at": str(change.at),
                "before": str(change.before),
                "effect": change.effect,
                "p": change.p,
                "fields": list(change.fields),
                "others": change.others,
            }
            for change in series.changes
        ],
    }


_ENOUGH = 5
"""Least dates of a difference that is called one of the largest, if others have as many."""
_NAMED = 3
_INTRODUCTION = (
    "Each dot is a size of the cluster: the change of the mean time over the dates on which both versions were "
    "measured, as in the verdicts; positive is slower. The bar is its 95 % interval over these dates, for one "
    "comparison by itself. A dot with a number lies outside the picture."
)
_SIZES = ("nodes", "workers", "workers_per_node")


@dataclasses.dataclass(frozen=True)
class VersionDifference:
    """One version against the baseline in one workload at one size; ratios minus one, positive is slower.

    ``effect`` is that of the geometric means over ``dates``, as in a verdict; ``low`` and ``high`` its 95 % interval,
    by Student's t over the dates, and the effect itself where there is one date.
    """

    workload: str
    size: tuple[int, int]
    variant: str
    effect: float
    low: float
    high: float
    dates: int

    @property
    def text(self) -> str:
        """``1.14.0 is 11.9 % slower in merge on 128 workers (9 dates)``."""
        way = "slower" if self.effect > 0 else "faster"
        dates = "one date" if self.dates == 1 else f"{self.dates} dates"
        place = f" on {size_text(self.size)}" if self.size[0] else ""
        return f"{self.variant} is {abs(100 * self.effect):.1f} % {way} in {self.workload}{place} ({dates})"


@dataclasses.dataclass(frozen=True)
class VersionsCompared:
    """All differences from ``baseline``, in the order of workload, version and size."""

    baseline: str
    differences: list[VersionDifference]

    @property
    def enough(self) -> int:
        """Dates that a difference needs to be called one of the largest."""
        return min(_ENOUGH, max((difference.dates for difference in self.differences), default=0))

    @property
    def sentence(self) -> str:
        """The largest differences, one for each version and workload; empty where there is nothing to compare."""
        largest: dict[tuple[str, str], VersionDifference] = {}
        for difference in sorted(self.differences, key=lambda difference: -abs(difference.effect)):
            if difference.dates >= self.enough:
                largest.setdefault((difference.variant, difference.workload), difference)
        named = [difference.text for difference in list(largest.values())[:_NAMED]]
        return (
            f"Largest differences of mean times from {self.baseline}, which are no verdicts: {'; '.join(named)}."
            if named
            else ""
        )

    def section(self, variants: Sequence[str]) -> Section:
        """A chart per workload."""
        parts = [
            SectionPart(heading=chart.name.removeprefix("versions "), charts=[chart]) for chart in self.charts(variants)
        ]
        title = f"Versions against {self.baseline}"
        few = any(difference.dates < self.enough for difference in self.differences)
        left_out = f" The largest differences above are those of {self.enough} dates or more." if few else ""
        intro = [TextSpan(f"{_INTRODUCTION}{left_out}", "quiet")]
        return Section(parts, title=title, anchor="versions", text=intro, medium=Medium.PAGE)

    def charts(self, variants: Sequence[str]) -> list[Chart]:
        """Of each workload one: a facet per version, in it the sizes; ``variants`` decide the colours."""
        charts: list[Chart] = []
        for workload in dict.fromkeys(difference.workload for difference in self.differences):
            differences = [difference for difference in self.differences if difference.workload == workload]
            ends = [
                end
                for difference in differences
                if difference.dates >= self.enough
                for end in (difference.low, difference.effect, difference.high)
            ]
            rows = [_row(difference, min([0.0, *ends]), max([0.0, *ends])) for difference in differences]
            rows.sort(key=lambda row: version_key(row["variant"]))
            title = f"{workload}: change of the time against {self.baseline}"
            draw = functools.partial(against, rows, variants, title)
            charts.append(Chart(f"versions-{len(charts)}", f"versions {workload}", draw))
        return charts


def compare_versions(observed: Sequence[Figure]) -> VersionsCompared:
    """Every version against the one with most figures (of several the oldest), date by date."""
    counts = Counter(figure.variant for figure in observed)
    versions = sorted(counts, key=version_key)
    if len(versions) < 2:
        return VersionsCompared(versions[0] if versions else "", [])
    baseline = max(versions, key=lambda version: counts[version])
    groups = dict.fromkeys(group_key(figure.key) for figure in observed)
    names = dict(zip(groups, cell_names([dict(key) for key in groups]), strict=True))
    cells: dict[tuple[Key, tuple[int, int]], dict[str, dict[Any, list[float]]]] = {}
    for figure in observed:
        cell = cells.setdefault((group_key(figure.key), cluster_size(figure.key, figure.workers)), {})
        cell.setdefault(figure.variant, {}).setdefault(figure.date, []).append(figure.log_s)
    order = list(groups)
    differences: list[VersionDifference] = []
    for (key, size), cell in sorted(cells.items(), key=lambda item: (order.index(item[0][0]), item[0][1])):
        for version in versions:
            shared = sorted(cell.get(version, {}).keys() & cell.get(baseline, {}).keys())
            if version != baseline and shared:
                logs = [statistics.fmean(cell[version][day]) - statistics.fmean(cell[baseline][day]) for day in shared]
                effect, low, high = map(math.expm1, _mean_and_interval(logs))
                differences.append(VersionDifference(names[key], size, version, effect, low, high, len(shared)))
    return VersionsCompared(baseline, differences)


def _mean_and_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean, and the ends of its 95 % interval by Student's t; of one value three times that."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, mean, mean
    half = float(special.stdtrit(len(values) - 1, 0.975)) * statistics.stdev(values) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def version_key(text: str) -> list[tuple[int, str]]:
    """``1.9.0`` before ``1.12.0``: numbers in names are numbers."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", text)]


def _row(difference: VersionDifference, low: float, high: float) -> dict[str, Any]:
    """Between ``low`` and ``high``; values far outside (from few dates) are drawn at the edge, with their number."""
    room = 0.5 * max(high - low, 0.05)
    beyond = not low - room <= difference.effect <= high + room

    def inside(ratio: float) -> float:
        return labels.short(100 * min(max(ratio, low - room), high + room))

    return {
        "variant": difference.variant,
        "size": str(difference.size[0]) + (f" / {difference.size[1]}" if difference.size[1] else ""),
        "effect": inside(difference.effect),
        "low": inside(difference.low),
        "high": inside(difference.high),
        "beyond": labels.percent(difference.effect) if beyond else "",
    }


def group_key(key: Key) -> Key:
    """What figures of one picture share: all of a cell but the size of the cluster."""
    return tuple(part for part in key if part[0] not in _SIZES)


def cluster_size(key: Key, workers: int | None) -> tuple[int, int]:
    """Workers in all, and nodes; 0 where not recorded."""
    return workers or 0, int(dict(key).get("nodes") or 0)


def size_text(place: tuple[int, int]) -> str:
    """``8 workers on 2 nodes``."""
    workers, nodes = place
    return f"{workers} workers" + (f" on {nodes} node{'s' if nodes > 1 else ''}" if nodes else "")
