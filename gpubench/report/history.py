"""Results over time: where figures changed."""

from collections.abc import Iterator, Sequence
from typing import Any

from gpubench.model.cell_names import cell_names
from gpubench.model.text import natural_key
from gpubench.report import labels
from gpubench.report.sections import ColumnStyle, Heading, Medium, Section, SectionPart, TextSpan, TextTable
from gpubench.results.changes import Changed, Series
from gpubench.results.history import ResultHistory
from gpubench.stats.change_points import FEWEST

TREND = "gpubench/trend/1"
CONDITION = (
    "5 % is the chance of a false alarm if the dates are independent; it is higher if a figure resembles that of the "
    "date before, or if figures drift"
)
_MOST_FIELDS = 6


def changes_section(series: Sequence[Series]) -> Section:
    """The changes by date, then how many series were searched; numbers hold every figure (seconds)."""
    parts = []
    if rows := change_rows(series):
        columns = [
            Heading("series"),
            *(Heading(text, ColumnStyle.SHORT) for text in ("first date of it", "last date before")),
            *(Heading(text, ColumnStyle.NUMBER) for text in ("change of the time", "p")),
            Heading("what else changed there", ColumnStyle.WHY),
        ]
        caption = "Change points by series, with what else changed there"
        parts.append(SectionPart(table=TextTable(columns, rows, caption, "sortable cards")))
    if unusual := _unusual_lines(series):
        title = "unusual days (no test; compared with the median of their stretch)"
        parts.append(SectionPart(title, unusual, fold=title[0].upper() + title[1:]))
    searched = list(searched_lines(series))
    return Section(
        [*parts, SectionPart(lines=searched, medium=Medium.PRINTED)],
        title="Changes over dates",
        anchor="changes",
        text=[
            TextSpan(
                f"{'. '.join(searched)}. A change is not a verdict on a version: it is a difference between days.",
                "quiet",
            )
        ],
    )


def change_rows(series: Sequence[Series]) -> list[tuple[str, ...]]:
    """A row per change point, by date."""
    names = cell_names([dict(cell_series.key) for cell_series in series])
    rows = [
        (
            f"{name}, {cell_series.variant}",
            str(change.at),
            str(change.before),
            labels.percent(change.effect),
            "< 0.001" if change.p < 0.001 else f"{change.p:.2g}",
            why(change),
        )
        for cell_series, name in zip(series, names, strict=True)
        for change in cell_series.changes
    ]
    return sorted(rows, key=lambda row: (row[1], natural_key(row[0])))


def _unusual_lines(series: Sequence[Series]) -> list[str]:
    """Series with unusual days: ``merge, 1.12.1: 2022-09-12 +35.3 %, 2022-09-20 +35.6 %``."""
    names = cell_names([dict(cell_series.key) for cell_series in series])
    days = [", ".join(f"{day} {labels.percent(off)}" for day, off in cell_series.unusual) for cell_series in series]
    return [
        f"{name}, {cell_series.variant}: {text}"
        for cell_series, name, text in zip(series, names, days, strict=True)
        if text
    ]


def trend_section(sources: Sequence[ResultHistory], series: Sequence[Series]) -> Section:
    """A line for each source, and the changes."""
    changes = changes_section(series)
    plain = [{"kind": source.kind, "name": source.name, "about": source.about} for source in sources]
    data = {"schema": TREND, "sources": plain, "series": [_plain_series(cell_series) for cell_series in series]}
    return Section([SectionPart(lines=source_lines(sources)), *changes.parts], data)


def source_lines(sources: Sequence[ResultHistory]) -> list[str]:
    """``import draco: draco-csv, 28 dates, ...``."""
    return [f"{source.kind} {source.name}: {source.about}" for source in sources]


def searched_lines(series: Sequence[Series]) -> Iterator[str]:
    """How many series were searched for changes, how many changed, and on which condition the 5 % hold."""
    searched = [history for history in series if history.searched]
    changed = [history for history in searched if history.changes]
    yield f"{len(changed)} of {len(searched)} series of {FEWEST} dates or more changed; Holm over these, at 5 %"
    if searched:
        yield CONDITION
    if len(searched) < len(series):
        shorter = len(series) - len(searched)
        yield f"{shorter} series {'is shorter, and was' if shorter == 1 else 'are shorter, and were'} not searched"
    if left_out := sum(history.left_out for history in series):
        others = "1 other isn't" if left_out == 1 else f"{left_out} others aren't"
        yield f"of the figures that a series has of one date, the last that was read counts: {others} searched"


def why(change: Changed) -> str:
    """What else changed on that date, as far as it was recorded."""
    if change.unknown:
        reason = "nothing was recorded that could say why"
    elif not change.fields:
        reason = "nothing else that was recorded changed"
    else:
        more = len(change.fields) - _MOST_FIELDS
        reason = "changed there: " + ", ".join(change.fields[:_MOST_FIELDS]) + (f" and {more} more" if more > 0 else "")
    if not change.others:
        return reason
    return f"{reason}; {change.others} other series {'changes' if change.others == 1 else 'change'} there too"


def _plain_series(series: Series) -> dict[str, Any]:
    return {
        **dict(series.key),
        "variant": series.variant,
        "searched": series.searched,
        "figures": [{"date": str(day.date), "log_s": day.log_s, "source": day.source} for day in series.figures],
        "unusual": [{"date": str(day), "effect": off} for day, off in series.unusual],
        "changes": [
            {
                "at": str(change.at),
                "before": str(change.before),
                "effect": change.effect,
                "p": change.p,
                "fields": list(change.fields),
                "others": change.others,
            }
            for change in series.changes
        ],
    }
