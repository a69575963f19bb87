"""``single_node_merge_performance.csv`` and ``..._transpose_...``: the nightly runs that the Draco site publishes.

https://github.com/rapidsai/dask-cuda-benchmarks, branch gh-pages. A row is one run on a single node of some GPUs: the
mean of its repetitions, the transports that it was allowed, and the versions of packages, in columns of their own. A
day has several runs, whose time of day is not recorded; early rows have no versions.

``throughput_mean`` is bytes per second and GPU over the mean wall clock, so that the number of GPUs follows from it.
Of a merge, ``throughput_std`` is the standard error of that rate (delta method, as in ``draco_csv``). Of a transpose it
is the spread of the repetitions' rates. How many repetitions there were is not recorded: the ratio of both relative
deviations is the root of it, but with three printed digits it gives 3 to 7 where there were 5.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from gpubench.results.importers.base import Format, Refused, Row, csv_rows, day, plain_number, positive, whole

_NEEDED = ("timestamp", "protocol", "data_processed", "wallclock_mean", "throughput_mean", "nvlink", "infiniband")
_TRANSPORTS = ("nvlink", "infiniband", "tcp")
_FLAGS = {"True": True, "False": False}
_MERGE, _TRANSPOSE = ("base_chunks", "other_chunks", "broadcast"), ("user_chunk_size", "ignore_size", "array_type")
_AGREE = 1e-2
"""Older rows were printed with three digits."""


def read(path: Path, name: str) -> Iterator[Row | Refused]:
    for entry in csv_rows(path, name, "timestamp", _NEEDED):
        yield entry if isinstance(entry, Refused) else _row(entry[1], name, entry[0])


def _row(fields: Mapping[str, str], name: str, line: int) -> Row | Refused:
    seconds, date, size = positive(fields["wallclock_mean"]), day(fields["timestamp"]), whole(fields["data_processed"])
    rate = positive(fields["throughput_mean"])
    flags = {transport: _FLAGS.get(fields.get(transport, "False")) for transport in _TRANSPORTS}
    if seconds is None or date is None or size is None or rate is None or None in flags.values():
        read_as = {
            "wallclock_mean": seconds,
            "timestamp": date,
            "data_processed": size,
            "throughput_mean": rate,
            **flags,
        }
        bad = ", ".join(f"{field} '{fields[field]}'" for field, value in read_as.items() if value is None)
        return Refused(name, line, f"unreadable: {bad}")
    gpus, stated = size / seconds / rate, whole(fields.get("num_workers"))
    workers = round(gpus)
    if abs(gpus - workers) > _AGREE * workers or stated not in (None, workers):
        other = "" if stated is None else f", not {stated}"
        return Refused(
            name, line, f"contradicts itself: wallclock_mean and throughput_mean make {gpus:.4g} GPUs{other}"
        )
    is_merge = "user_chunk_size" not in fields
    version = fields.get("ucx_version", "").strip() or None
    params = {key: plain_number(fields[key]) for key in (_MERGE if is_merge else _TRANSPOSE) if fields.get(key)}
    error = positive(fields.get("throughput_std"))
    relative = error / rate if is_merge and error else None
    return Row(
        file=name,
        line=line,
        workload="merge" if is_merge else "transpose-sum",
        wall_s=seconds,
        extra=fields,
        run=f"{name}:{line}",
        # No two runs agree in all digits of mean and spread: a row that does is a copy.
        identity=tuple(fields.items()),
        date=date,
        variant=version,
        ucx_version=version,
        backend=fields.get("backend") or None,
        params={**params, "transports": "+".join(transport for transport, allowed in flags.items() if allowed)},
        nodes=1,
        workers=workers,
        workers_per_node=workers,
        threads_per_worker=whole(fields.get("worker_threads")),
        protocol=fields["protocol"],
        reps=None,
        wall_se=seconds * relative if relative else None,
        bytes=size,
    )


FORMAT = Format(
    what="the Draco site's nightly runs: single_node_merge_performance.csv, single_node_transpose_performance.csv",
    patterns=("*single_node_*.csv",),
    read=read,
    lacks=("single repetitions and their number", "time of day", "job", "order within a date", "device", "host"),
    caution="a version of a development branch is another revision (ucx_revision) every few days, and the other "
    "packages change with the date",
)
