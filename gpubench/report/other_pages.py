"""The pages of an import, of two sides, and of results over time."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from gpubench import __version__
from gpubench.history.changes import Series
from gpubench.history.coverage import Gap
from gpubench.history.observed import Observed
from gpubench.model.text import counted
from gpubench.report.history import HistorySource, changes_section, coverage_section, searched_lines
from gpubench.report.over_time import over_time, over_time_section
from gpubench.report.page import Page
from gpubench.report.plots import effect_plot
from gpubench.report.sections import PAGE, Section, SectionPart, Styled, inline
from gpubench.report.sides import SideBySide, counts, sides_section
from gpubench.report.verdicts import forest_part
from gpubench.report.versions import compare_versions, version_key

_MADE = f"Made by gpubench {__version__}."


def trend_page(
    sources: Sequence[HistorySource], observed: Sequence[Observed], missing: Sequence[Gap], series: Sequence[Series]
) -> Page:
    """Campaigns and imports in one, with changes and what is missing."""
    span, (largest, sections) = _span(observed), _over_dates(observed, missing, series)
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
    verdicts: Section | None,
    *,
    observed: Sequence[Observed],
    missing: Sequence[Gap],
    series: Sequence[Series],
    source: HistorySource,
    cautions: Sequence[str],
) -> Page:
    """Of another tool's results; ``note`` is ``import.json``, ``verdicts`` are by date."""
    kept = f"{note['kept']} of {note['rows_in']} rows"
    largest, sections = _over_dates(observed, missing, series)
    by_date = [] if verdicts is None else [dataclasses.replace(verdicts, title="Verdicts, by date", notes=())]
    return Page(
        title=f"{note['name']} (imported)",
        over=f"{note['name']}: {kept} · imported results, format {note['format']}",
        headline=[largest or f"{note['name']}: {kept}"],
        opening=f"**Import {inline(str(note['name']))}** ({inline(str(note['format']))}): {kept}",
        notes=cautions,
        about=[f"Never recorded by the source: {', '.join(note['never_recorded'])}."],
        sections=[*sections, *by_date, changes_section(series), _kept(note, source)],
        made=f"Imported by gpubench {note['gpubench']}.",
        why_no_chart=f"no figure of {note['name']} has a date",
    )


def sides_page(shown: SideBySide) -> Page:
    """The second campaign or import against the first."""
    first, second = shown.first, shown.second
    effects = Section(forest_part(shown.verdicts, shown.settings), title="Effects", anchor="effects")
    return Page(
        title=f"{second.name} against {first.name}",
        over="gpubench report · two sides",
        headline=[f"{counts(shown)}."],
        about=[f"A: {first.name}, {first.variant}. B: {second.name}, {second.variant}."],
        notes=[*shown.notes],
        sections=[sides_section(shown), *([effects] if effects.parts else [])],
        made=_MADE,
        plots=lambda width: [effect_plot(shown.verdicts, shown.settings.margin, width)],
    )


def _over_dates(
    observed: Sequence[Observed], missing: Sequence[Gap], series: Sequence[Series]
) -> tuple[str, list[Section]]:
    """The largest differences between versions in a sentence, and what every page over dates shows."""
    compared = compare_versions(observed)
    versions = compared.section(sorted({one.variant for one in observed} | {one.variant for one in missing}))
    return compared.sentence, [
        *([versions] if versions.parts else []),
        over_time_section(over_time(observed, missing, series)),
    ]


def _kept(note: Mapping[str, Any], source: HistorySource) -> Section:
    """What was imported and what was refused: each reason once, with its count and first place."""
    places: dict[str, list[str]] = {}
    for one in note["refused"]:
        places.setdefault(str(one["reason"]), []).append(f"{one['file']}:{one['line']}")
    refused = [f"{len(found)} × {reason} (first: {found[0]})" for reason, found in places.items()]
    files: list[str | Styled] = [
        "Files of this import: ",
        Styled("import.json", link="import.json"),
        " (sources, every refused row), ",
        Styled("results.parquet", link="results.parquet"),
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
        on=PAGE,
    )


def _span(observed: Sequence[Observed]) -> str:
    dates = sorted({one.date for one in observed})
    if not dates:
        return "No figure has a date and a version"
    span = f"{dates[0]}" if len(dates) == 1 else f"{len(dates)} dates, {dates[0]} to {dates[-1]}"
    versions = sorted({one.variant for one in observed}, key=version_key)
    return f"{span}: {', '.join(versions)}"
