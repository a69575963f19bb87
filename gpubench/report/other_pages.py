"""The pages of an import, of two sides, and of results over time.

Figures over dates as the pages show them: a chart per workload.
"""

import dataclasses
import datetime as dt
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from gpubench import __version__
from gpubench.model.cell_names import cell_names
from gpubench.model.text import counted
from gpubench.report import labels
from gpubench.report.answer import VerdictAnswer, answer
from gpubench.report.charts.over_time import over_dates
from gpubench.report.history import (
    changes_section,
    cluster_size,
    compare_versions,
    group_key,
    searched_lines,
    size_text,
    source_lines,
    version_key,
)
from gpubench.report.page import Page
from gpubench.report.scaling import scaling_section
from gpubench.report.sections import (
    Chart,
    Medium,
    Section,
    SectionPart,
    TextSpan,
    inline,
)
from gpubench.results.changes import Series
from gpubench.results.curves import Curve
from gpubench.results.figures import Figure
from gpubench.results.history import ResultHistory
from gpubench.results.results import Results
from gpubench.stats import special
from gpubench.stats.data import Key

_MADE = f"Made by gpubench {__version__}."


def trend_page(sources: Sequence[ResultHistory], series: Sequence[Series]) -> Page:
    """Campaigns and imports in one, with changes."""
    span, (largest, sections) = (
        _span([figure for source in sources for figure in source.figures]),
        _over_dates(sources, series),
    )
    return Page(
        title=span,
        over=f"{span} · {', '.join(source.name for source in sources)}",
        headline=[largest or span],
        about=[*source_lines(sources), f"{'. '.join(searched_lines(series))}."],
        sections=[*sections, changes_section(series)],
        made=_MADE,
        why_no_chart="no figure has a date",
    )


def import_page(
    note: Mapping[str, Any],
    judged: VerdictAnswer | None,
    source: ResultHistory,
    series: Sequence[Series],
    cautions: Sequence[str],
) -> Page:
    """Of another tool's results; ``note`` is ``import.json``, ``judged`` the verdicts by date, where there are some."""
    kept = f"{note['kept']} of {note['rows_in']} rows"
    _, sections = _over_dates([source], series)
    verdicts = [dataclasses.replace(judged.section, title="Verdicts, by date", notes=())] if judged else []
    return Page(
        title=f"{note['name']} (imported)",
        over=f"{note['name']}: {kept} · imported results, format {note['format']}",
        headline=answer(judged.verdicts, judged.settings) if judged else [f"{note['name']}: {kept}"],
        opening=f"**Import {inline(str(note['name']))}** ({inline(str(note['format']))}): {kept}",
        notes=cautions,
        about=[f"Never recorded by the source: {', '.join(note['never_recorded'])}."],
        sections=[*verdicts, *sections, changes_section(series), _kept(note, source)],
        made=f"Imported by gpubench {note['gpubench']}.",
        why_no_chart=f"no figure of {note['name']} has a date",
    )


def sides_page(sides: Results, judged: VerdictAnswer, measured: Sequence[Curve]) -> Page:
    """The second campaign or import against the first, with both curves of every workload."""
    return Page(
        title=sides.name,
        over="gpubench report · two sides",
        headline=answer(judged.verdicts, judged.settings),
        notes=[*judged.section.notes],
        sections=[dataclasses.replace(judged.section, notes=()), scaling_section(sides.name, measured)],
        made=_MADE,
    )


def _over_dates(sources: Sequence[ResultHistory], series: Sequence[Series]) -> tuple[str, list[Section]]:
    """The largest differences between versions in a sentence, and what every page over dates shows."""
    observed = [figure for source in sources for figure in source.figures]
    compared = compare_versions(observed)
    variants = {figure.variant for figure in observed}
    versions = compared.section(sorted(variants, key=version_key))
    return compared.sentence, [
        *([versions] if versions.parts else []),
        over_time_section(observed, series),
    ]


def _kept(note: Mapping[str, Any], source: ResultHistory) -> Section:
    """What was imported and what was refused: each reason once, with its count and first place."""
    places: dict[str, list[str]] = {}
    for refusal in note["refused"]:
        places.setdefault(str(refusal["reason"]), []).append(f"{refusal['file']}:{refusal['line']}")
    refused = [f"{len(locations)} × {reason} (first: {locations[0]})" for reason, locations in places.items()]
    files: list[str | TextSpan] = [
        "Files of this import: ",
        TextSpan("import.json", link="import.json"),
        " (sources, every refused row), ",
        TextSpan("results.parquet", link="results.parquet"),
        ".",
    ]
    return Section(
        title="What was imported, and what was refused",
        brief=f"{counted(len(refused), 'reason')} of refusal" if refused else "",
        anchor="imported",
        text=[TextSpan(source.about, "quiet")],
        parts=[
            *([SectionPart(heading="Rows that were refused", lines=refused)] if refused else []),
            SectionPart(text=[files]),
        ],
        medium=Medium.PAGE,
    )


def _span(observed: Sequence[Figure]) -> str:
    dates = sorted({figure.date for figure in observed})
    if not dates:
        return "No figure has a date and a version"
    span = f"{dates[0]}" if len(dates) == 1 else f"{len(dates)} dates, {dates[0]} to {dates[-1]}"
    versions = sorted({figure.variant for figure in observed}, key=version_key)
    return f"{span}: {', '.join(versions)}"


def over_time_section(observed: Sequence[Figure], series: Sequence[Series]) -> Section:
    """A chart per workload."""
    return Section(
        over_time(observed, series) or [SectionPart(text=["No figure has a date and a version."])],
        title="Over time",
        anchor="over-time",
        text=[TextSpan(_INTRODUCTION, "quiet")],
        medium=Medium.PAGE,
    )


_INTRODUCTION = (
    "Higher is faster. Thin bars are 95 % intervals of each date’s figure. A triangle is a change point, the first "
    "date of a new level: it points up if the speed rose, and down if it fell. A ring marks an unusual day."
)


def over_time(observed: Sequence[Figure], series: Sequence[Series]) -> list[SectionPart]:
    """Every workload and its parameters, in the order in which they come; sizes of the cluster are facets of it."""
    groups: dict[Key, tuple[list[Figure], list[Series]]] = {}
    for figure in observed:
        groups.setdefault(group_key(figure.key), ([], []))[0].append(figure)
    for run in series:
        groups[group_key(run.key)][1].append(run)
    names = cell_names([dict(key) for key in groups])
    variants = sorted({figure.variant for figure in observed}, key=version_key)
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
    order = sorted(observed, key=lambda figure: (cluster_size(figure.key, figure.workers), figure.variant, figure.date))
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
    return cluster_size(key, workers), variant, date


def _figure(figure: Figure, *, rated: bool) -> dict[str, Any]:
    value = math.exp(figure.log_s)
    if rated and figure.bytes and figure.workers:
        value = figure.bytes / value / figure.workers / 1e9
    # A source's own standard error is of some thirty repetitions: the normal's quantile is near enough.
    wide = float(-special.stdtrit(figure.count - 1, 0.025)) if figure.count > 1 else 1.96
    half = None if figure.se is None else wide * figure.se
    place = cluster_size(figure.key, figure.workers)
    return {
        "size": size_text(place) if place[0] else "workers not recorded",
        "date": str(figure.date),
        "variant": figure.variant,
        "value": labels.short(value),
        "low": None if half is None else labels.short(value * math.exp(-half)),
        "high": None if half is None else labels.short(value * math.exp(half)),
        "change": "",
        "unusual": False,
    }
