"""Verdicts as a section, as the rich table of a wide terminal, and as ``verdicts.json``."""

import functools
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gpubench.model.cell_names import cell_names
from gpubench.model.quantities import format_bytes
from gpubench.model.text import counted
from gpubench.report import labels
from gpubench.report.charts.effects import forest
from gpubench.report.sections import (
    Chart,
    ColumnStyle,
    Heading,
    Medium,
    RichText,
    Section,
    SectionPart,
    TextSpan,
    TextTable,
)
from gpubench.results.merge.moved import cannot_change
from gpubench.results.verdicts_file import plain_verdicts
from gpubench.stats.flags import NO_TRAFFIC
from gpubench.stats.settings import VerdictSettings
from gpubench.stats.verdict import WIDE, Verdict

if TYPE_CHECKING:
    from rich.console import RenderableType

_STYLES = {
    "regression": "bold red",
    "broken": "bold red",
    "improvement": "green",
    "equivalent": "",
    "inconclusive": "yellow",
}


_NUMBERS = ("seconds", "effect [interval]", "blocks")
_MARGIN = re.compile(r"within ±[^ ]+ %")
_SHORT_NAME = 24
"""Letters of a workload's name that the page keeps in one line."""
_MOST_CELLS = 5
"""Comparisons that a note names."""
NARROWEST = 103
"""Columns of a terminal below which lines read better than a table."""


def wide_table(verdicts: Sequence[Verdict]) -> "RenderableType":
    """A table with one row per verdict, and below it why some of them are not a plain answer."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    columns, rows, notes = _printed(verdicts)
    table = Table(box=None, header_style="dim", pad_edge=False)
    for column in columns:
        number = column in _NUMBERS
        # How many more blocks may stand on a second line.
        least = len("inconclusive;") if column == "verdict" else None
        justify, overflow = ("right", "ellipsis") if number else ("left", "fold")
        table.add_column(column, justify=justify, overflow=overflow, no_wrap=number, min_width=least)  # type: ignore[arg-type]
    for *cells, last in rows:
        table.add_row(*map(Text, cells), Text(last, style=_STYLES[last.partition(";")[0]]))
    return Group(table, *(Text(f"  {note}", style="dim") for note in notes))


def verdict_lines(verdicts: Sequence[Verdict]) -> list[str]:
    """The same without colour or alignment, one line per verdict, cells parted by `` | ``."""
    _, rows, notes = _printed(verdicts)
    return [*map(" | ".join, rows), *(f"  {note}" for note in notes)]


def _printed(verdicts: Sequence[Verdict]) -> tuple[list[str], list[list[str]], Iterator[str]]:
    """Columns, rows and notes for a terminal."""
    verdicts = _slower_first(verdicts)
    sides = any(verdict.sides_s for verdict in verdicts)
    rows = [
        [
            name,
            labels.pair(verdict),
            *([" → ".join(map(labels.seconds, verdict.sides_s or ()))] if sides else []),
            f"{labels.effect(verdict)} {labels.interval(verdict)}".rstrip(),
            counted(verdict.blocks, "block"),
            "; ".join(filter(None, (verdict.verdict, verdict.leaning, labels.more(verdict)))),
        ]
        for name, verdict in zip(_names(verdicts), verdicts, strict=True)
    ]
    beside = ["seconds"] if sides else []
    columns = ["workload", "candidate vs baseline", *beside, "effect [interval]", "blocks", "verdict"]
    return columns, rows, _notes(verdicts)


def verdict_section(
    name: str,
    verdicts: Sequence[Verdict],
    settings: VerdictSettings,
    *,
    arrangement: str = "",
    notes: Sequence[str] = (),
    linked: bool = False,
) -> Section:
    """Verdicts with what a reader must know beside them; numbers are those of ``verdicts_json``.

    ``linked``: whether a row leads to its samples on the page.
    """
    ordered = _slower_first(verdicts)
    return Section(
        [
            *_forest_part(ordered, settings),
            SectionPart(table=verdict_table(ordered, linked=linked)),
            SectionPart(lines=list(_notes(ordered)), depth=1, style="beside", anchor="reasons"),
        ],
        {**plain_verdicts(name, verdicts, settings, arrangement), "notes": list(notes)},
        notes,
        title="Effects and verdicts",
        anchor="verdicts",
    )


def _slower_first(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Regressions and broken cells first, then improvements; all else stays in the order of the plan."""
    ranks = {"regression": 0, "broken": 0, "improvement": 1}
    return sorted(verdicts, key=lambda verdict: ranks.get(verdict.verdict, 2))


