"""``gpubench results import``, and the verdicts of an import."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpubench import resources
from gpubench.cli.results.trend import tell
from gpubench.cli.say import say, warn
from gpubench.errors import DataError, UsageError
from gpubench.history.changes import find
from gpubench.importers import FORMATS
from gpubench.importers.base import day
from gpubench.importers.directory import Given, ImportedResults, import_files
from gpubench.importers.pairing import default_baseline, family, points, reworded
from gpubench.stats.settings import VerdictSettings
from gpubench.stats.verdict import Verdict, judge

if TYPE_CHECKING:
    from gpubench.report.imported_page import ImportedInputs

_MOST_REASONS = 8


def import_results(
    kind: str, paths: Sequence[Path], out: Path, *, variant: str | None, date: str | None, site: str | None
) -> None:
    """Import and say what came in; raises UsageError for an unknown format, DataError where nothing is usable."""
    if kind not in FORMATS:
        raise UsageError(f"no format '{kind}'", then=f"there are {', '.join(FORMATS)}")
    given_day = None if date is None else day(date)
    if date is not None and given_day is None:
        raise UsageError(f"--date '{date}' is no date", then="write it like 20261107")
    found = import_files(kind, FORMATS[kind], paths, out, Given(variant, given_day, site))
    for line in import_lines(found):
        say(line)
    for line in refused_lines(found.note["refused"]):
        warn(line)


def import_lines(found: ImportedResults) -> Iterator[str]:
    """What an import holds, and what its source never recorded."""
    note, table = found.note, found.table
    days, versions = table["date"].drop_nulls(), table["variant"].drop_nulls().unique().sort().to_list()
    span = f"{days.n_unique()} dates, {days.min()!s} to {days.max()!s}" if len(days) else "no date is recorded"
    workloads = ", ".join(sorted(table["workload"].unique()))
    yield f"{note['kept']} of {note['rows_in']} rows of {len(note['sources'])} files kept in {found.place}: {span}"
    yield f"versions: {', '.join(versions) or 'not recorded'}; workloads: {workloads}"
    if spellings := note.get("spellings"):
        said = (f"{', '.join(map(repr, words))} as {read}" for read, words in spellings.items())
        yield f"spellings of versions, read as one: {'; '.join(said)}"
    yield f"never recorded by {note['format']}: {', '.join(note['never_recorded'])}"


def refused_lines(refused: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Each reason once, with how many rows it kept out, and the first of them."""
    reasons: dict[str, list[str]] = {}
    for one in refused:
        place = f"{one['file']}:{one['line']}" if one["line"] else str(one["file"])
        reasons.setdefault(one["reason"], []).append(place)
    for reason, places in list(reasons.items())[:_MOST_REASONS]:
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        yield f"refused {places[0]}{more}: {reason}"
    if len(reasons) > _MOST_REASONS:
        yield f"{len(reasons) - _MOST_REASONS} more reasons stand in import.json"


def judged(found: ImportedResults, baseline: str | None, margin: float | None) -> tuple[list[Verdict], VerdictSettings]:
    """The whole family of an import against one version, dates in place of blocks."""
    settings = VerdictSettings() if margin is None else VerdictSettings(margin=margin)
    comparisons = family(found.table, baseline or default_baseline(points(found.table), found.table))
    if not comparisons:
        raise DataError(
            f"{found.place} has no cell with two versions, so there is nothing to compare",
            then="import the files of another version too, or name another --baseline",
        )
    return list(reworded(judge(comparisons, settings), comparisons)), settings


def cautions(found: ImportedResults) -> Iterator[str]:
    """What pairs by date can show and what they can't."""
    if found.table["date"].null_count() == found.table.height:
        yield "no blocks and no dates are recorded, so no verdict can stand; import with --date where you know the day"
        return
    yield (
        "imported: a 'block' is a date on which both versions were measured. That takes out what differs between days; "
        "it can't take out what goes with the version within a day"
    )
    if found.note["caution"]:
        yield str(found.note["caution"])
    if (found.table["reps"] != 1).any():
        yield "a date's figure is one mean of many repetitions: stragglers and noise within a run can't be seen"


def inputs_of(found: ImportedResults) -> ImportedInputs:
    """What the report of an import is made from."""
    from gpubench.report.imported_page import ImportedInputs

    told = tell(found)
    try:
        verdicts, settings = judged(found, None, None)
    except DataError as error:  # one version alone has a history too
        warn(str(error))
        verdicts, settings = [], VerdictSettings()
    return ImportedInputs(
        note=found.note,
        verdicts=verdicts,
        settings=settings,
        observed=told.figures,
        missing=told.missing,
        series=find(told.figures, settings.seed),
        source=told.source,
        cautions=list(cautions(found)),
        templates=resources.texts("templates"),
    )
