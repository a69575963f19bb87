"""Planned × observed: what of a history isn't there, and why as far as anybody knows. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from gpubench.history.missing_intervals import Gap
from gpubench.history.observed import Observed, key_of
from gpubench.importers.pairing import Key
from gpubench.merge.family import Cell
from gpubench.model.plan import Plan


@dataclasses.dataclass(frozen=True)
class CoverageLine:
    """A cell under a variant: of what was planned (``of``), how much is there, and the reasons of the rest with counts.

    ``marks`` has a sign per date of an import: ``#`` is there, ``.`` isn't; it is empty for a campaign.
    """

    key: Key
    variant: str
    there: int
    of: int
    reasons: tuple[tuple[str, int], ...]
    marks: str = ""


def of_import(observed: Sequence[Observed], gaps: Iterable[Gap]) -> list[CoverageLine]:
    """Every cell of an import × every version, over all its dates.

    A source of results says nothing of what was planned. What is held against it here is every cell that it has at all
    under every version that it has at all, on every date; the reasons are what can be read from the other rows.
    """
    dates = sorted({one.date for one in observed})
    variants = sorted({one.variant for one in observed})
    missing = _by_cell(gaps)
    lines = []
    for key in dict.fromkeys(one.key for one in observed):
        for variant in variants:
            found = missing.get((key, variant), [])
            out = {gap.date for gap in found}
            marks = "".join("." if date in out else "#" for date in dates)
            lines.append(CoverageLine(key, variant, len(dates) - len(out), len(dates), _reasons(found), marks))
    return lines


def of_campaign(plan: Plan, table: Iterable[Cell], gaps: Iterable[Gap]) -> list[CoverageLine]:
    """Every cell × variant of a campaign: the runs that are ok of those planned."""
    planned: dict[tuple[Key, str], int] = {}
    for cell in table:
        place = key_of(plan, cell), cell.outcome.run.variant
        planned[place] = planned.get(place, 0) + 1
    order = {one.label: number for number, one in enumerate(plan.variants)}
    missing = _by_cell(gaps)
    lines = []
    for (key, variant), of in sorted(planned.items(), key=lambda item: (str(item[0][0]), order[item[0][1]])):
        found = missing.get((key, variant), [])
        lines.append(CoverageLine(key, variant, of - sum(gap.missing for gap in found), of, _reasons(found)))
    return lines


def _by_cell(gaps: Iterable[Gap]) -> dict[tuple[Key, str], list[Gap]]:
    found: dict[tuple[Key, str], list[Gap]] = {}
    for gap in gaps:
        found.setdefault((gap.key, gap.variant), []).append(gap)
    return found


def _reasons(gaps: Iterable[Gap]) -> tuple[tuple[str, int], ...]:
    counts: dict[str, int] = {}
    for gap in gaps:
        counts[gap.reason] = counts.get(gap.reason, 0) + gap.missing
    return tuple(counts.items())
