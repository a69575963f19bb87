"""The pages of an import, of two sides, and of results over time.

Figures over dates as the pages show them: a chart per workload, and a list of what is missing.
"""

import dataclasses
import datetime as dt
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gpubench import __version__
from gpubench.model.text import counted
from gpubench.report import charts, labels
from gpubench.report.answer import VerdictAnswer, answer
from gpubench.report.charts import Edges
from gpubench.report.history import (
    changes_section,
    compare_versions,
    coverage_section,
    group_key,
    panel_key,
    panel_words,
    searched_lines,
    version_key,
    why,
)
from gpubench.report.page import Page
from gpubench.report.plots import effect_plot
from gpubench.report.scaling import scaling_section
from gpubench.report.sections import (
    Chart,
    ColumnStyle,
    Heading,
    Medium,
    Section,
    SectionPart,
    TextSpan,
    TextTable,
    inline,
)
from gpubench.results.changes import Changed, Series
from gpubench.results.coverage import OUTSIDE, Gap, ResultHistory, Span, spans
from gpubench.results.curves import Curve
from gpubench.results.figures import Figure
from gpubench.results.results import Results
from gpubench.stats import special
from gpubench.stats.data import Key

_MADE = f"Made by gpubench {__version__}."


def trend_page(sources: Sequence[ResultHistory], series: Sequence[Series]) -> Page:
    """Campaigns and imports in one, with changes and what is missing."""
    span, (largest, sections) = (
        _span([figure for one in sources for figure in one.figures]),
        _over_dates(sources, series),
    )
    return Page(
        title=span,
        over=f"{span} · {', '.join(one.name for one in sources)}",
        headline=[largest or span],
        about=[f"{'. '.join(searched_lines(series))}."],
        sections=[*sections, changes_section(series), coverage_section(sources)],
        made=_MADE,
        why_no_chart="no figure has a date",
    )


def import_page(
    note: Mapping[str, Any],
    found: VerdictAnswer | None,
    source: ResultHistory,
    series: Sequence[Series],
    cautions: Sequence[str],
) -> Page:
    """Of another tool's results; ``note`` is ``import.json``, ``found`` the verdicts by date, where there are some."""
    kept = f"{note['kept']} of {note['rows_in']} rows"
    _, sections = _over_dates([source], series)
    verdicts = [dataclasses.replace(found.section, title="Verdicts, by date", notes=())] if found else []
    return Page(
        title=f"{note['name']} (imported)",
        over=f"{note['name']}: {kept} · imported results, format {note['format']}",
        headline=answer(found.verdicts, found.settings) if found else [f"{note['name']}: {kept}"],
        opening=f"**Import {inline(str(note['name']))}** ({inline(str(note['format']))}): {kept}",
        notes=cautions,
        about=[f"Never recorded by the source: {', '.join(note['never_recorded'])}."],
        sections=[*verdicts, *sections, changes_section(series), _kept(note, source)],
        made=f"Imported by gpubench {note['gpubench']}.",
        why_no_chart=f"no figure of {note['name']} has a date",
        plots=_plots(found),
    )


def sides_page(sides: Results, found: VerdictAnswer, measured: Sequence[Curve]) -> Page:
    """The second campaign or import against the first, with both curves of every workload."""
    return Page(
        title=sides.name,
        over="gpubench report · two sides",
        headline=answer(found.verdicts, found.settings),
        notes=[*found.section.notes],
        sections=[dataclasses.replace(found.section, notes=()), scaling_section(sides.name, measured)],
        made=_MADE,
        plots=_plots(found),
    )


def _plots(found: VerdictAnswer | None) -> Callable[[int], list[Iterator[str]]]:
    if found is None:
        return lambda _width: []
    return lambda width: [effect_plot(found.verdicts, found.settings.margin, width)]


def _over_dates(sources: Sequence[ResultHistory], series: Sequence[Series]) -> tuple[str, list[Section]]:
    """The largest differences between versions in a sentence, and what every page over dates shows."""
    observed = [figure for one in sources for figure in one.figures]
    missing = [gap for one in sources for gap in one.missing]
    compared = compare_versions(observed)
    versions = compared.section(sorted({one.variant for one in observed} | {one.variant for one in missing}))
    return compared.sentence, [
        *([versions] if versions.parts else []),
        over_time_section(observed, missing, series),
    ]


