"""The page over time: campaigns and imports in one, with changes and what is missing."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from gpubench import __version__
from gpubench.history.changes import Series
from gpubench.history.coverage import Gap
from gpubench.history.observed import Observed
from gpubench.report import labels
from gpubench.report.chart_parts import Chart
from gpubench.report.frame import render
from gpubench.report.history import HistorySource, searched_lines, unusual_days, why
from gpubench.report.over_time import OverTime, over_time
from gpubench.report.tables import NUMBER, SHORT, WHY, PageTable, marked
from gpubench.report.versions import compare_versions, version_key


@dataclasses.dataclass(frozen=True)
class HistoryInputs:
    """What the front end has read and computed."""

    sources: Sequence[HistorySource]
    observed: Sequence[Observed]
    missing: Sequence[Gap]
    series: Sequence[Series]
    templates: Mapping[str, str]


def html(inputs: HistoryInputs) -> bytes:
    """The page: one file that asks no network for anything."""
    context = {
        **trend_context(inputs.observed, inputs.missing, inputs.series),
        "span": _span(inputs),
        "sources": source_tables(inputs.sources),
        "version": __version__,
    }
    return render("report/history.html.j2", inputs.templates, context)


def trend_context(observed: Sequence[Observed], missing: Sequence[Gap], series: Sequence[Series]) -> dict[str, Any]:
    """What every page over dates shows: versions against one of them, figures over dates, changes."""
    shown = over_time(observed, missing, series)
    versions = compare_versions(observed)
    compared = versions.charts(_versions(observed, missing))
    return {
        "largest": versions.sentence,
        "baseline": versions.baseline,
        "versions": [{"anchor": anchor, "name": name.removeprefix("versions ")} for anchor, name, _ in compared],
        "over_time": shown,
        "searched": searched_sentence(series),
        "changes": PageTable(_CHANGES, _CHANGE_COLUMNS, change_rows(series), "sortable cards"),
        "unusual": unusual_rows(series),
        "specs": {anchor: spec for anchor, _, spec in [*compared, *_over_time_charts(shown)]},
    }


def drawings(inputs: HistoryInputs) -> list[Chart]:
    """Every chart of the page."""
    return trend_charts(inputs.observed, inputs.missing, inputs.series)


def trend_charts(observed: Sequence[Observed], missing: Sequence[Gap], series: Sequence[Series]) -> list[Chart]:
    """Anchor, name and spec of each chart over dates, and of versions against one of them."""
    compared = compare_versions(observed).charts(_versions(observed, missing))
    return [*compared, *_over_time_charts(over_time(observed, missing, series))]


def _over_time_charts(shown: Sequence[OverTime]) -> list[Chart]:
    return [(one.anchor, f"over time {one.name}", one.chart) for one in shown]


def _versions(observed: Sequence[Observed], missing: Sequence[Gap]) -> list[str]:
    return sorted({one.variant for one in observed} | {one.variant for one in missing})


def searched_sentence(series: Sequence[Series]) -> str:
    """How many series were searched, and how many changed."""
    return ". ".join(searched_lines(series)) + "."


def change_rows(series: Sequence[Series]) -> list[tuple[str, str, str, str, str]]:
    """A row per change point, by date."""
    names = labels.cell_names([dict(one.key) for one in series])
    found = [
        (
            f"{name}, {one.variant}",
            str(change.at),
            labels.percent(change.effect),
            f"{change.p:.2g}",
            why(change),
        )
        for one, name in zip(series, names, strict=True)
        for change in one.changes
    ]
    return sorted(found, key=lambda row: (row[1], version_key(row[0])))


def unusual_rows(series: Sequence[Series]) -> list[tuple[str, str]]:
    """Series with days far from their stretch, and these."""
    names = labels.cell_names([dict(one.key) for one in series])
    found = zip(series, names, strict=True)
    return [(f"{name}, {one.variant}", unusual_days(one)) for one, name in found if one.unusual]


_CHANGES = "Change points by series, with what else changed there"
_CHANGE_COLUMNS = (
    ("Series", ""),
    ("First date of it", SHORT),
    ("Change of the time", NUMBER),
    ("p", NUMBER),
    ("What else changed there", WHY),
)


def source_tables(sources: Sequence[HistorySource]) -> list[dict[str, Any]]:
    """Per source its cells and versions, with what is there of what was planned."""
    return [{"kind": one.kind, "name": one.name, "about": one.about, "table": _coverage(one)} for one in sources]


def _coverage(source: HistorySource) -> PageTable:
    marks = any(line.marks for line in source.lines)
    columns = [("Workload", ""), ("Version", SHORT), ("There", NUMBER)]
    columns += [("Each sign is a date", "")] if marks else []
    names = labels.cell_names([dict(line.key) for line in source.lines])
    rows = [
        [
            name,
            line.variant,
            f"{line.there} of {line.of}",
            *([marked("<code>{marks}</code>", marks=line.marks)] if marks else []),
            "; ".join(f"{count} x {reason}" for reason, count in line.reasons),
        ]
        for line, name in zip(source.lines, names, strict=True)
    ]
    caption = f"What {source.name} has of what was planned"
    return PageTable(caption, [*columns, ("What is missing, and why", WHY)], rows, "cards")


def _span(inputs: HistoryInputs) -> str:
    dates = sorted({one.date for one in inputs.observed})
    if not dates:
        return "No figure has a date and a version"
    span = f"{dates[0]}" if len(dates) == 1 else f"{len(dates)} dates, {dates[0]} to {dates[-1]}"
    versions = sorted({one.variant for one in inputs.observed}, key=version_key)
    return f"{span}: {', '.join(versions)}"
