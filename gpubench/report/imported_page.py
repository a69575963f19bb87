"""``report.html`` and ``report.md`` of an import."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.history.changes import Series
from gpubench.history.coverage import Gap
from gpubench.history.observed import Observed
from gpubench.report import charts, labels
from gpubench.report.chart_parts import Chart
from gpubench.report.frame import render
from gpubench.report.history import HistorySource
from gpubench.report.history_page import change_rows, source_tables, trend_charts, trend_context
from gpubench.report.markdown import cell, inline
from gpubench.report.tables import NUMBER, SHORT, WHY, PageTable, verdict_mark
from gpubench.stats.settings import VerdictSettings
from gpubench.stats.verdict import Verdict


@dataclasses.dataclass(frozen=True)
class ImportedInputs:
    """What the front end has read and computed; ``note`` is ``import.json``, ``cautions`` are lines for the reader."""

    note: Mapping[str, Any]
    verdicts: Sequence[Verdict]
    settings: VerdictSettings
    observed: Sequence[Observed]
    missing: Sequence[Gap]
    series: Sequence[Series]
    source: HistorySource
    cautions: Sequence[str]
    templates: Mapping[str, str]


def html(inputs: ImportedInputs) -> bytes:
    """The page: one file that asks no network for anything."""
    forest = _forest(inputs)
    context = trend_context(inputs.observed, inputs.missing, inputs.series)
    context |= {
        "note": inputs.note,
        "cautions": inputs.cautions,
        "forest": forest is not None,
        "verdicts": _table(inputs.verdicts),
        "sources": source_tables([inputs.source]),
        "refused": reasons(inputs.note["refused"]),
        "specs": ({"forest": forest} if forest else {}) | context["specs"],
    }
    return render("report/imported.html.j2", inputs.templates, context)


def drawings(inputs: ImportedInputs) -> list[Chart]:
    """Every chart: figures over dates per workload, and the effects where there are some."""
    forest = _forest(inputs)
    charts_ = trend_charts(inputs.observed, inputs.missing, inputs.series)
    return [*charts_, *([("forest", "effects", forest)] if forest else [])]


def _forest(inputs: ImportedInputs) -> dict[str, Any] | None:
    if not any(one.effect is not None for one in inputs.verdicts):
        return None
    names = [name.replace(" workers in all", " workers") for name in _names(inputs.verdicts)]  # room is short there
    return charts.forest(inputs.verdicts, names, inputs.settings.margin)


def markdown(inputs: ImportedInputs) -> str:
    """Verdicts, changes and cautions, for a pull request."""
    note = inputs.note
    head = [
        f"**Import {inline(str(note['name']))}** ({inline(str(note['format']))}): "
        f"{note['kept']} of {note['rows_in']} rows",
        "",
        *(f"> {inline(line)}\n" for line in inputs.cautions),
        "| workload | versions | effect [interval] | dates | verdict | why |",
        "|---|---|--:|--:|---|---|",
    ]
    told = [[*row[:4], f"{labels.MARKS.get(row[4], '')} {row[4]}", row[5]] for row in _rows(inputs.verdicts)]
    rows = ["| " + " | ".join(map(cell, row)) + " |" for row in told]
    changed = ["", "| series | first date of it | effect | p | why |", "|---|---|--:|--:|---|"]
    changes = ["| " + " | ".join(cell(str(word)) for word in row) + " |" for row in change_rows(inputs.series)]
    return "\n".join([*head, *rows, *changed, *changes]) + "\n"


def _rows(verdicts: Sequence[Verdict]) -> list[list[str]]:
    """Name, variants, effect, dates, verdict and reason of each comparison."""
    return [
        [
            name,
            labels.pair(one),
            f"{labels.effect(one)} {labels.interval(one)}".rstrip(),
            str(one.blocks),
            one.verdict,
            "; ".join([one.reason, *one.flags]),
        ]
        for one, name in zip(verdicts, _names(verdicts), strict=True)
    ]


_COLUMNS = (
    *(("Workload", ""), ("Versions", SHORT), ("Change [interval]", NUMBER)),
    *(("Dates", NUMBER), ("Verdict", ""), ("Why", WHY)),
)


def _table(verdicts: Sequence[Verdict]) -> PageTable:
    rows = [[*row[:4], verdict_mark(row[4]), row[5]] for row in _rows(verdicts)]
    return PageTable(f"Verdicts of all {len(rows)} comparisons", _COLUMNS, rows, "sortable cards")


def reasons(refused: Sequence[Mapping[str, Any]]) -> list[tuple[str, int, str]]:
    """Each reason once, how often, and where first."""
    places: dict[str, list[str]] = {}
    for one in refused:
        places.setdefault(str(one["reason"]), []).append(f"{one['file']}:{one['line']}")
    return [(reason, len(found), found[0]) for reason, found in places.items()]


def _names(verdicts: Sequence[Verdict]) -> list[str]:
    return labels.cell_names([one.key for one in verdicts])
