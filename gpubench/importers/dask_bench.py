"""dask-bench's ``*_arrays.csv`` and ``*_dataframes.csv``: a row per task and count of threads, of many repetitions.

The count of repetitions is not in the file, and a task that failed has a row too, with a rate that means nothing.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from gpubench.importers.base import Format, Refused, Row, csv_rows, positive, whole

_NEEDED = ("collection", "name", "n", "duration_mean")


def read(path: Path, name: str) -> Iterator[Row | Refused]:
    """Every row of one file."""
    for found in csv_rows(path, name, "duration_mean", _NEEDED):
        yield found if isinstance(found, Refused) else _row(found[1], name, found[0])


def _row(fields: Mapping[str, str], name: str, line: int) -> Row | Refused:
    seconds, threads = positive(fields["duration_mean"]), whole(fields["n"])
    if seconds is None or threads is None or not fields["name"]:
        return Refused(name, line, f"unreadable: n '{fields['n']}', duration_mean '{fields['duration_mean']}'")
    return Row(
        file=name,
        line=line,
        workload=f"{fields['collection']}: {fields['name']}",
        wall_s=seconds,
        extra=fields,
        run=f"{name}:{threads}",
        identity=(name, fields["collection"], fields["name"], threads),
        backend="dask",
        params={"threads": threads},
        reps=None,
    )


FORMAT = Format(
    what="dask-bench's NAME_arrays.csv and NAME_dataframes.csv",
    patterns=("*_arrays.csv", "*_dataframes.csv"),
    read=read,
    lacks=("date", "version", "count of repetitions", "processes against threads", "nodes", "host", "failed tasks"),
    caution="its Slurm runs are n processes of one thread, its Kubernetes runs one process of n threads",
    by_place=True,
)
