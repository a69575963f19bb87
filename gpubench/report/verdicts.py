"""Verdicts as a section, as the rich table of a wide terminal, and as ``verdicts.json``."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gpubench.report import labels
from gpubench.report.sections import Section, SectionPart, TextTable, text_lines
from gpubench.stats.settings import VerdictSettings
from gpubench.stats.verdict import WIDE, Verdict

VERDICTS = "gpubench/verdicts/1"
_STYLES = {
    "regression": "bold red",
    "broken": "bold red",
    "improvement": "green",
    "equivalent": "",
    "inconclusive": "yellow",
}


_MARGIN = re.compile(r"within ±[^ ]+ %")
NARROWEST = 80
"""Columns of a terminal below which lines read better than a table."""
OF_SECONDS = 23
"""Columns more that a table with seconds takes."""
OF_SECONDS = 23
"""Columns more that a table with seconds takes."""


def verdict_table(verdicts: Sequence[Verdict], seconds: Sequence[tuple[float, float] | None] = ()) -> RenderableType:
    """A table with one row per verdict, and below it why some of them are not a plain answer.

    ``seconds`` are baseline and candidate of every verdict, None where no block has both; none at all: not shown.
    """
    table = Table(box=None, header_style="dim", pad_edge=False)
    for heading in ("workload", "candidate vs baseline"):
        table.add_column(heading, overflow="fold")
    if seconds:
        table.add_column("seconds", justify="right", no_wrap=True)
    table.add_column("effect [interval]", justify="right", no_wrap=True)
    table.add_column("blocks", justify="right", no_wrap=True)
    table.add_column("verdict", min_width=len("inconclusive;"))  # how many more blocks may stand on a second line
    for verdict, (name, pair, *figures, word) in zip(verdicts, _rows(verdicts, seconds), strict=True):
        style = _STYLES.get(verdict.verdict, "")
        table.add_row(Text(name), Text(pair), *figures, Text(word, style=style))
    return Group(table, *(Text(f"  {line}", style="dim") for line in _notes(verdicts)))


def verdict_lines(verdicts: Sequence[Verdict], seconds: Sequence[tuple[float, float] | None] = ()) -> list[str]:
    """The same without colour or alignment, one line per verdict, cells parted by `` | ``."""
    return list(text_lines(Section(_parts(verdicts, seconds), {})))


def verdict_section(
    name: str,
    verdicts: Sequence[Verdict],
    settings: VerdictSettings,
    arrangement: str = "",
    notes: Sequence[str] = (),
) -> Section:
    """Verdicts with what a reader must know beside them; numbers are those of ``verdicts_json``."""
    return Section(_parts(verdicts), _plain(name, verdicts, settings, arrangement), notes)


def verdicts_json(name: str, verdicts: Sequence[Verdict], settings: VerdictSettings, arrangement: str = "") -> bytes:
    """``verdicts.json``: all numbers of every verdict (effects are ratios minus one), and the settings that made them.

    The parts of a cell's key stand beside its figures, as columns of one flat row; so does how blocks ran their
    variants, where that is known.
    """
    document = _plain(name, verdicts, settings, arrangement)
    return (json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _plain(name: str, verdicts: Sequence[Verdict], settings: VerdictSettings, arrangement: str) -> dict[str, Any]:
    cells = []
    for one in verdicts:
        figures = dataclasses.asdict(one)
        cells.append({**figures.pop("key"), **figures, **({"arrangement": arrangement} if arrangement else {})})
    return {"schema": VERDICTS, "campaign": name, "settings": dataclasses.asdict(settings), "cells": cells}


def _parts(verdicts: Sequence[Verdict], seconds: Sequence[tuple[float, float] | None] = ()) -> list[SectionPart]:
    figures = (*(["seconds"] if seconds else []), "effect [interval]", "blocks", "verdict")
    headings = ("workload", "candidate vs baseline", *figures)
    table = TextTable(headings, list(_rows(verdicts, seconds)), bare=True, joined=True)
    return [SectionPart(table=table), SectionPart(lines=list(_notes(verdicts)), depth=1)]


def _rows(verdicts: Sequence[Verdict], seconds: Sequence[tuple[float, float] | None]) -> Iterator[tuple[str, ...]]:
    names = labels.cell_names([one.key for one in verdicts])
    for name, verdict, sides in zip(names, verdicts, seconds or [None] * len(verdicts), strict=True):
        absolute = " → ".join(map(labels.seconds, sides)) if sides else ""
        effect = f"{labels.effect(verdict)} {labels.interval(verdict)}".rstrip()
        word = "; ".join(word for word in (verdict.verdict, verdict.leaning, labels.more(verdict)) if word)
        figures = (absolute, effect) if seconds else (effect,)
        yield name, labels.pair(verdict), *figures, labels.blocks(verdict), word


def _notes(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """What a reader must know beside the table: each thing once, with the cells that it is said of."""
    names = [
        f"{name}, {labels.pair(verdict)}"
        for name, verdict in zip(labels.cell_names([one.key for one in verdicts]), verdicts, strict=True)
    ]
    reasons: dict[str, list[str]] = {}
    flags: dict[str, list[str]] = {}
    for name, verdict in zip(names, verdicts, strict=True):
        if verdict.verdict in ("inconclusive", "broken") and not _is_wide(verdict):
            reasons.setdefault(verdict.reason, []).append(name)
        for flag in verdict.flags:
            flags.setdefault(flag, []).append(name)
    for reason, cells in reasons.items():
        yield f"{_whose(cells, names)}: {reason}"
    together: dict[tuple[str, ...], list[str]] = {}
    for flag, cells in flags.items():
        together.setdefault(tuple(cells), []).append(flag)
    for which, same in together.items():
        yield f"{_whose(which, names)}: flags: {', '.join(same)}"
    margin = next((found[0] for one in verdicts if (found := _MARGIN.search(one.reason))), "within the margin")
    if any(one.verdict == "equivalent" for one in verdicts):
        yield f"equivalent: {margin}"
    if any(_is_wide(one) for one in verdicts):
        yield f"inconclusive: neither {margin} nor different after Holm over the planned family"
    if any(one.shown != (one.low, one.high) for one in verdicts):
        yield "intervals: at the level of Holm's step; of equivalent comparisons: 95 %"
    if any(one.one_job for one in verdicts):
        yield "several blocks share one job: the verdicts hold on these nodes"


def _whose(cells: Sequence[str], all_cells: Sequence[str]) -> str:
    others = [name for name in all_cells if name not in cells]
    if not others and len(cells) > 1:
        return "all comparisons"
    return f"all but {' · '.join(others)}" if others and len(others) < len(cells) / 2 else " · ".join(cells)


def _is_wide(verdict: Verdict) -> bool:
    """Inconclusive for no other reason than noise: too common to be explained per row."""
    return verdict.verdict == "inconclusive" and verdict.reason.startswith(WIDE)
