"""An imported directory: ``results.parquet`` in our columns, and ``import.json`` with the source of every row."""

import collections
import dataclasses
import datetime as dt
import fnmatch
import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Sequence, Set
from pathlib import Path
from typing import Any

import polars as pl

from gpubench import __version__
from gpubench.errors import DataError, UsageError
from gpubench.files import reading, write_atomically
from gpubench.model.text import counted
from gpubench.node.spec.plain import canonical, content_id, parse_json
from gpubench.node.spec.sample_columns import COLUMNS
from gpubench.results.importers.base import ROW_COLUMNS, Duplicate, Format, Refused, Row, impossible, plain_version
from gpubench.results.merge.samples import POLARS
from gpubench.results.merge.table import parquet
from gpubench.store.rundirs import is_temporary

IMPORT = "gpubench/import/1"
NOTE, TABLE = "import.json", "results.parquet"
PAGES = ("report.html", "report.md")


@dataclasses.dataclass(frozen=True)
class Given:
    """Facts from the user that the files lack; they never replace what a file says.

    ``columns`` says which column of a table holds what (``column_map``).
    """

    variant: str | None = None
    date: dt.date | None = None
    site: str | None = None
    columns: str | None = None


@dataclasses.dataclass(frozen=True)
class ImportedResults:
    """An imported directory, read back. ``note`` is ``import.json``."""

    directory: Path
    note: dict[str, Any]
    table: pl.DataFrame

    @property
    def name(self) -> str:
        """As it is called where campaigns are listed."""
        return str(self.note["name"])


def is_imported(directory: Path) -> bool:
    """Whether ``results import`` wrote it."""
    return (directory / NOTE).is_file()


def open_imported(directory: Path) -> ImportedResults:
    """Read it back; raises DataError for a damaged one, or one of another version."""
    path = directory / NOTE
    try:
        with reading(path):
            note = parse_json(path.read_bytes())
        path = directory / TABLE
        with reading(path):
            data = path.read_bytes()
        table = pl.read_parquet(io.BytesIO(data))
    except (ValueError, OSError, pl.exceptions.PolarsError):
        raise DataError(f"{path} is damaged, or gone", then="import the results again") from None
    if not isinstance(note, dict) or note.get("schema") != IMPORT:
        raise DataError(f"{directory / NOTE} is not {IMPORT}", then="use the gpubench that wrote it")
    if note.get("results_sha256") != hashlib.sha256(data).hexdigest():
        raise DataError(
            f"{path} isn't what {NOTE} speaks of: an import was cut off, or somebody edited it",
            then="import the results again",
        )
    return ImportedResults(directory, note, table)