def _kept(note: Mapping[str, Any], source: ResultHistory) -> Section:
    """What was imported and what was refused: each reason once, with its count and first place."""
    places: dict[str, list[str]] = {}
    for one in note["refused"]:
        places.setdefault(str(one["reason"]), []).append(f"{one['file']}:{one['line']}")
    refused = [f"{len(found)} × {reason} (first: {found[0]})" for reason, found in places.items()]
    files: list[str | TextSpan] = [
        "Files of this import: ",
        TextSpan("import.json", link="import.json"),
        " (sources, every refused row), ",
        TextSpan("results.parquet", link="results.parquet"),
        ".",
    ]
    coverage = coverage_section([source])
    return dataclasses.replace(
        coverage,
        title="What was imported, and what was refused",
        brief=f"{counted(len(refused), 'reason')} of refusal" if refused else "",
        parts=[
            *coverage.parts,
            *([SectionPart(heading="Rows that were refused", lines=refused)] if refused else []),
            SectionPart(text=[files]),
        ],
        medium=Medium.PAGE,
    )


def _span(observed: Sequence[Figure]) -> str:
    dates = sorted({one.date for one in observed})
    if not dates:
        return "No figure has a date and a version"
    span = f"{dates[0]}" if len(dates) == 1 else f"{len(dates)} dates, {dates[0]} to {dates[-1]}"
    versions = sorted({one.variant for one in observed}, key=version_key)
    return f"{span}: {', '.join(versions)}"


def over_time_section(observed: Sequence[Figure], missing: Sequence[Gap], series: Sequence[Series]) -> Section:
    """A chart per workload, and a list of what is missing."""
    kinds = {
        "failed": "failed",
        "lost": "lost",
        "skipped": "skipped, or still to come",
        "unknown": "reason not recorded",
    }
    key = [part for kind, said in kinds.items() for part in (TextSpan("", f"swatch {kind}"), f" {said} ")]
    return Section(
        over_time(observed, missing, series) or [SectionPart(text=["No figure has a date and a version."])],
        title="Over time",
        anchor="over-time",
        text=[TextSpan(_INTRODUCTION, "quiet"), [TextSpan("The lanes below show what is missing: ", "quiet"), *key]],
        medium=Medium.PAGE,
    )


_INTRODUCTION = (
    "Higher is faster. Thin bars are 95 % intervals of each date’s figure. A triangle is a change point, the first "
    "date of a new level: it points up if the speed rose, and down if it fell. A ring marks an unusual day. Choose a "
    "version in the legend to see it alone."
)


def over_time(observed: Sequence[Figure], missing: Sequence[Gap], series: Sequence[Series]) -> list[SectionPart]:
    """Every workload and its parameters, in the order in which they come; sizes of the cluster are panels of it.

    Args:
        missing: missing figures, except those before the first or after the last date of a version.
    """
    groups: dict[Key, tuple[list[Figure], list[Gap], list[Series]]] = {}
    for one in observed:
        groups.setdefault(group_key(one.key), ([], [], []))[0].append(one)
    for gap in missing:
        if gap.kind != OUTSIDE:
            groups.setdefault(group_key(gap.key), ([], [], []))[1].append(gap)
    for run in series:
        groups[group_key(run.key)][2].append(run)
    names = labels.cell_names([dict(key) for key in groups])
    every: list[Figure | Gap] = [*observed, *missing]
    variants = sorted({one.variant for one in every})
    return [
        _shown(f"over-time-{number}", name, found, variants)
        for number, (name, found) in enumerate(zip(names, groups.values(), strict=True))
    ]


