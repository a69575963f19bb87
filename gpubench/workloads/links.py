"""Bytes that moved between worker processes, from the receiving workers' own transfer logs."""

import functools
from typing import Any, Dict, Iterable, List, Tuple

from gpubench.workloads import dasks

Link = Dict[str, Any]
"""``receiver`` and ``sender`` (addresses), ``bytes``, ``count`` (transfers) and ``seconds`` (sum of durations)."""


def _length(dask_worker: Any) -> int:
    return len(dasks.incoming_log(dask_worker))


def _since(dask_worker: Any, marks: Dict[str, int]) -> List[Tuple[str, int, float]]:
    log = dasks.incoming_log(dask_worker)
    first = marks[dask_worker.address]
    if len(log) < first:
        raise RuntimeError(f"worker {dask_worker.address} restarted while its traffic was being counted")
    entries = [log[position] for position in range(first, len(log))]
    return [(entry["who"], int(entry["total"]), float(entry["duration"])) for entry in entries]


def mark(client: Any) -> Dict[str, int]:
    """Where every worker's log ends now, by address; from the first call on the logs are unbounded."""
    return dict(client.run(_length))


def collect(client: Any, marks: Dict[str, int]) -> List[Link]:
    """What each worker fetched from each other one since ``marks``; pairs without traffic are left out.

    Bytes are sizes of Dask results in memory, so headers and the workers' talk with the scheduler are not in them.

    Raises:
        KeyError: a worker joined after ``marks`` were taken.
        RuntimeError: a worker's log is shorter than its mark.
    """
    logs = client.run(functools.partial(_since, marks=marks))
    return summed(
        {"receiver": receiver, "sender": sender, "bytes": size, "count": 1, "seconds": seconds}
        for receiver, entries in logs.items()
        for sender, size, seconds in entries
    )


def summed(links: Iterable[Link]) -> List[Link]:
    """One link per ordered pair of workers, sums over ``links``, sorted."""
    sums: Dict[Tuple[str, str], Link] = {}
    for link in links:
        pair = (link["receiver"], link["sender"])
        total = sums.setdefault(pair, {"receiver": pair[0], "sender": pair[1], "bytes": 0, "count": 0, "seconds": 0.0})
        for figure in ("bytes", "count", "seconds"):
            total[figure] += link[figure]
    return [sums[pair] for pair in sorted(sums)]


def total_bytes(links: Iterable[Link]) -> int:
    """Sum over all pairs."""
    return sum(link["bytes"] for link in links)
