"""Planned × observed: what a history holds, and what it could hold and doesn't, with the reason. Pure.

A source of another tool says nothing of what was planned. What is held against it here is every cell that it has at all
under every version that it has at all, on every date; the reasons are what can be read from its other rows.
"""

import dataclasses
import datetime as dt
from collections.abc import Iterable, Iterator, Sequence

from gpubench.model.known_issue import KnownIssue
from gpubench.model.text import counted
from gpubench.results.figures import Figure, cell_over_dates, figures
from gpubench.results.imports import UNKNOWN
from gpubench.results.results import Results
from gpubench.stats.data import Key

NOT_RECORDED, OUTSIDE = "unknown", "outside"


@dataclasses.dataclass(frozen=True)
class Gap:
    """A cell under a variant on a date of which something is missing.

    Args:
        kind: ``failed skipped lost pending`` of a campaign's runs; of an import NOT_RECORDED, or OUTSIDE of the dates
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


@dataclasses.dataclass(frozen=True)
class CoverageLine:
    """A cell under a variant: of what was planned (``of``), how much is there, and the reasons of the rest with counts.

    ``marks`` has a sign per date where there are several: ``#`` is there, ``.`` isn't.
    """

    key: Key
    variant: str
    measured: int
    of: int
    reasons: tuple[tuple[str, int], ...]
    marks: str = ""


@dataclasses.dataclass(frozen=True)
class ResultHistory:
    """What a campaign or an import adds to a history: a line about it, what it has of what was planned, figures."""

    kind: str
    name: str
    about: str
    dates: Sequence[dt.date]
    lines: Sequence[CoverageLine]
    figures: Sequence[Figure] = ()
    missing: Sequence[Gap] = ()


def history(results: Results, rules: Sequence[KnownIssue]) -> ResultHistory:
    """What the results add to a history; ``rules`` are known issues that may be why something was never measured."""
    observed = figures(results)
    missing = gaps(results, observed, rules)
    lines, about = coverage(results, observed, missing), results.about
    dates = sorted({figure.date for figure in observed} | {gap.date for gap in missing})
    if results.plan is None:
        span = f"{counted(len(dates), 'date')}, {dates[0]} to {dates[-1]}" if dates else "no dates"
        versions = ", ".join(sorted({figure.variant for figure in observed}))
        about = f"{about}, {span}, versions {versions}; each sign is a date, # measured, . not"
        left_out = sum(run.variant == UNKNOWN or run.date is None for run in results.runs)
        about += f"; {counted(left_out, 'run')} without a version or a date left out" if left_out else ""
    return ResultHistory(results.kind, results.name, about, dates, lines, observed, missing)


def gaps(results: Results, observed: Sequence[Figure], rules: Sequence[KnownIssue]) -> list[Gap]:
    """What is missing of what was planned, or of every cell, version and date where nothing was.

    Args:
        observed: figures of the results.
        rules: known issues that may be why something was never measured.
    """
    return list(_unplanned(observed, rules) if results.plan is None else _planned(results))


def _planned(results: Results) -> Iterator[Gap]:
    """What became of the runs of every cell and variant that aren't ok, each reason once."""
    of: dict[tuple[Key, str], int] = {}
    counts: dict[tuple[Key, str], dict[tuple[str, str], Gap]] = {}
    for run in results.runs:
        place = cell_over_dates(run.key), run.variant
        of[place] = of.get(place, 0) + 1
        if run.status != "ok" and run.date is not None:
            reason = f"{run.status}: {run.reason}"
            gap = Gap(*place, run.date, run.status, reason, run.workers, missing=0)
            gap = counts.setdefault(place, {}).setdefault((run.status, run.reason), gap)
            counts[place][run.status, run.reason] = dataclasses.replace(gap, missing=gap.missing + 1)
    for place, reasons in counts.items():
        yield from (dataclasses.replace(gap, of=of[place]) for gap in reasons.values())


