"""What an earlier merge has parsed, so that the next one parses only what is new: samples, and environments of runs.

An entry is found by the SHA-256 of what it was parsed from: the text of a ``samples.jsonl`` and the workloads of its
run's record, or the bytes of a ``provenance.json``. So nothing can be out of date: every file is still read and hashed,
and what was edited, replaced or added has another hash. The file may be deleted at any time. One that is damaged, cut
off or of another gpubench is no cache.
"""

import dataclasses
import functools
import hashlib
import io
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from gpubench import __version__
from gpubench.errors import MissingToolError
from gpubench.files import write_atomically
from gpubench.merge.environment import Comparable
from gpubench.merge.samples import RunFiles, WorkloadLines
from gpubench.spec.plain import parse_json
from gpubench.spec.records import ANSWERS
from gpubench.stats.runs import Ints

CACHE = "gpubench/samples-cache/3"
LEAST = 10_000
"""Samples from which a file is written: fewer are parsed in a tenth of a second."""
PLACE = "place"
"""Column: the place of a sample's workload among those of its run, in the table's order."""
_INDEX = {"key": pl.Binary(), "rows": pl.UInt32()}
_ROWS = {
    PLACE: pl.UInt32(),
    "rep": pl.Int32(),
    "warmup": pl.Boolean(),
    "wall_s": pl.Float64(),
    "bytes": pl.Int64(),
    "answer": pl.Enum(ANSWERS),
    "started_at": pl.Datetime("us", "UTC"),
    "cpu_s": pl.Float64(),
    "energy_j": pl.Float64(),
    "throttle": pl.Int64(),
}


def key_of(run: RunFiles, workloads: Iterable[WorkloadLines]) -> bytes:
    """What the parsed samples of ``run`` are found by; ``workloads`` are those of its record."""
    about = [(one.params_id, one.workload, one.backend, one.params) for one in workloads]
    found = hashlib.sha256(run.samples)
    found.update(b"\0" + repr(about).encode("utf-8", "backslashreplace"))
    return found.digest()


@dataclasses.dataclass(frozen=True)
class ParsedSamples:
    """Parsed samples of runs, in the table's order within each.

    ``keys`` have ``counts`` rows each, one after the other in ``rows``. ``environments`` are what is comparable in
    runs' ``provenance.json``, by the SHA-256 of that file; equal ones are one object.
    """

    keys: Sequence[bytes]
    counts: Ints
    rows: pl.DataFrame
    environments: Mapping[str, Comparable] = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def places(self) -> Mapping[bytes, tuple[int, int]]:
        """First row and rows of every key."""
        ends = np.cumsum(self.counts)
        return dict(zip(self.keys, zip((ends - self.counts).tolist(), self.counts.tolist(), strict=True), strict=True))

    def of(self, keys: Iterable[bytes]) -> pl.DataFrame:
        """The rows of those keys, one after the other."""
        spans = [self.places[key] for key in keys]
        starts = np.array([start for start, _ in spans], dtype=np.int64)
        counts = np.array([count for _, count in spans], dtype=np.int64)
        before = np.repeat(starts - np.cumsum(counts) + counts, counts)
        return self.rows[before + np.arange(len(before))]


NOTHING = ParsedSamples((), np.zeros(0, dtype=np.int64), pl.DataFrame(schema=_ROWS))


def joined(several: Sequence[ParsedSamples]) -> ParsedSamples:
    """All of them as one."""
    if not several:
        return NOTHING
    rows = pl.concat([one.rows.select(pl.col(name).cast(kind) for name, kind in _ROWS.items()) for one in several])
    keys = [key for one in several for key in one.keys]
    return ParsedSamples(keys, np.concatenate([one.counts for one in several]), rows)


def read_cache(path: Path) -> ParsedSamples:
    """What stands in ``path``; nothing where there is no file, or none that this gpubench wrote whole."""
    try:
        with open(path, "rb", buffering=0) as handle:  # noqa: PTH123 - one read, without a copy
            data = handle.readall()
        start = data.index(b"\n") + 1
        head = parse_json(data[:start])
        sizes = head["sizes"]
        if head != _head(memoryview(data)[start:], sizes):
            return NOTHING
        ends = [start, *(start + end for end in itertools.accumulate(sizes))]
        parts = [data[begin:end] for begin, end in itertools.pairwise(ends)]
        index, rows = (pl.read_ipc(io.BytesIO(part)) for part in parts[:2])
        environments = parse_json(parts[2])
        found = {key: environments["parts"][at] for key, at in environments["runs"].items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, pl.exceptions.PolarsError):
        return NOTHING
    counts = index["rows"].to_numpy().astype(np.int64) if index.schema == _INDEX else None
    if counts is None or rows.schema != _ROWS or counts.sum() != rows.height:
        return NOTHING
    return ParsedSamples(index["key"].to_list(), counts, rows, found)


def write_cache(path: Path, parsed: ParsedSamples) -> None:
    """Write what ``read_cache`` reads, but for few samples; nothing where it can't be written: nobody needs it."""
    if parsed.rows.height < LEAST:
        return
    buffer = io.BytesIO()
    buffer.write(b" " * _HEAD + b"\n")
    ends = [buffer.tell()]
    pl.DataFrame({"key": parsed.keys, "rows": parsed.counts}, schema_overrides=_INDEX).write_ipc(buffer)
    ends.append(buffer.seek(0, io.SEEK_END))
    parsed.rows.write_ipc(buffer)
    ends.append(buffer.seek(0, io.SEEK_END))
    parts = {id(one): one for one in parsed.environments.values()}
    place = {name: at for at, name in enumerate(parts)}
    runs = {key: place[id(one)] for key, one in parsed.environments.items()}
    buffer.write(json.dumps({"parts": list(parts.values()), "runs": runs}).encode())
    ends.append(buffer.tell())
    data = buffer.getbuffer()  # no copy: the table is large
    head = json.dumps(_head(data[ends[0] :], [end - start for start, end in itertools.pairwise(ends)])).encode()
    data[: len(head)] = head
    try:
        write_atomically(path, data, parents=False)
    except MissingToolError:
        return  # a full disk, a directory that may only be read: the next merge parses anew


_HEAD = 500
"""Bytes that are kept for the first line."""


def _head(rest: memoryview, sizes: list[int]) -> dict[str, object]:
    found = hashlib.sha256(rest)
    found.update(repr(sizes).encode())
    return {"schema": CACHE, "gpubench": __version__, "sizes": sizes, "sha256": found.hexdigest()}
