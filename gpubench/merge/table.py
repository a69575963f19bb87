"""The table of all samples: one row each, what is constant in a run joined to it. Order-free, idempotent.

Works on a copied campaign, and while runs are still being written; the text of the runs is never held all at once.
"""

import dataclasses
import io
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from polars.io.plugins import register_io_source

from gpubench.errors import DataError
from gpubench.files import reading
from gpubench.merge.cache import PLACE, ParsedSamples, joined, key_of
from gpubench.merge.samples import (
    AT,
    OPTIONAL,
    ParsedLines,
    RunFiles,
    WorkloadLines,
    parse_samples,
    whole_samples,
    workloads_of,
)
from gpubench.spec import RunRecord
from gpubench.spec.plain import canonical
from gpubench.spec.records import SAMPLES_FILE
from gpubench.stats.runs import Ints
from gpubench.store.rundirs import Records, RunDirectory, read_bytes, run_directories

BATCH = 500
"""Runs that are read and parsed at once: enough for speed, little beside the table."""


def read_batches(runs_dir: Path, records: Records, errors: list[DataError]) -> Iterator[list[RunFiles]]:
    """Every run that has a record, BATCH runs at once and sorted by ``run_key``.

    One without a record is unfinished or lost, and no business of the merge. ``records`` are those that have been read
    already; more come to it. ``errors`` get those that can't be read.
    """
    found: list[tuple[RunRecord, RunDirectory]] = []
    for directory in run_directories(runs_dir):
        try:
            # The record first: it is written last, so once it is there the samples are all there too.
            record = _record(directory, records)
        except DataError as error:
            errors.append(error)
        else:
            found.extend([(record, directory)] if record else [])
    found.sort(key=lambda one: run_key(one[0]))
    for start in range(0, len(found), BATCH):
        batch = []
        for record, directory in found[start : start + BATCH]:
            try:
                batch.append(_with_samples(record, directory))
            except DataError as error:
                errors.append(error)
        yield batch


def run_key(record: RunRecord) -> tuple[str, int, int, int, str, int]:
    """What the table's runs are sorted by, and what makes a run itself."""
    return (record.campaign, record.nodes, record.block, record.order, record.run, record.attempt)


def _record(directory: RunDirectory, records: Records) -> RunRecord | None:
    record = records.read(directory.path)
    if record and (record.run, record.attempt) != (directory.run, directory.attempt):
        raise DataError(f"{directory.path}: its record is that of run {record.run}, attempt {record.attempt}")
    return record


def _with_samples(record: RunRecord, directory: RunDirectory) -> RunFiles:
    source = f"{directory.path}/{SAMPLES_FILE}"
    try:
        with reading(source):
            samples = read_bytes(source)
    except FileNotFoundError:
        samples = b""
    if b"\r" in samples:  # every kind of line end, as text files are read
        samples = samples.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return RunFiles(record, samples, f"{directory.path.parent.name}/{directory.path.name}/{SAMPLES_FILE}")


RESULTS = "gpubench/results/1"

COLUMNS: dict[str, pl.DataType] = {
    "campaign": pl.String(),
    "site": pl.String(),
    "job": pl.String(),
    "block": pl.Int32(),
    "run": pl.String(),
    "attempt": pl.Int32(),
    "order": pl.Int32(),
    "variant": pl.String(),
    "image": pl.String(),
    "ucx_version": pl.String(),
    "transport": pl.String(),
    "protocol": pl.String(),
    "device": pl.String(),
    "nodes": pl.Int32(),
    "workers_per_node": pl.Int32(),
    "threads_per_worker": pl.Int32(),
    "workload": pl.String(),
    "backend": pl.String(),
    "params": pl.String(),
    "rep": pl.Int32(),
    "warmup": pl.Boolean(),
    "wall_s": pl.Float64(),
    "bytes": pl.Int64(),
    "answer": pl.String(),
    "started_at": pl.Datetime("us", "UTC"),
    "cpu_s": pl.Float64(),
    "energy_j": pl.Float64(),
    "throttle": pl.Int64(),
    "run_status": pl.String(),
    "workload_status": pl.String(),
}
"""Columns and types of ``results.parquet``.

``params`` is canonical JSON, ``transport`` comma-joined. The last two are ``ok failed skipped``: every sample of a
finished run is kept, and only those with ``ok`` in both may enter a verdict.
"""

