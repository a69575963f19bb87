"""Results over time: what was measured when, and where figures changed."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from gpubench.history.changes import Changed, Series
from gpubench.history.coverage import CoverageLine, Gap
from gpubench.history.observed import Observed
from gpubench.importers.pairing import Key
from gpubench.report import labels
from gpubench.report.sections import Section, SectionPart, TextTable
from gpubench.stats.change_points import FEWEST

HISTORY, CHANGES, TREND = "gpubench/history/1", "gpubench/changes/1", "gpubench/trend/1"
_MOST_FIELDS = 6


@dataclasses.dataclass(frozen=True)
class HistorySource:
    """A campaign or an import: one line about it, and what it has of what was planned."""

    kind: str
    name: str
    about: str
    dates: Sequence[str]
    lines: Sequence[CoverageLine]


@dataclasses.dataclass(frozen=True)
class Told:
    """What a campaign or an import adds to a history."""

    source: HistorySource
    figures: Sequence[Observed]
    missing: Sequence[Gap]


def by_machine(told: Sequence[Told]) -> list[Told]:
    """The same, but figures of campaigns from several machines are in cells of their own: they are never pooled.

    A site is a machine, and so is each kind of processors where those of a site differ.
    """
    machines = {figure.machine for one in told for figure in one.figures if figure.machine}
    if len(machines) < 2:
        return list(told)
    sites = [site for site, _ in machines]

    def apart(key: Key, machine: tuple[str, ...]) -> Key:
        site, processors = machine
        return (*key, ("site", site), *([("processors", processors)] if sites.count(site) > 1 else []))

    made = []
    for one in told:
        if machine := next((figure.machine for figure in one.figures if figure.machine), None):
            figures = [dataclasses.replace(each, key=apart(each.key, each.machine)) for each in one.figures]
            missing = [dataclasses.replace(each, key=apart(each.key, machine)) for each in one.missing]
            made.append(dataclasses.replace(one, figures=figures, missing=missing))
        else:
            made.append(one)
    return made


def coverage_section(sources: Sequence[HistorySource]) -> Section:
    """What was measured when: per source its cells and versions, and why something isn't there."""
    return Section(
        [part for source in sources for part in _source_parts(source)],
        {"schema": HISTORY, "sources": [_plain_source(source) for source in sources]},
    )


def _source_parts(source: HistorySource) -> Iterator[SectionPart]:
    yield SectionPart(f"{source.kind} {source.name}: {source.about}")
    names = labels.cell_names([dict(line.key) for line in source.lines])
    width = max((len(line.variant) for line in source.lines), default=0)
    for name, found in itertools.groupby(zip(names, source.lines, strict=True), lambda pair: pair[0]):
        rows = [(one.variant.ljust(width), f"{one.there:3} of {one.of}", one.marks) for _, one in found]
        yield SectionPart(name, table=TextTable(("version", "there", "dates"), rows, bare=True), depth=1)
    reasons: Counter[str] = Counter()
    for line in source.lines:
        reasons.update(dict(line.reasons))
    if reasons:
        yield SectionPart(
            "what isn't there, and why:", [f"{count} x {why}" for why, count in reasons.most_common()], depth=1
        )


def _plain_source(one: HistorySource) -> dict[str, Any]:
    return {
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


def changes_section(series: Sequence[Series]) -> Section:
    """The changes by cell and version, then how many series were searched; numbers hold every figure (seconds)."""
    names = labels.cell_names([dict(one.key) for one in series])
    parts = [_series_part(one, name) for one, name in zip(series, names, strict=True) if one.changes or one.unusual]
    plain = [_plain_series(one) for one in series]
    return Section([*parts, SectionPart(lines=list(searched_lines(series)))], {"schema": CHANGES, "series": plain})


def trend_section(sources: Sequence[HistorySource], series: Sequence[Series]) -> Section:
    """Both."""
    both = coverage_section(sources), changes_section(series)
    data = {"schema": TREND, "sources": both[0].data["sources"], "series": both[1].data["series"]}
    return Section([*both[0].parts, *both[1].parts], data)


def _series_part(one: Series, name: str) -> SectionPart:
    lines = []
    for change in one.changes:
        figures = f"{labels.percent(change.effect)}, {_p(change.p)}"
        lines.append(f"{change.at} (before: {change.before}): {figures}; {why(change)}")
    if one.unusual:
        lines.append(f"unusual days (no test; beside the median of their stretch): {unusual_days(one)}")
    return SectionPart(f"{name}, {one.variant} ({len(one.observed)} dates)", lines)


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


def _plain_series(one: Series) -> dict[str, Any]:
    return {
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


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p {value:.2g}"
