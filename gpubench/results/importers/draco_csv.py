"""``multi-node-merge.csv`` and ``multi-node-transpose.csv``, as dask-cuda-benchmarks publishes them.

A row is the arithmetic mean of some thirty repetitions of one date, number of GPUs, back-end and UCX version. Its
``throughput_mean`` is bytes per GPU over the mean wall clock, so that the two must agree; its ``throughput_std`` is
the standard error of that (delta method), no spread. Rows of the back-end ``no-dask`` are figures typed in by hand for
a line in a chart, with the wall clock of another row.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from gpubench.results.importers.base import (
    Format,
    Refused,
    Row,
    csv_rows,
    day,
    plain_number,
    plain_version,
    positive,
    whole,
)

_NEEDED = ("date", "num_workers", "ucx_version", "wallclock")
_MERGE, _TRANSPOSE = ("rows_per_chunk", "frac_match"), ("user_size", "user_second_size", "user_chunk_size")
_AGREE = 1e-3
_TYPED_IN = "no-dask"

NO_MEASUREMENT = (
    "a reference that was typed in by hand, no measurement (backend no-dask, with the wall clock of another row)"
)


def read(path: Path, name: str) -> Iterator[Row | Refused]:
    """Every row of one file, or of several that were joined."""
    for entry in csv_rows(path, name, "date", _NEEDED):
        yield entry if isinstance(entry, Refused) else _row(entry[1], name, entry[0])


def _row(fields: Mapping[str, str], name: str, line: int) -> Row | Refused:
    seconds, workers, date = positive(fields["wallclock"]), whole(fields["num_workers"]), day(fields["date"])
    backend, version = fields.get("backend", "dask"), fields["ucx_version"].strip()
    throughput, size = positive(fields.get("throughput_mean")), positive(fields.get("data_processed"))
    if backend == _TYPED_IN:
        return Refused(name, line, NO_MEASUREMENT)
    if seconds is None or workers is None or date is None or not version:
        bad = {
            "wallclock": seconds is None,
            "num_workers": workers is None,
            "date": date is None,
            "ucx_version": not version,
        }
        return Refused(name, line, "unreadable: " + ", ".join(f"{key} '{fields[key]}'" for key in bad if bad[key]))
    odd = [key for key in ("throughput_mean", "data_processed") if fields.get(key) and positive(fields[key]) is None]
    if odd:
        return Refused(name, line, "unreadable: " + ", ".join(f"{key} '{fields[key]}'" for key in odd))
    if throughput and size and abs(size / seconds / workers / 1e9 / throughput - 1) > _AGREE:
        computed = size / seconds / workers / 1e9
        return Refused(
            name, line, f"contradicts itself: wallclock makes {computed:.4g} GB/s, throughput_mean {throughput:.4g}"
        )
    error = positive(fields.get("throughput_std"))
    names = _MERGE if "rows_per_chunk" in fields else _TRANSPOSE
    workload = "merge" if names is _MERGE else "transpose-sum"
    params = {key: plain_number(fields[key]) for key in names if fields.get(key)}
    return Row(
        file=name,
        line=line,
        workload=workload,
        wall_s=seconds,
        extra=fields,
        run=f"{name}:{line}",
        identity=(workload, date, workers, backend, plain_version(version), tuple(params.items())),
        date=date,
        variant=version,
        ucx_version=version,
        backend=backend,
        params=params,
        workers=workers,
        threads_per_worker=whole(fields.get("worker_threads")),
        reps=whole(fields.get("nreps")),
        wall_se=seconds * error / throughput if error and throughput else None,
        bytes=int(size) if size else None,
    )


FORMAT = Format(
    what="the Draco history: multi-node-merge.csv, multi-node-transpose.csv",
    patterns=("*merge*.csv", "*transpose*.csv"),
    leave=("*single_node_*.csv",),
    read=read,
    lacks=("single repetitions", "nodes", "job", "order within a date", "protocol", "device", "host", "packages"),
    caution="the original measured the versions of a job in one fixed order, so the position in the job is confounded "
    "with the version",
)