def verdict_mark(verdict: str) -> TextSpan:
    """A verdict in its colour, with its sign; sorted by what matters most."""
    order = list(labels.MARKS)
    sort = order.index(verdict) if verdict in order else len(order)
    return TextSpan(f"{labels.MARKS.get(verdict, '')} {verdict}".lstrip(), f"verdict {verdict}", sort=sort)


def anchor(verdict: Verdict) -> str:
    """Of the samples that a verdict rests on."""
    return "-".join(["samples", *(str(verdict.key.get(name)) for name in ("params_id", "nodes", "workers_per_node"))])


def _forest_part(verdicts: Sequence[Verdict], settings: VerdictSettings) -> list[SectionPart]:
    """The chart of all effects, where there is one."""
    if all(verdict.effect is None for verdict in verdicts):
        return []
    # There is little room for names.
    names = [name.replace(" workers in all", " workers") for name in _names(verdicts)]
    draw = functools.partial(forest, verdicts, names, settings.margin)
    narrow = functools.partial(draw, narrow=True)
    seen = {verdict.verdict for verdict in verdicts}
    key = [part for word in labels.MARKS if word in seen for part in (verdict_mark(word), " ")]
    margin = settings.margin.ends
    caption = [f"Dot and line: change and its interval. Band: {margin}; the axis is logarithmic beyond it. ", *key]
    return [SectionPart(charts=[Chart("forest", "effects", draw, caption, narrow)])]


def verdict_table(verdicts: Sequence[Verdict], *, linked: bool = False) -> TextTable:
    """A row per verdict, with the seconds of both sides where one of them has some.

    ``linked``: whether a row leads to its samples on the page.
    """
    against = labels.baselines(verdicts)
    whose = against[0] if len(against) == 1 else "baseline"
    sides, names = any(verdict.sides_s for verdict in verdicts), _names(verdicts)
    columns: list[Heading | str] = [
        Heading("workload", ColumnStyle.SHORT if max(map(len, names), default=0) <= _SHORT_NAME else ""),
        Heading("candidate vs baseline", medium=Medium.MARKDOWN),
        Heading(["Variant ", TextSpan(f"vs {whose}", "quiet")], f"{ColumnStyle.SHORT} alone", Medium.PAGE, "Variant"),
        Heading("seconds", ColumnStyle.NUMBER, Medium.MARKDOWN if sides else ""),
        Heading("Baseline", ColumnStyle.NUMBER, Medium.PAGE if sides else ""),
        Heading("Candidate", ColumnStyle.NUMBER, Medium.PAGE if sides else ""),
        Heading("effect [interval]", ColumnStyle.NUMBER, Medium.MARKDOWN),
        Heading("Change", ColumnStyle.NUMBER, Medium.PAGE),
        Heading("Interval, %", ColumnStyle.NUMBER, Medium.PAGE),
        Heading("blocks", ColumnStyle.NUMBER),
        "verdict",
        Heading("what else to know", ColumnStyle.WHY, label="To know"),
    ]
    rows = []
    for name, verdict in zip(names, verdicts, strict=True):
        link, pair = f"#{anchor(verdict)}" if linked else "", verdict.sides_s
        before, after = ("", "") if pair is None else map(labels.seconds, pair)
        effect, interval = labels.effect(verdict), labels.interval(verdict)
        row: list[RichText] = [
            TextSpan(name, link=link),
            labels.pair(verdict),
            verdict.candidate if len(against) == 1 else labels.pair(verdict),
            " → ".join((before, after)) if pair else "",
            TextSpan(before, sort="" if pair is None else pair[0]),
            TextSpan(after, sort="" if pair is None else pair[1]),
            f"{effect} {interval}".rstrip(),
            TextSpan(effect, link=link, sort="" if verdict.effect is None else verdict.effect),
            TextSpan(interval, sort="" if verdict.shown[0] is None else verdict.shown[0]),
            str(verdict.blocks),
            verdict_mark(verdict.verdict),
            _to_know(verdict),
        ]
        rows.append(row)
    return TextTable(
        columns, rows, f"Verdicts of all {len(rows)} comparisons", "sortable cards", anchor="verdict-table"
    )