# What makes a sample itself. Two samples that agree in all of this and differ elsewhere can't both be true.
_KEY = ["campaign", "nodes", "block", "order", "run", "attempt", "workload", "backend", "params", "warmup", "rep"]
_KEY_DESCENDING = [name == "warmup" for name in _KEY]  # warm-ups first, as they happened
_OF_LINE = ("rep", "warmup", "wall_s", "bytes", "answer", "started_at", *OPTIONAL)
_OF_WORKLOAD = [name for name in COLUMNS if name not in _OF_LINE]
"""Columns that vary with every sample, and those that are the same in all samples of a run's workload."""


@dataclasses.dataclass(frozen=True)
class Part:
    """Some rows of the table, narrow: what is the same in all samples of a run's workload stands once.

    ``about`` has a row per workload of a run; ``samples`` its place there (``at``) and what varies, in order.
    ``runs`` are the keys of its runs in the cache with their first row in ``about``, where the samples may be kept.
    """

    about: pl.DataFrame
    samples: pl.DataFrame
    runs: tuple[Sequence[bytes], Ints] | None = None

    def whole(self) -> pl.DataFrame:
        """With all columns."""
        wide = self.about[self.samples[AT]].hstack(self.samples.drop(AT))
        return wide.select(pl.col(name).cast(kind) for name, kind in COLUMNS.items())


@dataclasses.dataclass(frozen=True)
class Merged:
    """The table sorted by run and time, what is worth saying, and what could not be merged."""

    parts: tuple[Part, ...] = ()
    warnings: tuple[str, ...] = ()
    errors: tuple[DataError, ...] = ()

    @property
    def frame(self) -> pl.DataFrame:
        """All rows with all columns: some 300 bytes each."""
        return pl.concat([part.whole() for part in self.parts]) if self.parts else pl.DataFrame(schema=COLUMNS)

    @property
    def height(self) -> int:
        """Rows."""
        return sum(part.samples.height for part in self.parts)

    @property
    def keys(self) -> set[bytes]:
        """Of all runs that ``parsed`` has."""
        return {key for part in self.parts if part.runs for key in part.runs[0]}

    def parsed(self) -> ParsedSamples:
        """What the next merge needn't parse again."""
        return joined([_kept(part.samples, *part.runs) for part in self.parts if part.runs])


def _kept(samples: pl.DataFrame, keys: Sequence[bytes], firsts: Ints) -> ParsedSamples:
    at = samples[AT].to_numpy().astype(np.int64)
    runs = np.searchsorted(firsts, at, side="right") - 1
    place = pl.Series(PLACE, (at - firsts[runs]).astype(np.uint32))
    return ParsedSamples(keys, np.bincount(runs, minlength=len(keys)), samples.select(place, *_OF_LINE))


def merge_batches(batches: Iterable[Sequence[RunFiles]], known: ParsedSamples | None = None) -> Merged:
    """One row per sample of runs that come sorted by ``run_key``; no batch is held longer than it takes to parse it.

    ``known`` samples aren't parsed again; None: and nobody asks for ``parsed``.
    """
    keys: list[tuple[Any, ...]] = []
    parts: list[Part] = []
    warnings: set[str] = set()
    errors: dict[str, DataError] = {}
    twice = False
    for batch in batches:
        keys += [run_key(run.record) for run in batch]
        part = _all_at_once(batch, known)
        if part is None:
            frame, parsed = _line_by_line(batch)
            warnings.update(warning for one in parsed for warning in one.warnings)
            errors.update((str(error), error) for one in parsed for error in one.errors)
            twice = twice or bool(frame.select(_KEY).is_duplicated().any())
            part = _narrow(frame)
        else:
            twice = twice or _has_copies(part.samples)
        parts.append(part)
    if twice or len(set(keys)) < len(keys):
        frame, contradictions = _settle(Merged(tuple(parts)).frame)
        errors.update((str(error), error) for error in contradictions)
        parts = [_narrow(frame)]
    return Merged(tuple(parts), tuple(sorted(warnings)), tuple(errors[text] for text in sorted(errors)))


