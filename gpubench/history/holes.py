"""Planned × observed: what of a history isn't there, and why as far as anybody knows. Pure."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterable, Sequence

from gpubench.history.observed import Observed, key_of
from gpubench.importers.pairing import Key
from gpubench.merge.family import Cell
from gpubench.model.known_issue import KnownIssue
from gpubench.model.plan import Plan


@dataclasses.dataclass(frozen=True)
class Line:
    """A cell under a variant: of what was planned (``of``), how much is there, and the reasons of the rest with counts.

    ``marks`` has a sign per date of an import: ``#`` is there, ``.`` isn't; it is empty for a campaign.
    """

    key: Key
    variant: str
    there: int
    of: int
    reasons: tuple[tuple[str, int], ...]
    marks: str = ""


def of_import(observed: Sequence[Observed], known: Iterable[KnownIssue]) -> list[Line]:
    """Every cell of an import × every version, over all its dates.

    A source of results says nothing of what was planned. What is held against it here is every cell that it has at all
    under every version that it has at all, on every date; the reasons are what can be read from the other rows.
    """
    dates = sorted({one.date for one in observed})
    there = {(one.key, one.variant, one.date) for one in observed}
    of_version: dict[str, set[dt.date]] = {}
    for one in observed:
        of_version.setdefault(one.variant, set()).add(one.date)
    keys = list(dict.fromkeys(one.key for one in observed))
    rules = list(known)
    lines = []
    for key in keys:
        for variant in sorted(of_version):
            found = [date for date in dates if (key, variant, date) in there]
            missing = [date for date in dates if date not in found]
            counts: dict[str, int] = {}
            for date in missing:
                why = _why(variant, date, found, of_version[variant], rules)
                counts[why] = counts.get(why, 0) + 1
            marks = "".join("#" if date in found else "." for date in dates)
            lines.append(Line(key, variant, len(found), len(dates), tuple(counts.items()), marks))
    return lines


def _why(variant: str, date: dt.date, found: Sequence[dt.date], days: set[dt.date], rules: Sequence[KnownIssue]) -> str:
    if date < min(days):
        return f"before the first date of {variant} ({min(days)})"
    if date > max(days):
        return f"after the last date of {variant} ({max(days)})"
    if date not in days:
        return "nothing of this version on that date; no reason recorded"
    if not found and (rule := next((one for one in rules if one.when.ucx and one.when.ucx.holds(variant)), None)):
        return f"never measured in this cell; no reason recorded, perhaps {rule.why}"
    return "other cells of this version have that date, this one hasn't; no reason recorded"


def of_campaign(plan: Plan, table: Iterable[Cell]) -> list[Line]:
    """Every cell × variant of a campaign: the runs that are ok of those planned."""
    groups: dict[tuple[Key, str], list[Cell]] = {}
    for cell in table:
        groups.setdefault((key_of(plan, cell), cell.outcome.run.variant), []).append(cell)
    order = {one.label: number for number, one in enumerate(plan.variants)}
    lines = []
    for (key, variant), cells in sorted(groups.items(), key=lambda item: (str(item[0][0]), order[item[0][1]])):
        counts: dict[str, int] = {}
        for cell in cells:
            if cell.status != "ok":
                why = f"{cell.status}: {cell.reason}"
                counts[why] = counts.get(why, 0) + 1
        ok = sum(cell.status == "ok" for cell in cells)
        lines.append(Line(key, variant, ok, len(cells), tuple(counts.items())))
    return lines
