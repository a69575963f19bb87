"""History and change points as lines and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from gpubench.history.changes import Changed, Series
from gpubench.history.coverage import CoverageLine
from gpubench.report import labels
from gpubench.stats.change_points import FEWEST

HISTORY, CHANGES = "gpubench/history/1", "gpubench/changes/1"
_MOST_FIELDS = 6


@dataclasses.dataclass(frozen=True)
class HistorySource:
    """A campaign or an import: one line about it, and what it has of what was planned."""

    kind: str
    name: str
    about: str
    dates: Sequence[str]
    lines: Sequence[CoverageLine]


def history_lines(sources: Sequence[HistorySource]) -> Iterator[str]:
    """For people: per source its cells and versions, and why something isn't there."""
    for source in sources:
        yield f"{source.kind} {source.name}: {source.about}"
        names = labels.cell_names([dict(line.key) for line in source.lines])
        width = max((len(line.variant) for line in source.lines), default=0)
        before = ""
        for line, name in zip(source.lines, names, strict=True):
            if name != before:
                yield f"  {name}"
                before = name
            yield f"    {line.variant.ljust(width)}  {line.there:3} of {line.of}  {line.marks}".rstrip()
        reasons: dict[str, int] = {}
        for line in source.lines:
            for why, count in line.reasons:
                reasons[why] = reasons.get(why, 0) + count
        if reasons:
            yield "  what isn't there, and why:"
        for why, count in sorted(reasons.items(), key=lambda item: -item[1]):
            yield f"    {count} x {why}"


def history_json(sources: Sequence[HistorySource]) -> dict[str, Any]:
    """The same, complete."""
    return {
        "schema": HISTORY,
        "sources": [
            {
                "kind": one.kind,
                "name": one.name,
                "dates": list(one.dates),
                "cells": [
                    {
                        **dict(line.key),
                        "variant": line.variant,
                        "there": line.there,
                        "of": line.of,
                        "dates": line.marks,
                        "missing": [{"reason": why, "count": count} for why, count in line.reasons],
                    }
                    for line in one.lines
                ],
            }
            for one in sources
        ],
    }


def changes_lines(series: Sequence[Series]) -> Iterator[str]:
    """For people: the changes by cell and version, then how many series were searched."""
    names = labels.cell_names([dict(one.key) for one in series])
    for one, name in zip(series, names, strict=True):
        if one.changes or one.unusual:
            yield f"{name}, {one.variant} ({len(one.observed)} dates)"
        for change in one.changes:
            figures = f"{labels.percent(change.effect)}, {_p(change.p)}"
            yield f"  {change.at} (before: {change.before}): {figures}; {why(change)}"
        if one.unusual:
            yield f"  unusual days (no test; beside the median of their stretch): {unusual_days(one)}"
    yield from searched_lines(series)


def unusual_days(one: Series) -> str:
    """``2022-09-12 +35.3 %, 2022-09-20 +35.6 %``."""
    return ", ".join(f"{day} {labels.percent(off)}" for day, off in one.unusual)


def searched_lines(series: Sequence[Series]) -> Iterator[str]:
    """How many series were searched for changes, and how many changed."""
    searched = [one for one in series if one.searched]
    changed = [one for one in searched if one.changes]
    yield f"{len(changed)} of {len(searched)} series of {FEWEST} dates or more changed; Holm over these, at 5 %"
    if len(searched) < len(series):
        yield f"{len(series) - len(searched)} series are shorter, and were not searched"


def why(change: Changed) -> str:
    """What else changed there, as far as it was recorded."""
    if change.unknown:
        said = "nothing was recorded that could say why"
    elif not change.fields:
        said = "of what was recorded nothing else changed"
    else:
        more = len(change.fields) - _MOST_FIELDS
        said = "changed there: " + ", ".join(change.fields[:_MOST_FIELDS]) + (f" and {more} more" if more > 0 else "")
    return said + (f"; {change.others} other series change there too" if change.others else "")


def changes_json(series: Sequence[Series]) -> dict[str, Any]:
    """The same, complete, with every figure of the series (seconds)."""
    return {
        "schema": CHANGES,
        "series": [
            {
                **dict(one.key),
                "variant": one.variant,
                "searched": one.searched,
                "figures": [{"date": str(day.date), "log_s": day.log_s, "source": day.source} for day in one.observed],
                "unusual": [{"date": str(day), "effect": off} for day, off in one.unusual],
                "changes": [
                    {
                        "at": str(change.at),
                        "before": str(change.before),
                        "effect": change.effect,
                        "p": change.p,
                        "fields": list(change.fields),
                        "others": change.others,
                    }
                    for change in one.changes
                ],
            }
            for one in series
        ],
    }


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p {value:.2g}"