def import_files(kind: str, form: Format, paths: Sequence[Path], out: Path, given: Given) -> ImportedResults:
    """Read all files of a format and write the directory; the same files give the same bytes.

    Args:
        kind: the format's name.
        form: how it is read.
        paths: files, or directories that are searched for the format's files; ``LABEL=PATH`` says which version it is.
        out: a directory that is new, empty, or an import of these files, which is replaced; so is its page.
        given: what the files don't say.

    Raises:
        UsageError: a path that isn't there, ``out`` holds something else or other files' results, a map of columns that
            the format can't take.
        DataError: no row could be used, or most rows of a file or of all files were refused. Nothing is written.
    """
    if given.columns is not None:
        if form.map_columns is None:
            raise UsageError(f"format {kind} has columns of its own", then="leave --columns out, or import a table")
        form = dataclasses.replace(form, read=form.map_columns(given.columns))
    if out.exists() and not is_imported(out) and not _begun(out):
        raise UsageError(f"{out} is not empty, and no import", then="name another directory")
    sources: list[dict[str, Any]] = []
    rows: list[Row] = []
    refused: list[Refused] = []
    seen: dict[str, str] = {}
    spellings: dict[str, set[str]] = {}
    for path, name, variant in _files(form, paths):
        file_rows, bad, source = _read(form, path, name, seen)
        for row in file_rows:
            # A label beats a column of a table, which may only be called as ours.
            own = dataclasses.replace(row, variant=None) if variant and form.map_columns else row
            used = _with(own, variant or given.variant, given.date)
            rows.append(used)
            labels = row.variant or variant or given.variant, used.variant
            for label, read in (labels, (row.ucx_version, used.ucx_version)):
                if label and read and label != read:
                    spellings.setdefault(read, set()).add(label)
        refused += bad
        sources.append(source)
    settled, twice = settle(rows)
    refused = sorted([*refused, *twice], key=lambda refusal: (refusal.file, refusal.line))
    if not settled:
        why = f"; the first: {refused[0]}" if refused else ""
        raise DataError(
            f"no usable row in {counted(len(sources), 'file')} of format {kind}{why}",
            then="see which files the format has",
        )
    _refuse_other_files(out, kind, {str(source["file"]) for source in sources})
    if not form.has_others:
        _check_most_are_used(kind, settled, refused)
    note = {
        "schema": IMPORT,
        "gpubench": __version__,
        "name": out.resolve().name,
        "format": kind,
        "given": {key: None if value is None else str(value) for key, value in dataclasses.asdict(given).items()},
        "rows_in": sum(source["rows_in"] for source in sources),
        "kept": len(settled),
        "refused": [dataclasses.asdict(refusal) for refusal in refused],
        "never_recorded": list(form.lacks),
        "caution": form.caution,
        "spellings": {read: sorted(texts) for read, texts in sorted(spellings.items())},
        "sources": sources,
        "documents": {content_id(document): document for row in settled for document in row.documents.values()},
    }
    table = frame(settled, given.site, str(note["name"]))
    data = parquet(table)
    note["results_sha256"] = hashlib.sha256(data).hexdigest()
    for page in PAGES:  # of what was there before
        (out / page).unlink(missing_ok=True)
    write_atomically(out / TABLE, data)
    write_atomically(out / NOTE, json.dumps(note, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
    return ImportedResults(out, note, table)


def _refuse_other_files(out: Path, kind: str, names: Set[str]) -> None:
    """Raise UsageError where ``out`` is an import of other files: their results would be lost."""
    try:
        there = parse_json((out / NOTE).read_bytes())
        held = (there["format"], {str(source["file"]) for source in there["sources"]})
    except (OSError, ValueError, TypeError, KeyError):  # none, or a damaged one, which an import mends
        return
    if held[0] != kind or not held[1] <= names:
        others = f" and {len(held[1]) - 1} more" if len(held[1]) > 1 else ""
        raise UsageError(
            f"{out} holds an import of {held[0]}, {min(held[1])}{others}, which this one would replace",
            then="name another directory, or give these files too",
        )


def _check_most_are_used(kind: str, settled: Sequence[Row], refused: Sequence[Refused]) -> None:
    """Raise DataError where most rows are refused, of all files or of one of several: the rest isn't representative."""
    lost = [refusal for refusal in refused if not isinstance(refusal, Duplicate)]
    good = collections.Counter(row.file for row in settled)
    good.update(refusal.file for refusal in refused if isinstance(refusal, Duplicate))
    bad = collections.Counter(refusal.file for refusal in lost)
    counts = [(name, good[name], bad[name]) for name in sorted(bad) if good[name] + bad[name] > 1]
    for name, usable, unusable in (*counts, ("", good.total(), bad.total())):
        if unusable > usable:
            first = next(refusal for refusal in lost if name in ("", refusal.file))
            raise DataError(
                f"{unusable} of {usable + unusable} rows of {name or 'all files'} are refused, so nothing is imported; "
                f"the first: {first}",
                then=f"if they are of format {kind}, import the good rows or files alone",
            )


def _begun(out: Path) -> bool:
    """Whether it holds only the files of an import that was killed before it wrote the note."""
    return out.is_dir() and all(entry.name == TABLE or is_temporary(entry.name) for entry in out.iterdir())


def _files(form: Format, paths: Sequence[Path]) -> Iterator[tuple[Path, str, str | None]]:
    """Each file once, with a name that no other has, and the version that it was said to be of.

    Raises:
        UsageError: a path that isn't there or holds no file of the format, or a file that is given as two versions.
    """
    variants: dict[Path, str | None] = {}
    names: set[str] = set()
    for given in paths:
        label, equals, rest = str(given).partition("=")
        path = Path(rest) if equals and not given.exists() else given
        if not path.exists():
            raise UsageError(f"{path} isn't there", then="name files, or directories that hold some")
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        if path.is_dir():
            inside = [file for file in inside if file.is_file() and _belongs(form, file.name)]
            if not inside:
                raise UsageError(f"{path} holds no {' or '.join(form.patterns)}", then="name the files themselves")
        variant = label if path is not given else None
        for file in inside:
            if file.resolve() not in variants:
                variants[file.resolve()] = variant
                name = str(file.relative_to(path)) if path.is_dir() else file.name
                name = str(file) if name in names else name
                names.add(name)
                yield file, name, variant
            elif variant not in (None, earlier := variants[file.resolve()]):
                raise UsageError(
                    f"{file} is given as {variant} and {f'as {earlier}' if earlier else 'without a version'}",
                    then="give each file once, with the version it is of",
                )


def _belongs(form: Format, name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in form.patterns) and not any(
        fnmatch.fnmatchcase(name, pattern) for pattern in form.leave
    )


def _read(form: Format, path: Path, name: str, seen: dict[str, str]) -> tuple[list[Row], list[Refused], dict[str, Any]]:
    try:
        with reading(path):
            data = path.read_bytes()
    except DataError as error:
        return [], [Refused(name, 0, str(error))], {"file": name, "sha256": None, "bytes": None, "rows_in": 0}
    digest = hashlib.sha256(data).hexdigest()
    source = {"file": name, "sha256": digest, "bytes": len(data), "rows_in": 0}
    if digest in seen and not form.by_place:
        return [], [Duplicate(name, 0, f"the same bytes as {seen[digest]}")], source
    seen[digest] = name
    entries = list(form.read(path, name))
    refused = [entry for entry in entries if isinstance(entry, Refused)]
    rows = [entry for entry in entries if isinstance(entry, Row)]
    refused += [Refused(row.file, row.line, why) for row in rows if (why := impossible(row))]
    rows = [row for row in rows if not impossible(row)]
    if not entries and not form.has_others:
        refused = [Refused(name, 0, "empty: no row in it")]
    return rows, refused, {**source, "rows_in": len(entries), "kept": len(rows), "refused": len(refused)}


def _with(row: Row, variant: str | None, date: dt.date | None) -> Row:
    extra = {**row.extra, "documents": {key: content_id(document) for key, document in row.documents.items()}}
    return dataclasses.replace(
        row,
        variant=plain_version(row.variant or variant or row.ucx_version),
        ucx_version=plain_version(row.ucx_version),
        date=row.date or date,
        extra=extra if row.documents else row.extra,
    )


IMPORTED_COLUMNS: dict[str, pl.DataType] = {column.name: POLARS[column.type] for column in COLUMNS if column.required}
"""All columns, less what only our own runs read. ``block``, ``job`` and ``order`` are always null."""


def settle(rows: Iterable[Row]) -> tuple[list[Row], list[Refused]]:
    """Unique rows. Copies are refused except the first; rows that contradict each other are all refused."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(row.identity, []).append(row)
    kept: list[Row] = []
    refused: list[Refused] = []
    for group in groups.values():
        first = group[0]
        if len({row.wall_s for row in group}) > 1:
            places = [f"{row.file}:{row.line}" for row in group]
            for row, own in zip(group, places, strict=True):
                others = ", ".join(place for place in places if place != own)
                refused.append(Refused(row.file, row.line, f"contradicts {others}; none of them is used"))
            continue
        kept.append(first)
        refused += [Duplicate(row.file, row.line, f"says the same as {first.file}:{first.line}") for row in group[1:]]
    return kept, refused


def frame(rows: Iterable[Row], site: str | None, name: str) -> pl.DataFrame:
    """The table, sorted by date, file and line.

    Args:
        rows: settled ones.
        site: what the user calls the machine.
        name: of the import; it is used like a campaign's name.
    """
    plain = [
        {
            **dict.fromkeys(IMPORTED_COLUMNS),
            **{name: getattr(row, name) for name in ROW_COLUMNS},
            "campaign": name,
            "site": site,
            "params": canonical(dict(row.params)).decode(),
            "run_status": "ok",
            "workload_status": "ok",
            "extra": json.dumps(dict(row.extra), ensure_ascii=False, sort_keys=True, default=str),
        }
        for row in rows
    ]
    table = pl.DataFrame(plain, schema=IMPORTED_COLUMNS)
    return table.sort("date", "file", "line", "rep", nulls_last=True)
