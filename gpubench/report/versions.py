"""Versions against one of them, by size of the cluster, from the dates on which both were measured."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpubench.history.observed import Observed
from gpubench.importers.pairing import Key
from gpubench.report import labels
from gpubench.report.sections import PAGE, Chart, Section, SectionPart, Spec, Styled

_ENOUGH = 5
"""Least dates of a difference that is called one of the largest, if others have as many."""
_NAMED = 3
_INTRODUCTION = (
    "Higher is faster in every chart of this page. Each dot is a size of the cluster: the median over the dates on "
    "which both versions were measured; the bar holds the middle half of these dates. A dot with a number lies outside "
    "the picture."
)
_SIZES = ("nodes", "workers", "workers_per_node")


@dataclasses.dataclass(frozen=True)
class VersionDifference:
    """One version against the baseline in one workload at one size; ratios minus one, positive is faster.

    ``speed`` is the median over ``dates``, ``low`` and ``high`` hold the middle half of them.
    """

    workload: str
    size: tuple[int, int]
    variant: str
    speed: float
    low: float
    high: float
    dates: int

    @property
    def words(self) -> str:
        """``1.14.0 is 11.9 % slower in merge on 128 workers (9 dates)``."""
        way = "faster" if self.speed > 0 else "slower"
        dates = "one date" if self.dates == 1 else f"{self.dates} dates"
        place = f" on {panel_words(self.size)}" if self.size[0] else ""
        return f"{self.variant} is {abs(100 * self.speed):.1f} % {way} in {self.workload}{place} ({dates})"


@dataclasses.dataclass(frozen=True)
class VersionsCompared:
    """All differences from ``baseline``, in the order of workload, version and size."""

    baseline: str
    found: list[VersionDifference]

    @property
    def enough(self) -> int:
        """Dates that a difference needs to be called one of the largest."""
        return min(_ENOUGH, max((one.dates for one in self.found), default=0))

    @property
    def sentence(self) -> str:
        """The largest differences, one for each version and workload; empty where there is nothing to compare."""
        largest: dict[tuple[str, str], VersionDifference] = {}
        for one in sorted(self.found, key=lambda one: -abs(one.speed)):
            if one.dates >= self.enough:
                largest.setdefault((one.variant, one.workload), one)
        named = [one.words for one in list(largest.values())[:_NAMED]]
        return f"Largest differences from {self.baseline}: {'; '.join(named)}." if named else ""

    def section(self, variants: Sequence[str]) -> Section:
        """A chart per workload."""
        parts = [SectionPart(heading=one.name.removeprefix("versions "), charts=[one]) for one in self.charts(variants)]
        title = f"Versions against {self.baseline}"
        return Section(parts, title=title, anchor="versions", text=[Styled(_INTRODUCTION, "quiet")], on=PAGE)

    def charts(self, variants: Sequence[str]) -> list[Chart]:
        """Of each workload one: a panel per version, in it the sizes; ``variants`` decide the colours."""
        found: list[Chart] = []
        for workload in dict.fromkeys(one.workload for one in self.found):
            here = [one for one in self.found if one.workload == workload]
            ends = [end for one in here if one.dates >= self.enough for end in (one.low, one.speed, one.high)]
            rows = [_row(one, min([0.0, *ends]), max([0.0, *ends])) for one in here]
            rows.sort(key=lambda row: version_key(row["variant"]))
            title = f"{workload}: speed against {self.baseline}"
            draw = functools.partial(_draw, title, rows, variants)
            found.append(Chart(f"versions-{len(found)}", f"versions {workload}", draw))
        return found


def compare_versions(observed: Sequence[Observed]) -> VersionsCompared:
    """Every version against the one with most figures (of several the oldest), date by date."""
    counts = Counter(one.variant for one in observed)
    versions = sorted(counts, key=version_key)
    if len(versions) < 2:
        return VersionsCompared(versions[0] if versions else "", [])
    baseline = max(versions, key=lambda version: counts[version])
    groups = dict.fromkeys(group_key(one.key) for one in observed)
    names = dict(zip(groups, labels.cell_names([dict(key) for key in groups]), strict=True))
    cells: dict[tuple[Key, tuple[int, int]], dict[str, dict[Any, list[float]]]] = {}
    for one in observed:
        cell = cells.setdefault((group_key(one.key), panel_key(one.key, one.workers)), {})
        cell.setdefault(one.variant, {}).setdefault(one.date, []).append(one.log_s)
    order = list(groups)
    found: list[VersionDifference] = []
    for (key, size), cell in sorted(cells.items(), key=lambda item: (order.index(item[0][0]), item[0][1])):
        for version in versions:
            shared = sorted(cell.get(version, {}).keys() & cell.get(baseline, {}).keys())
            if version != baseline and shared:
                logs = [statistics.fmean(cell[baseline][day]) - statistics.fmean(cell[version][day]) for day in shared]
                low, middle, high = (math.expm1(float(at)) for at in np.quantile(logs, (0.25, 0.5, 0.75)))
                found.append(VersionDifference(names[key], size, version, middle, low, high, len(shared)))
    return VersionsCompared(baseline, found)


def _draw(title: str, rows: Sequence[dict[str, Any]], variants: Sequence[str]) -> Spec:
    from gpubench.report import charts

    return charts.against(title, rows, variants)


def version_key(text: str) -> list[tuple[int, str]]:
    """``1.9.0`` before ``1.12.0``: numbers in names are numbers."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", text)]


def _row(one: VersionDifference, low: float, high: float) -> dict[str, Any]:
    """Between ``low`` and ``high``; values far outside (from few dates) are drawn at the edge, with their number."""
    room = 0.5 * max(high - low, 0.05)
    beyond = not low - room <= one.speed <= high + room

    def inside(ratio: float) -> float:
        return labels.short(100 * min(max(ratio, low - room), high + room))

    return {
        "variant": one.variant,
        "size": str(one.size[0]) + (f" / {one.size[1]}" if one.size[1] else ""),
        "place": panel_words(one.size),
        "speed": inside(one.speed),
        "low": inside(one.low),
        "high": inside(one.high),
        "said": f"{labels.percent(one.speed)} [{100 * one.low:+.1f}, {100 * one.high:+.1f}]",
        "beyond": labels.percent(one.speed) if beyond else "",
        "dates": one.dates,
    }


def group_key(key: Key) -> Key:
    """What figures of one picture share: all of a cell but the size of the cluster."""
    return tuple(part for part in key if part[0] not in _SIZES)


def panel_key(key: Key, workers: int | None) -> tuple[int, int]:
    """Workers in all, and nodes; 0 where not recorded."""
    return workers or 0, int(dict(key).get("nodes") or 0)


def panel_words(place: tuple[int, int]) -> str:
    """``8 workers on 2 nodes``."""
    workers, nodes = place
    return f"{workers} workers" + (f" on {nodes} node{'s' if nodes > 1 else ''}" if nodes else "")