def _unplanned(observed: Sequence[Figure], rules: Sequence[KnownIssue]) -> Iterator[Gap]:
    dates = sorted({figure.date for figure in observed})
    seen = {(figure.key, figure.variant, figure.date) for figure in observed}
    of_version: dict[str, set[dt.date]] = {}
    workers: dict[Key, int | None] = {}
    for figure in observed:
        of_version.setdefault(figure.variant, set()).add(figure.date)
        workers.setdefault(figure.key, figure.workers)
    for key, count in workers.items():
        for variant, days in sorted(of_version.items()):
            measured = [date for date in dates if (key, variant, date) in seen]
            for date in sorted(set(dates) - set(measured)):
                why = _why(variant, date, measured, days, rules)
                kind = NOT_RECORDED if min(days) <= date <= max(days) else OUTSIDE
                yield Gap(key, variant, date, kind, why, count)


def _why(
    variant: str, date: dt.date, measured: Sequence[dt.date], days: set[dt.date], rules: Sequence[KnownIssue]
) -> str:
    if date < min(days):
        return f"before the first date of {variant} ({min(days)})"
    if date > max(days):
        return f"after the last date of {variant} ({max(days)})"
    if date not in days:
        return "nothing of this version on that date; no reason recorded"
    if not measured and (
        rule := next((rule for rule in rules if rule.when.ucx and rule.when.ucx.holds(variant)), None)
    ):
        return f"never measured in this cell; no reason recorded, perhaps {rule.why}"
    return "other cells of this version have that date, this one hasn't; no reason recorded"


def coverage(results: Results, observed: Sequence[Figure], missing: Iterable[Gap]) -> list[CoverageLine]:
    """Every cell under every variant: how much is there of what was planned, or of all dates where nothing was."""
    by_cell: dict[tuple[Key, str], list[Gap]] = {}
    for gap in missing:
        by_cell.setdefault((gap.key, gap.variant), []).append(gap)
    if results.plan is not None:
        counts: dict[tuple[Key, str], int] = {}
        for run in results.runs:
            place = cell_over_dates(run.key), run.variant
            counts[place] = counts.get(place, 0) + 1
        places = [(cell_over_dates(key), variant) for key in results.keys for variant in results.variants]
        return [_line(place, by_cell.get(place, []), counts[place], ()) for place in places if place in counts]
    dates = sorted({figure.date for figure in observed})
    variants = sorted({figure.variant for figure in observed})
    keys = dict.fromkeys(figure.key for figure in observed)
    places = [(key, variant) for key in keys for variant in variants]
    return [_line(place, by_cell.get(place, []), len(dates), dates) for place in places]


def _line(place: tuple[Key, str], missing: Sequence[Gap], of: int, dates: Sequence[dt.date]) -> CoverageLine:
    out = {gap.date for gap in missing}
    marks = "".join("." if date in out else "#" for date in dates)
    reasons: dict[str, int] = {}
    for gap in missing:
        reasons[gap.reason] = reasons.get(gap.reason, 0) + gap.missing
    return CoverageLine(*place, of - sum(gap.missing for gap in missing), of, tuple(reasons.items()), marks)


def spans(gaps: Iterable[Gap], dates: Iterable[dt.date]) -> list[Span]:
    """Gaps of one cell, variant, kind and reason joined where no other of ``dates`` stands between them."""
    number = {date: place for place, date in enumerate(sorted(set(dates)))}
    rows: dict[tuple[Key, str, str, str], list[Gap]] = {}
    for gap in sorted(gaps, key=lambda gap: gap.date):
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


def _span(stretch: Sequence[Gap]) -> Span:
    dates = tuple(dict.fromkeys(gap.date for gap in stretch))
    sums = {name: sum(getattr(gap, name) for gap in stretch) for name in ("missing", "of")}
    return Span(**{**vars(stretch[0]), **sums, "dates": dates})
