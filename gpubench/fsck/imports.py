"""An imported directory: its table against the note beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from gpubench.fsck.findings import Checked, Finding, edited, read_object, sha256, stray, torn
from gpubench.importers.directory import IMPORT, NOTE, TABLE
from gpubench.merge.samples import OPTIONAL
from gpubench.merge.table import COLUMNS
from gpubench.spec.plain import content_id

_FILES = {NOTE, TABLE, "report.html", "report.md"}
_AGAIN = "import the results again"
_HASH = re.compile(r"[0-9a-f]{64}")


def check_import(directory: Path) -> Checked:
    """Check every file; nothing is written."""
    note = read_object(directory / NOTE)
    found = list(_names(directory))
    if note is None or note.get("schema") != IMPORT:
        what = "cut off or not JSON" if note is None else f"it is {note.get('schema')}, not {IMPORT}"
        found.append(torn(directory / NOTE, what, _AGAIN))
        return Checked(directory, "import", tuple(sorted(found)), ())
    found += _table(directory / TABLE, note)
    try:
        found += _note(directory / NOTE, note)
    except (TypeError, ValueError, AttributeError):  # somebody else's idea of what stands there
        found.append(edited(directory / NOTE, "its fields aren't those of an import", _AGAIN))
    notes = ["the source files themselves aren't here: their hashes stand in import.json"]
    if "results_sha256" not in note:
        notes.append("unproven: an older gpubench wrote it, and no hash of its table")
    return Checked(directory, "import", tuple(sorted(found)), tuple(notes))


def _names(directory: Path) -> Iterator[Finding]:
    for entry in sorted(directory.iterdir()):
        if entry.name not in _FILES or not entry.is_file() or entry.is_symlink():
            yield stray(entry, "no import has such a file")


def _table(path: Path, note: dict[str, Any]) -> Iterator[Finding]:
    try:
        rows = pl.read_parquet(path)
        digest = sha256(path)
    except (OSError, pl.exceptions.PolarsError):
        yield torn(path, "it can't be read", _AGAIN)
        return
    if note.get("results_sha256", digest) != digest:
        yield edited(path, "it isn't what the import wrote: import.json has another hash", _AGAIN)
    elif rows.height != note.get("kept"):
        yield edited(path, f"{rows.height} rows, import.json says {note.get('kept')}", _AGAIN)
    missing = sorted(COLUMNS.keys() - set(rows.columns) - set(OPTIONAL))
    if missing:
        yield edited(path, f"it lacks column {', '.join(missing)}", _AGAIN)


def _note(path: Path, note: dict[str, Any]) -> Iterator[Finding]:
    sources = [one for one in note.get("sources", []) if isinstance(one, dict)]
    for one in sources:
        digest = one.get("sha256")
        if digest is not None and not (isinstance(digest, str) and _HASH.fullmatch(digest)):
            yield edited(path, f"the hash of source {one.get('file')} is none", _AGAIN)
    if note.get("rows_in") != sum(one.get("rows_in", 0) for one in sources):
        yield edited(path, "rows_in isn't the sum over the sources", _AGAIN)
    for name, document in dict(note.get("documents", {})).items():
        if content_id(document) != name:
            yield edited(path, f"document {name} isn't what its hash says", _AGAIN)
