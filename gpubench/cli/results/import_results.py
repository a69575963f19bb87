"""``gpubench results import``: results of other tools."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gpubench.cli.say import say, warn
from gpubench.errors import UsageError
from gpubench.importers.base import day
from gpubench.importers.directory import Given, ImportedResults, import_files
from gpubench.importers.formats import FORMATS
from gpubench.model.text import counted

_MOST_REASONS = 8


def import_results(
    kind: str,
    paths: Sequence[Path],
    out: Path,
    *,
    variant: str | None,
    date: str | None,
    site: str | None,
    columns: str | None = None,
) -> None:
    """Import and print what was imported; raises UsageError for an unknown format, DataError if most isn't usable."""
    if kind not in FORMATS:
        raise UsageError(f"no format '{kind}'", then=f"there are {', '.join(FORMATS)}")
    given_day = None if date is None else day(date)
    if date is not None and given_day is None:
        raise UsageError(f"--date '{date}' is no date", then="write it like 20261107")
    found = import_files(kind, FORMATS[kind], paths, out, Given(variant, given_day, site, columns))
    for line in import_lines(found):
        say(line)
    for line in refused_lines(found.note["refused"]):
        warn(line)


def import_lines(found: ImportedResults) -> Iterator[str]:
    """What an import holds, and what its source never recorded."""
    note, table = found.note, found.table
    days, versions = table["date"].drop_nulls(), table["variant"].drop_nulls().unique().sort().to_list()
    span = (
        f"{counted(days.n_unique(), 'date')}, {days.min()!s} to {days.max()!s}" if len(days) else "no date is recorded"
    )
    workloads = ", ".join(sorted(table["workload"].unique()))
    rows, files = counted(note["rows_in"], "row"), counted(len(note["sources"]), "file")
    yield f"{note['kept']} of {rows} of {files} kept in {found.place}: {span}"
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
        yield f"{len(reasons) - _MOST_REASONS} more reasons are in import.json"