def _all_at_once(runs: Sequence[RunFiles], known: ParsedSamples | None) -> Part | None:
    workloads = workloads_of(runs)
    if workloads is None:
        return None
    keyed = None
    if known is None:
        samples = whole_samples(runs, workloads)
    else:
        ends = _first_rows(workloads, len(runs) + 1)
        of_each = [workloads[start:end] for start, end in itertools.pairwise(ends.tolist())]
        keys = [key_of(run, about) for run, about in zip(runs, of_each, strict=True)]
        samples = _samples(runs, keys, ends[:-1], workloads, known)
        # A run without workloads has no samples, and would share its first row with the next one.
        full = np.flatnonzero(np.diff(ends))
        keyed = [keys[at] for at in full], ends[full]
    if samples is None:
        return None
    of_run = [_about(run) for run in runs]
    rows = [
        (*of_run[one.run], one.workload, one.backend, one.params, runs[one.run].record.status, one.status)
        for one in workloads
    ]
    about = pl.DataFrame(rows, schema={name: COLUMNS[name] for name in _OF_WORKLOAD}, orient="row")
    kinds = {AT: pl.UInt32(), **{name: COLUMNS[name] for name in _OF_LINE}}
    return Part(about, samples.select(pl.col(name).cast(kind) for name, kind in kinds.items()), keyed)


def _first_rows(workloads: Sequence[WorkloadLines], runs: int) -> Ints:
    """The place of the first workload of every run."""
    return np.searchsorted(np.array([one.run for one in workloads], dtype=np.int64), np.arange(runs))


def _samples(
    runs: Sequence[RunFiles],
    keys: Sequence[bytes],
    firsts: Ints,
    workloads: Sequence[WorkloadLines],
    known: ParsedSamples,
) -> pl.DataFrame | None:
    """As ``whole_samples``, but what is known isn't parsed."""
    old, new = ([at for at, key in enumerate(keys) if (key in known.places) is there] for there in (True, False))
    if not old:
        return whole_samples(runs, workloads)
    counts = [known.places[keys[at]][1] for at in old]
    tables = [_moved(known.of(keys[at] for at in old), PLACE, np.repeat(firsts[old], counts))]
    if new:
        fresh = [runs[at] for at in new]
        of_fresh = workloads_of(fresh) or []
        parsed = whole_samples(fresh, of_fresh)
        if parsed is None:
            return None
        run = np.array([one.run for one in of_fresh], dtype=np.int64)
        gap = firsts[new] - _first_rows(of_fresh, len(fresh))
        tables.append(_moved(parsed, AT, gap[run][parsed[AT].to_numpy()]))
    table = pl.concat(tables)
    return table[np.argsort(table[AT].to_numpy(), kind="stable")]


def _moved(samples: pl.DataFrame, place: str, by: Ints) -> pl.DataFrame:
    """The samples with their workloads' places among those of the batch."""
    at = pl.Series(AT, samples[place].to_numpy().astype(np.int64) + by)
    return samples.select(at.cast(pl.UInt32), *(pl.col(name).cast(COLUMNS[name]) for name in _OF_LINE))


def _has_copies(samples: pl.DataFrame) -> bool:
    """Whether two samples of a workload, which stand beside each other then, have the same number."""
    same = pl.all_horizontal((pl.col(name) == pl.col(name).shift()).fill_null(False) for name in (AT, "warmup", "rep"))
    return bool(samples.select(same.any()).item())