def _shown(
    anchor: str, name: str, found: tuple[list[Figure], list[Gap], list[Series]], variants: Sequence[str]
) -> SectionPart:
    observed, missing, series = found
    # Throughput only where it is one for all: two kinds of numbers in a picture would be compared.
    rated = bool(observed) and all(one.bytes and one.workers for one in observed)
    unit = "GB/s per worker" if rated else "seconds, axis reversed"
    every: list[Figure | Gap] = [*observed, *missing]
    dates = sorted({one.date for one in every})
    edges = Edges(dates)
    absent = spans(missing, dates)
    figures = [_figure(one, rated=rated) for one in sorted(observed, key=lambda one: (one.variant, one.date))]
    chart = charts.panels(
        f"{name}: {unit} over dates",
        names=_panel_names([panel_key(one.key, one.workers) for one in every]),
        figures=figures,
        missing=[_missing(one, edges) for one in absent],
        changes=_changes(series, figures),
        unusual=_unusual(series, figures),
        reverse=not rated,
        variants=variants,
        edges=edges,
    )
    rows = [
        (
            panel_words(panel_key(one.key, one.workers)),
            one.variant,
            _days(one.dates),
            f"{one.missing} of {one.of}",
            one.reason,
        )
        for one in absent
    ]
    caption = f"Dates on which figures of {name} are missing, with the reason"
    table = TextTable(_MISSING_COLUMNS, rows, caption, "sortable")
    fold = f"What is missing there, and why: {counted(len(rows), 'span')}"
    return SectionPart(
        anchor=anchor,
        heading=f"{name}, {unit}",
        charts=[Chart(anchor, f"over time {name}", lambda: chart)],
        parts=[SectionPart(table=table, fold=fold)] if rows else [],
    )


_MISSING_COLUMNS = (
    *(Heading("size", ColumnStyle.SHORT), Heading("version", ColumnStyle.SHORT), Heading("dates", ColumnStyle.SHORT)),
    *(Heading("missing", ColumnStyle.NUMBER), Heading("why", ColumnStyle.WHY)),
)


def _panel_names(found: Sequence[tuple[int, int]]) -> dict[str, str]:
    """A heading by panel, the smallest cluster first."""
    return {
        panel_words(place): panel_words(place) if place[0] else "workers not recorded" for place in sorted(set(found))
    }


def _figure(one: Figure, *, rated: bool) -> dict[str, Any]:
    value = math.exp(one.log_s)
    if rated and one.bytes and one.workers:
        value = one.bytes / value / one.workers / 1e9
    # A source's own standard error is of some thirty repetitions: the normal's quantile is near enough.
    wide = float(-special.stdtrit(one.count - 1, 0.025)) if one.count > 1 else 1.96
    half = None if one.se is None else wide * one.se
    return {
        "panel": panel_words(panel_key(one.key, one.workers)),
        "date": charts.moment(one.date),
        "day": str(one.date),
        "variant": one.variant,
        "value": labels.short(value),
        "text": labels.seconds(math.exp(one.log_s)),
        "low": None if half is None else labels.short(value * math.exp(-half)),
        "high": None if half is None else labels.short(value * math.exp(half)),
        "source": one.source,
    }


def _missing(one: Span, edges: Edges) -> dict[str, Any]:
    return {
        "panel": panel_words(panel_key(one.key, one.workers)),
        "variant": one.variant,
        "start": edges.before(one.dates[0]),
        "end": edges.after(one.dates[-1]),
        "kind": one.kind,
        "days": _days(one.dates),
        "missing": f"{one.missing} of {one.of}",
        "reason": one.reason,
    }


def _changes(series: Sequence[Series], figures: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row per change point, at the first figure of the new level."""
    values = {(row["panel"], row["variant"], row["day"]): row["value"] for row in figures}
    found: list[dict[str, Any]] = []
    for one in series:
        panel = panel_words(panel_key(one.key, one.figures[0].workers))
        for change in one.changes:
            row = {
                "panel": panel,
                "date": charts.moment(change.at),
                "variant": one.variant,
                "value": values[panel, one.variant, str(change.at)],
                "slower": change.effect > 0,
                "said": f"{change.at}: time {labels.percent(change.effect)}, p {change.p:.2g}",
                "why": _why(change),
            }
            found.append(row)
    return found


def _unusual(series: Sequence[Series], figures: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row per unusual day, at its figure."""
    values = {(row["panel"], row["variant"], row["day"]): row for row in figures}
    return [
        {name: values[place][name] for name in ("panel", "variant", "date", "value")}
        | {"said": f"{day}: time {labels.percent(off)} compared with the median of its stretch"}
        for one in series
        for day, off in one.unusual
        if (place := (panel_words(panel_key(one.key, one.figures[0].workers)), one.variant, str(day))) in values
    ]


def _why(change: Changed) -> str:
    return f"before: {change.before}; {why(change)}"


def _days(dates: Sequence[dt.date]) -> str:
    return str(dates[0]) if len(dates) == 1 else f"{dates[0]} to {dates[-1]}, {len(dates)} dates"
