"""Planned × observed: what a history holds, and what it could hold and doesn't, with the reason. Pure."""

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
class Span(Gap):
    """Gaps of one kind and reason on dates that follow each other; ``dates`` are theirs, ascending."""

    dates: tuple[dt.date, ...] = ()


def gaps_of_import(observed: Sequence[Observed], known: Iterable[KnownIssue]) -> list[Gap]:
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


def gaps_of_campaign(plan: Plan, table: Iterable[Cell], date: dt.date) -> list[Gap]:
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
    dates = tuple(dict.fromkeys(gap.date for gap in found))
    sums = {name: sum(getattr(gap, name) for gap in found) for name in ("missing", "of")}
    return Span(**{**vars(found[0]), **sums, "dates": dates})


@dataclasses.dataclass(frozen=True)
class CoverageLine:
    """A cell under a variant: of what was planned (``of``), how much is there, and the reasons of the rest with counts.

    ``marks`` has a sign per date of an import: ``#`` is there, ``.`` isn't; it is empty for a campaign.
    """

    key: Key
    variant: str
    there: int
    of: int
    reasons: tuple[tuple[str, int], ...]
    marks: str = ""


def of_import(observed: Sequence[Observed], gaps: Iterable[Gap]) -> list[CoverageLine]:
    """Every cell of an import × every version, over all its dates.

    A source of results says nothing of what was planned. What is held against it here is every cell that it has at all
    under every version that it has at all, on every date; the reasons are what can be read from the other rows.
    """
    dates = sorted({one.date for one in observed})
    variants = sorted({one.variant for one in observed})
    missing = _by_cell(gaps)
    lines = []
    for key in dict.fromkeys(one.key for one in observed):
        for variant in variants:
            found = missing.get((key, variant), [])
            out = {gap.date for gap in found}
            marks = "".join("." if date in out else "#" for date in dates)
            lines.append(CoverageLine(key, variant, len(dates) - len(out), len(dates), _reasons(found), marks))
    return lines


def of_campaign(plan: Plan, table: Iterable[Cell], gaps: Iterable[Gap]) -> list[CoverageLine]:
    """Every cell × variant of a campaign: the runs that are ok of those planned."""
    planned: dict[tuple[Key, str], int] = {}
    for cell in table:
        place = key_of(plan, cell), cell.outcome.run.variant
        planned[place] = planned.get(place, 0) + 1
    order = {one.label: number for number, one in enumerate(plan.variants)}
    missing = _by_cell(gaps)
    lines = []
    for (key, variant), of in sorted(planned.items(), key=lambda item: (str(item[0][0]), order[item[0][1]])):
        found = missing.get((key, variant), [])
        lines.append(CoverageLine(key, variant, of - sum(gap.missing for gap in found), of, _reasons(found)))
    return lines


def _by_cell(gaps: Iterable[Gap]) -> dict[tuple[Key, str], list[Gap]]:
    found: dict[tuple[Key, str], list[Gap]] = {}
    for gap in gaps:
        found.setdefault((gap.key, gap.variant), []).append(gap)
    return found


def _reasons(gaps: Iterable[Gap]) -> tuple[tuple[str, int], ...]:
    counts: dict[str, int] = {}
    for gap in gaps:
        counts[gap.reason] = counts.get(gap.reason, 0) + gap.missing
    return tuple(counts.items())
