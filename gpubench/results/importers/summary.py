"""What an import holds and what it left out, as lines for people."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from gpubench.model.text import counted
from gpubench.results.importers.directory import ImportedResults

_MOST_REASONS = 8


def import_lines(imported: ImportedResults) -> Iterator[str]:
    """What an import holds, and what its source never recorded."""
    note, table = imported.note, imported.table
    days, versions = table["date"].drop_nulls(), table["variant"].drop_nulls().unique().sort().to_list()
    span = (
        f"{counted(days.n_unique(), 'date')}, {days.min()!s} to {days.max()!s}" if len(days) else "no date is recorded"
    )
    workloads = ", ".join(sorted(table["workload"].unique()))
    rows, files = counted(note["rows_in"], "row"), counted(len(note["sources"]), "file")
    yield f"{note['kept']} of {rows} of {files} kept in {imported.directory}: {span}"
    yield f"versions: {', '.join(versions) or 'not recorded'}; workloads: {workloads}"
    if spellings := note.get("spellings"):
        readings = (f"{', '.join(map(repr, spelled))} as {read}" for read, spelled in spellings.items())
        yield f"spellings of versions, read as one: {'; '.join(readings)}"
    yield f"never recorded by {note['format']}: {', '.join(note['never_recorded'])}"
    if note["format"] == "table" and "block" in json.loads(table["extra"][0]):
        yield "an import pairs by date, so the column block is not used: gpubench compare FILE pairs by block"


def places_by_reason(refused: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """Where the rows that were refused stand, for each reason."""
    reasons: dict[str, list[str]] = {}
    for row in refused:
        place = f"{row['file']}:{row['line']}" if row["line"] else str(row["file"])
        reasons.setdefault(row["reason"], []).append(place)
    return reasons


def refused_lines(refused: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Each reason once, with how many rows it kept out, and the first of them."""
    reasons = places_by_reason(refused)
    for reason, places in list(reasons.items())[:_MOST_REASONS]:
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        yield f"refused {places[0]}{more}: {reason}"
    if len(reasons) > _MOST_REASONS:
        yield f"{len(reasons) - _MOST_REASONS} more reasons are in import.json"
