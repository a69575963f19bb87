"""The page over time: campaigns and imports in one, with changes and what is missing."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from gpubench import __version__
from gpubench.history.changes import Series
from gpubench.history.missing_intervals import Gap
from gpubench.history.observed import Observed
from gpubench.report import labels
from gpubench.report.export import Chart
from gpubench.report.frame import render
from gpubench.report.history import HistorySource, searched_lines, unusual_days, why
from gpubench.report.over_time import OverTime, over_time


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
    shown = over_time(inputs.observed, inputs.missing, inputs.series)
    context = {
        "title": _title(inputs),
        "searched": searched_sentence(inputs.series),
        "over_time": shown,
        "changes": change_rows(inputs.series),
        "unusual": unusual_rows(inputs.series),
        "sources": source_rows(inputs.sources),
        "version": __version__,
        "specs": {one.anchor: one.chart for one in shown},
    }
    return render("report/history.html.j2", inputs.templates, context)


def drawings(inputs: HistoryInputs) -> list[Chart]:
    """Every chart of the page."""
    return over_time_drawings(over_time(inputs.observed, inputs.missing, inputs.series))


def over_time_drawings(shown: Sequence[OverTime]) -> list[Chart]:
    """Anchor, name and spec of each."""
    return [(one.anchor, f"over time {one.name}", one.chart) for one in shown]


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
    return sorted(found, key=lambda row: (row[1], row[0]))


def unusual_rows(series: Sequence[Series]) -> list[tuple[str, str]]:
    """Series with days far from their stretch, and these."""
    names = labels.cell_names([dict(one.key) for one in series])
    found = zip(series, names, strict=True)
    return [(f"{name}, {one.variant}", unusual_days(one)) for one, name in found if one.unusual]


def source_rows(sources: Sequence[HistorySource]) -> list[dict[str, Any]]:
    """Per source its cells and versions, with what is there of what was planned."""
    return [
        {
            "kind": source.kind,
            "name": source.name,
            "about": source.about,
            "marked": any(line.marks for line in source.lines),
            "rows": [
                {
                    "name": name,
                    "variant": line.variant,
                    "there": f"{line.there} of {line.of}",
                    "marks": line.marks,
                    "reasons": [f"{count} x {reason}" for reason, count in line.reasons],
                }
                for line, name in zip(
                    source.lines, labels.cell_names([dict(line.key) for line in source.lines]), strict=True
                )
            ],
        }
        for source in sources
    ]


def _title(inputs: HistoryInputs) -> str:
    dates = sorted({one.date for one in inputs.observed})
    if not dates:
        return "No figure has a date and a version"
    span = f"{dates[0]}" if len(dates) == 1 else f"{len(dates)} dates, {dates[0]} to {dates[-1]}"
    versions = sorted({one.variant for one in inputs.observed})
    return f"{span}: {', '.join(versions)}"
