"""Change points of every cell and version over its dates, with what else changed there. Pure."""

import dataclasses
import datetime as dt
import itertools
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from gpubench.results.figures import Figure
from gpubench.stats.change_points import FEWEST, ChangePoint, change_points
from gpubench.stats.data import Key

SEED = 20260101
"""Of the permutations: the same history shows the same changes."""
Searching = Callable[[int, int], None]
"""Is told how many series have been searched, and how many there are; a long history takes a while."""
FAR, LITTLE = 6.0, 0.05
"""An unusual day is beyond so many robust standard deviations, and this far, from the median of its stretch (logs)."""


@dataclasses.dataclass(frozen=True)
class Changed:
    """One change of one series.

    Args:
        before, at: the last date of the old level and the first of the new.
        effect: of the mean between the neighbouring changes, a ratio minus one; positive is slower.
        p: see ``ChangePoint``.
        fields: what differs between the two dates' circumstances, of what both recorded.
        unknown: neither side recorded anything that could differ.
        others: other series that change between the same two dates, or a date beside them: a cause outside of one
            version shows so.
    """

    before: dt.date
    at: dt.date
    effect: float
    p: float
    fields: tuple[str, ...]
    unknown: bool
    others: int


@dataclasses.dataclass(frozen=True)
class Series:
    """One cell and version over its dates; ``changes`` are in order.

    ``unusual`` are days far from their stretch, with the ratio minus one to its median. No test stands behind them:
    an excursion of few days in a long series has no p-value to speak of, and yet a reader wants to know of it.
    ``left_out`` are figures of dates that have later ones.
    """

    key: Key
    variant: str
    figures: tuple[Figure, ...]
    changes: tuple[Changed, ...]
    unusual: tuple[tuple[dt.date, float], ...] = ()
    left_out: int = 0

    @property
    def searched(self) -> bool:
        return len(self.figures) >= FEWEST


def nobody(_done: int, _all: int) -> None:
    """Shows nothing."""


def find(figures: Iterable[Figure], searching: Searching = nobody) -> list[Series]:
    """Every cell and version, in the order in which they come; of a date with several figures the last one counts."""
    by_series: dict[tuple[Key, str], dict[dt.date, Figure]] = {}
    counts: Counter[tuple[Key, str]] = Counter()
    for figure in figures:
        by_series.setdefault((figure.key, figure.variant), {})[figure.date] = figure
        counts[figure.key, figure.variant] += 1
    ordered = [[dates[date] for date in sorted(dates)] for dates in by_series.values()]
    logs = [[figure.log_s for figure in line] for line in ordered]
    points = change_points(logs, SEED, searching=searching)
    spans = [
        (line[point.at - 1].date, line[point.at].date, row) for row, line in enumerate(ordered) for point in points[row]
    ]
    series = []
    for row, (place, line) in enumerate(zip(by_series, ordered, strict=True)):
        changes = tuple(_changed(line[point.at - 1], line[point.at], point, row, spans) for point in points[row])
        unusual = tuple(_unusual(line, [point.at for point in points[row]]))
        series.append(Series(*place, tuple(line), changes, unusual, counts[place] - len(line)))
    return series


def _changed(
    before: Figure, after: Figure, point: ChangePoint, row: int, spans: Sequence[tuple[dt.date, dt.date, int]]
) -> Changed:
    """``spans`` are the last and first dates of all changes, with the row of their series."""
    was, now = before.circumstances, after.circumstances
    unknown = not (was.facts and now.facts) and was.provenance is None
    others = {number for last, first, number in spans if last < after.date and first > before.date} - {row}
    fields = tuple(was.changed(now))
    return Changed(before.date, after.date, point.effect, point.p, fields, unknown, len(others))


def _unusual(figures: Sequence[Figure], cuts: Sequence[int]) -> Iterator[tuple[dt.date, float]]:
    """Days beyond FAR and LITTLE of their stretch between changes, with the ratio minus one to its median."""
    for start, end in itertools.pairwise([0, *cuts, len(figures)]):
        stretch = figures[start:end]
        if len(stretch) < FEWEST:
            continue
        middle = statistics.median(figure.log_s for figure in stretch)
        spread = 1.4826 * statistics.median(abs(figure.log_s - middle) for figure in stretch)
        for figure in stretch:
            off = figure.log_s - middle
            if abs(off) > max(FAR * spread, LITTLE):
                yield figure.date, math.expm1(off)
