"""The pages of an import, of two sides, and of results over time."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from gpubench import __version__
from gpubench.model.text import counted, natural_key
from gpubench.report.answer import VerdictAnswer, answer
from gpubench.report.history import changes_section, searched_lines, source_lines
from gpubench.report.over_time import over_time_section
from gpubench.report.page import Page
from gpubench.report.scaling import scaling_section
from gpubench.report.sections import Medium, Section, SectionPart, TextSpan, inline
from gpubench.results.changes import Series
from gpubench.results.curves import Curve
from gpubench.results.figures import Figure
from gpubench.results.history import ResultHistory
from gpubench.results.importers.summary import places_by_reason
from gpubench.results.results import Results

_MADE = f"Made by gpubench {__version__}."


def trend_page(sources: Sequence[ResultHistory], series: Sequence[Series]) -> Page:
    """Campaigns and imports in one, with changes."""
    figures = [figure for source in sources for figure in source.figures]
    span, (changed, *conditions) = _span(figures), searched_lines(series)
    return Page(
        title=span,
        over=f"{span} · {', '.join(source.name for source in sources)}",
        headline=[f"{changed}."],
        about=[*source_lines(sources), *(f"{condition}." for condition in conditions)],
        sections=[over_time_section(figures, series), changes_section(series)],
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
    verdicts = [dataclasses.replace(judged.section, title="Verdicts, by date", notes=())] if judged else []
    return Page(
        title=f"{note['name']} (imported)",
        over=f"{note['name']}: {kept} · imported results, format {note['format']}",
        headline=answer(judged.verdicts, judged.settings) if judged else [f"{note['name']}: {kept}"],
        opening=f"**Import {inline(str(note['name']))}** ({inline(str(note['format']))}): {kept}",
        notes=cautions,
        about=[f"Never recorded by the source: {', '.join(note['never_recorded'])}."],
        sections=[*verdicts, over_time_section(source.figures, series), changes_section(series), _kept(note, source)],
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


def _kept(note: Mapping[str, Any], source: ResultHistory) -> Section:
    """What was imported and what was refused: each reason once, with its count and first place."""
    reasons = places_by_reason(note["refused"])
    refused = [f"{len(places)} × {reason} (first: {places[0]})" for reason, places in reasons.items()]
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
    versions = sorted({figure.variant for figure in observed}, key=natural_key)
    return f"{span}: {', '.join(versions)}"