def _narrow(frame: pl.DataFrame) -> Part:
    """The part that has these rows."""
    rows = frame.select(_OF_WORKLOAD)
    at = rows.select(pl.struct(pl.all()).rle_id().cast(pl.UInt32).alias(AT)).to_series()
    first = (at != at.shift()).fill_null(value=True)
    return Part(rows.filter(first), frame.select(at, *_OF_LINE))


def _line_by_line(runs: Sequence[RunFiles]) -> tuple[pl.DataFrame, list[ParsedLines]]:
    rows: list[tuple[Any, ...]] = []
    done = []
    for run in runs:
        workloads = {workload.params_id: workload for workload in run.record.workloads}
        about_workload = {
            name: (one.workload, one.backend, canonical(one.params).decode(), one.status)
            for name, one in workloads.items()
        }
        about_run = _about(run)
        done.append(parsed := parse_samples(run.text, run.source, workloads))
        for line, started_us in parsed.samples:
            *names, status = about_workload[line.params_id]
            timing = (line.rep, line.warmup, float(line.wall_s), line.bytes, line.answer, started_us)
            costs = (line.cpu_s, line.energy_j, line.throttle)
            rows.append((*about_run, *names, *timing, *costs, run.record.status, status))
    # started_at travels as microseconds: building a million aware datetime objects is what would be slow here.
    as_built = {name: pl.Int64() if name == "started_at" else kind for name, kind in COLUMNS.items()}
    started_at = pl.col("started_at").cast(COLUMNS["started_at"])
    frame = pl.DataFrame(rows, schema=as_built, orient="row").with_columns(started_at)
    return frame.sort(_KEY, descending=_KEY_DESCENDING, maintain_order=True), done


def parquet(table: pl.DataFrame | Merged) -> bytes:
    """The table as a Parquet file; the same table gives the same bytes."""
    buffer = io.BytesIO()
    if isinstance(table, pl.DataFrame):
        frames = table.lazy()
    else:
        parts = table.parts

        def wholes(columns: list[str] | None, *_: object) -> Iterator[pl.DataFrame]:
            return (part.whole().select(columns or list(COLUMNS)) for part in parts)

        frames = register_io_source(wholes, schema=COLUMNS)
    frames.sink_parquet(buffer, compression="zstd", metadata={"schema": RESULTS})
    return buffer.getvalue()


def _about(run: RunFiles) -> tuple[Any, ...]:
    """The columns that are the same in all samples of a run."""
    record = run.record
    return (
        *(record.campaign, record.site, record.job, record.block, record.run, record.attempt, record.order),
        *(record.variant, record.image, record.ucx_version, ",".join(record.transport), record.protocol, record.device),
        *(record.nodes, record.workers_per_node, record.threads_per_worker),
    )


def _settle(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[DataError]]:
    """Drop copies, sort, and take out samples of which two differing copies exist."""
    frame = frame.unique().sort(_KEY, descending=_KEY_DESCENDING)
    twice = frame.select(_KEY).is_duplicated()
    errors = [
        DataError(
            f"run {run}, attempt {attempt}: two copies of a sample of {workload} differ; neither is used",
            then="remove the copy that was changed",
        )
        for run, attempt, workload in frame.filter(twice).select("run", "attempt", "workload").unique().iter_rows()
    ]
    return frame.filter(~twice), errors


def merge_directory(runs_dir: Path, records: Records | None = None, known: ParsedSamples | None = None) -> Merged:
    """All samples of the finished runs below ``runs_dir``, with the errors of runs that can't be read.

    ``records`` are those that have been read already; more come to it. ``known`` as for ``merge_batches``.
    """
    unread: list[DataError] = []
    merged = merge_batches(read_batches(runs_dir, records or Records(), unread), known)
    return dataclasses.replace(merged, errors=(*unread, *merged.errors))