def _to_know(verdict: Verdict) -> list[str | TextSpan]:
    """Facts that neither the other columns nor a line for several rows give."""
    decided = verdict.reason.partition("; ")[2] if verdict.verdict != "inconclusive" else ""
    shown = verdict.reason.partition(" after Holm")[0] if verdict.verdict in ("regression", "improvement") else ""
    beyond = "beyond the margin" if verdict.beyond_margin else ""
    text = "; ".join(word for word in (shown, beyond, decided, verdict.leaning, labels.more(verdict)) if word)
    flags = [part for flag in verdict.flags for part in (", ", TextSpan(flag, "flag"))][1:]
    return [f"{text}; " if text and flags else text, *flags]


def _names(verdicts: Sequence[Verdict]) -> list[str]:
    return cell_names([verdict.key for verdict in verdicts])


def _notes(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Notes below the table: each fact once, with the cells that it applies to."""
    names = [f"{name}, {labels.pair(verdict)}" for name, verdict in zip(_names(verdicts), verdicts, strict=True)]
    reasons: dict[str, list[str]] = {}
    flags: dict[str, list[str]] = {}
    for name, verdict in zip(names, verdicts, strict=True):
        if verdict.verdict in ("inconclusive", "broken") and not _is_wide(verdict):
            reasons.setdefault(verdict.reason, []).append(name)
        for flag in verdict.flags:
            flags.setdefault(flag, []).append(name)
    yield from _idle(verdicts)
    for reason, cells in reasons.items():
        yield f"{_whose(cells, names)}: {reason}"
    together: dict[tuple[str, ...], list[str]] = {}
    for flag, cells in flags.items():
        together.setdefault(tuple(cells), []).append(flag)
    for which, same in together.items():
        yield f"{_whose(which, names)}: flags: {', '.join(same)}"
    margin = next((match[0] for verdict in verdicts if (match := _MARGIN.search(verdict.reason))), "within the margin")
    if any(verdict.verdict == "equivalent" for verdict in verdicts):
        yield f"equivalent: {margin}"
    if any(_is_wide(verdict) for verdict in verdicts):
        yield f"inconclusive: the interval is too wide to say equal ({margin}) or different"
    adjusted = {verdict.verdict == "equivalent" for verdict in verdicts if verdict.shown != (verdict.low, verdict.high)}
    if adjusted:
        widened = ["widened for all planned comparisons together"] if False in adjusted else []
        narrowed = ["those of equivalent comparisons are at 90 %"] if True in adjusted else []
        yield f"intervals: {'; '.join([*widened, *narrowed])}"
    if any(verdict.one_job for verdict in verdicts):
        yield "several blocks share one job: the verdicts hold on these nodes"


def _idle(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Workloads that move next to nothing; their cells, where others of the workload do move something."""
    idle: dict[str, list[tuple[str, int]]] = {}
    moving = {str(verdict.key["workload"]) for verdict in verdicts if NO_TRAFFIC not in verdict.flags}
    for name, verdict in zip(_names(verdicts), verdicts, strict=True):
        if NO_TRAFFIC in verdict.flags:
            workload = str(verdict.key["workload"])
            idle.setdefault(workload, []).append((name if workload in moving else workload, verdict.moved or 0))
    for workload, cells in idle.items():
        names, moved = dict.fromkeys(name for name, _ in cells), {count for _, count in cells}
        most = f"{'at most ' if len(moved) > 1 else ''}{format_bytes(max(moved))}"
        yield f"{' · '.join(names)} moved {most} between workers a repetition: {cannot_change(workload)}"


def _whose(cells: Sequence[str], all_cells: Sequence[str]) -> str:
    others = [name for name in all_cells if name not in cells]
    if not others and len(cells) > 1:
        return "all comparisons"
    return f"all but {_several(others)}" if others and len(others) < len(cells) / 2 else _several(cells)


def _several(cells: Sequence[str]) -> str:
    """A line has room for a few; every row has its own on the page, and ``--json`` all."""
    if len(cells) <= _MOST_CELLS:
        return " · ".join(cells)
    return " · ".join([*cells[: _MOST_CELLS - 1], f"{len(cells) - _MOST_CELLS + 1} more"])


def _is_wide(verdict: Verdict) -> bool:
    """Inconclusive only because of noise: too common to be explained per row."""
    return verdict.verdict == "inconclusive" and verdict.reason.startswith(WIDE)
