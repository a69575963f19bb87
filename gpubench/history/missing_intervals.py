"""Figures that a history could hold and doesn't: one by one with the reason, and as spans of dates. Pure."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterable, Iterator, Sequence

from gpubench.history.observed import Observed, key_of
from gpubench.importers.pairing import Key
from gpubench.merge.family import Cell
from gpubench.model.known_issue import KnownIssue
from gpubench.model.plan import Plan

UNKNOWN, OUTSIDE = "unknown", "outside"


@dataclasses.dataclass(frozen=True)
class Gap:
    """A cell under a variant on a date of which something is missing.

    Args:
        kind: ``failed skipped lost pending`` of a campaign's runs; of an import UNKNOWN, or OUTSIDE of the dates
            between the first and the last of the version.
        reason: as far as anybody knows.
        missing, of: how many runs aren't there, of those planned; 1 of 1 in an import.
    """

    key: Key
    variant: str
    date: dt.date
    kind: str
    reason: str
    workers: int | None
    missing: int = 1
    of: int = 1


@dataclasses.dataclass(frozen=True)
class Span:
    """Gaps of one kind and reason on dates that follow each other; ``dates`` are theirs, ascending."""

    key: Key
    variant: str
    kind: str
    reason: str
    workers: int | None
    dates: tuple[dt.date, ...]
    missing: int
    of: int


def of_import(observed: Sequence[Observed], known: Iterable[KnownIssue]) -> list[Gap]:
    """Every cell of an import × every version × every date that it has, less what is there."""
    dates = sorted({one.date for one in observed})
    there = {(one.key, one.variant, one.date) for one in observed}
    of_version: dict[str, set[dt.date]] = {}
    workers: dict[Key, int | None] = {}
    for one in observed:
        of_version.setdefault(one.variant, set()).add(one.date)
        workers.setdefault(one.key, one.workers)
    rules = list(known)
    gaps = []
    for key, count in workers.items():
        for variant, days in sorted(of_version.items()):
            found = [date for date in dates if (key, variant, date) in there]
            for date in sorted(set(dates) - set(found)):
                why = _why(variant, date, found, days, rules)
                kind = UNKNOWN if min(days) <= date <= max(days) else OUTSIDE
                gaps.append(Gap(key, variant, date, kind, why, count))
    return gaps


def _why(variant: str, date: dt.date, found: Sequence[dt.date], days: set[dt.date], rules: Sequence[KnownIssue]) -> str:
    if date < min(days):
        return f"before the first date of {variant} ({min(days)})"
    if date > max(days):
        return f"after the last date of {variant} ({max(days)})"
    if date not in days:
        return "nothing of this version on that date; no reason recorded"
    if not found and (rule := next((one for one in rules if one.when.ucx and one.when.ucx.holds(variant)), None)):
        return f"never measured in this cell; no reason recorded, perhaps {rule.why}"
    return "other cells of this version have that date, this one hasn't; no reason recorded"


def of_campaign(plan: Plan, table: Iterable[Cell], date: dt.date) -> list[Gap]:
    """What became of the runs of every cell × variant that aren't ok, each reason once."""
    groups: dict[tuple[Key, str], list[Cell]] = {}
    for cell in table:
        groups.setdefault((key_of(plan, cell), cell.outcome.run.variant), []).append(cell)
    gaps = []
    for (key, variant), cells in groups.items():
        job = cells[0].outcome.job
        counts: dict[tuple[str, str], int] = {}
        for cell in cells:
            if cell.status != "ok":
                counts[cell.status, cell.reason] = counts.get((cell.status, cell.reason), 0) + 1
        gaps += [
            Gap(key, variant, date, kind, f"{kind}: {why}", job.nodes * job.workers_per_node, count, len(cells))
            for (kind, why), count in counts.items()
        ]
    return gaps


def spans(gaps: Iterable[Gap], dates: Iterable[dt.date]) -> list[Span]:
    """Gaps of one cell, variant, kind and reason joined where no other of ``dates`` stands between them."""
    number = {date: place for place, date in enumerate(sorted(set(dates)))}
    rows: dict[tuple[Key, str, str, str], list[Gap]] = {}
    for gap in sorted(gaps, key=lambda one: one.date):
        rows.setdefault((gap.key, gap.variant, gap.kind, gap.reason), []).append(gap)
    return [_span(stretch) for row in rows.values() for stretch in _stretches(row, number)]


def _stretches(row: Sequence[Gap], number: dict[dt.date, int]) -> Iterator[list[Gap]]:
    stretch: list[Gap] = []
    for gap in row:
        if stretch and number[gap.date] > number[stretch[-1].date] + 1:
            yield stretch
            stretch = []
        stretch.append(gap)
    yield stretch


def _span(found: Sequence[Gap]) -> Span:
    first = found[0]
    dates = tuple(dict.fromkeys(gap.date for gap in found))
    missing, of = sum(gap.missing for gap in found), sum(gap.of for gap in found)
    return Span(first.key, first.variant, first.kind, first.reason, first.workers, dates, missing, of)
