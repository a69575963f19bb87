"""Change points of every cell and version over its dates, with what else changed there. Pure."""

import dataclasses
import datetime as dt
import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence

from gpubench.history.observed import Observed
from gpubench.importers.pairing import Key
from gpubench.stats.change_points import FEWEST, change_points

FAR, LITTLE = 6.0, 0.05


@dataclasses.dataclass(frozen=True)
class Changed:
    """One change of one series.

    Args:
        before, at: the last date of the old level and the first of the new.
        effect: of the mean between the neighbouring changes, a ratio minus one; positive is slower.
        p: see ``ChangePoint``.
        fields: what differs between the two dates' circumstances, of what both recorded.
        unknown: neither side recorded anything that could differ.
        others: other series that change between the same two dates, or a date beside them.
    """

    key: Key
    variant: str
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
    """

    key: Key
    variant: str
    observed: tuple[Observed, ...]
    changes: tuple[Changed, ...]
    unusual: tuple[tuple[dt.date, float], ...] = ()

    @property
    def searched(self) -> bool:
        """Whether it is long enough."""
        return len(self.observed) >= FEWEST


def find(
    observed: Iterable[Observed], seed: int, searching: Callable[[int, int], None] = lambda _done, _all: None
) -> list[Series]:
    """Every cell and version, in the order in which they come; of a date with several figures the last one counts.

    ``searching`` is told how many series have been searched, of how many.
    """
    by_series: dict[tuple[Key, str], dict[dt.date, Observed]] = {}
    for one in observed:
        by_series.setdefault((one.key, one.variant), {})[one.date] = one
    ordered = {place: [days[date] for date in sorted(days)] for place, days in by_series.items()}
    found = change_points([[one.log_s for one in days] for days in ordered.values()], seed, searching=searching)
    series = [
        Series(
            *place,
            tuple(days),
            tuple(_changed(place, days[change.at - 1], days[change.at], change.effect, change.p) for change in changes),
            tuple(_unusual(days, [change.at for change in changes])),
        )
        for (place, days), changes in zip(ordered.items(), found, strict=True)
    ]
    return _together(series)


def _unusual(days: Sequence[Observed], cuts: Sequence[int]) -> Iterator[tuple[dt.date, float]]:
    """Days beyond FAR robust standard deviations of their stretch, and by more than LITTLE."""
    for start, end in itertools.pairwise([0, *cuts, len(days)]):
        stretch = days[start:end]
        if len(stretch) < FEWEST:
            continue
        middle = statistics.median(day.log_s for day in stretch)
        spread = 1.4826 * statistics.median(abs(day.log_s - middle) for day in stretch)
        for day in stretch:
            off = day.log_s - middle
            if abs(off) > max(FAR * spread, LITTLE):
                yield day.date, math.expm1(off)


def _changed(place: tuple[Key, str], before: Observed, after: Observed, effect: float, p: float) -> Changed:
    fields = tuple(before.changed(after))
    unknown = not (before.known and after.known) and before.provenance is None
    return Changed(*place, before.date, after.date, effect, p, fields, unknown, 0)


def _together(series: Sequence[Series]) -> list[Series]:
    """With the number of other series that change at the same time: a cause outside of one version shows so."""
    spans = [(change.before, change.at, number) for number, one in enumerate(series) for change in one.changes]

    def others(change: Changed, own: int) -> int:
        return len({number for before, at, number in spans if before < change.at and at > change.before} - {own})

    return [
        dataclasses.replace(
            one, changes=tuple(dataclasses.replace(change, others=others(change, number)) for change in one.changes)
        )
        for number, one in enumerate(series)
    ]
